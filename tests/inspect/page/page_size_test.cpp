// Pages average arrays to fit their size limit.
#include <tapegrad/engine/tape/internal/recording.hpp>
#include <tapegrad/inspect/page/internal/step.hpp>

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

#include "in_double.hpp"

namespace {

using nlohmann::json;

constexpr tg::TapeOptions keeping{.keep_values = true};

json page_of(const tg::Tape& tape, const tg::PageOptions& options = {}, const tg::PageStep& told = {}) {
  const tg::detail::RecordedStep step{tape.recording(), told};
  return json::parse(tg::detail::page_json({&step, 1}, options).text());
}

// The bytes of all numbers in any part of a page.
std::size_t bytes_of_numbers(const json& part) {
  if (part.is_object() && part.contains("data")) return part["data"].get_ref<const std::string&>().size();
  std::size_t bytes = 0;
  if (part.is_structured())
    for (const json& inner : part) bytes += bytes_of_numbers(inner);
  return bytes;
}

struct Gpt {
  tg::Embedding<> token{100, 128}, position{64, 128};
  std::vector<tg::TransformerBlock<>> blocks = std::vector(4, tg::TransformerBlock<>(128, 4));
  tg::Linear<> head{128, 100};
  TAPEGRAD_FIELDS(token, position, blocks, head)

  tg::Tensor<float> operator()(const tg::IntArray& ids, const tg::IntArray& positions) const {
    tg::Tensor<float> x = token(ids) + position(positions);
    for (const auto& block : blocks) x = block(x, tg::AttentionMask::causal());
    return head(x);
  }
};

// Counts the attention arrays on the page: those averaged, and all.
struct Attention {
  std::size_t averaged = 0, all = 0;
  explicit Attention(const json& page) {
    for (const json& node : page["steps"][0]["nodes"])
      if (node.contains("attention"))
        for (const char* of : {"weights", "gradient", "allowed"}) {
          averaged += node["attention"][of].contains("pooled");
          ++all;
        }
  }
};

}  // namespace

TEST_CASE("The attention of a small GPT is complete on a page of the default size") {
  Gpt model;
  tg::parameters(model);
  tg::Tape tape(keeping);
  tg::IntArray ids(tg::Shape{1, 64});
  for (int i = 0; i < 64; ++i) ids(0, i) = i;
  tg::sum(model(ids, ids)).backward();
  const json page = page_of(tape);
  const Attention attention(page);
  CHECK(attention.all == 12);
  CHECK(attention.averaged == 0);
  const std::size_t bytes = bytes_of_numbers(page);
  CHECK(bytes <= 8'000'000);
  CHECK(bytes > 4'000'000);
  CHECK(page["left_out"].size() == 1);
}

TEST_CASE("Attention beyond half of the space is averaged unless the rest leaves space") {
  const Parameter q(Array({1, 64, 4}, 0.5)), k(Array({1, 64, 4}, 0.5)), v(Array({1, 64, 4}, 0.5));
  tg::Tape tape(keeping);
  tg::sum(tg::multi_head_attention<double>(q, k, v, 2)).backward();  // 3 x 2 x 64 x 64 numbers of attention: 131 kB
  CHECK(Attention(page_of(tape, {.largest = 150'000})).averaged == 0);
  const json page = page_of(tape, {.largest = 50'000});
  CHECK(Attention(page).averaged == 3);
  CHECK(bytes_of_numbers(page) <= 50'000);
}

TEST_CASE("A missing gradient of attention weights takes no space") {
  const Tensor q(Array({1, 64, 4}, 0.5));
  const Parameter v(Array({1, 64, 4}, 0.5));
  tg::Tape tape(keeping);
  (void)tg::multi_head_attention<double>(q, q, v, 2);  // without backward: 2 x 2 x 64 x 64 numbers of attention, 87 kB
  CHECK(Attention(page_of(tape, {.largest = 95'000})).averaged == 0);
}

TEST_CASE("A constant read by many operations is stored once") {
  const Parameter w(Array({1}, 2.0));
  const Tensor x(Array({64, 64}, 1.0));  // 22 kB
  tg::Tape tape(keeping);
  Tensor y = w;
  for (int i = 0; i < 10; ++i) y = y * tg::sum(w * x);  // w x and its gradient, 22 kB each
  CHECK(page_of(tape, {.largest = 300'000})["left_out"].empty());
}

TEST_CASE("Numeric gradients count in the size, and averaging them is reported") {
  Parameter w(Array({64, 64}, 1.0));
  w.set_name("w");
  tg::Tape tape(keeping);
  const Tensor y = tg::sum(w);
  const tg::PageStep told{.numeric = {{"w", Array({64, 64}, 1.0)}}};
  const json page = page_of(tape, {.largest = 30'000}, told);  // without this, w (22 kB) fits whole
  CHECK(bytes_of_numbers(page) <= 30'000);
  CHECK(page["left_out"] == json{"2 of 3 arrays are averaged down to at most 2048 numbers each."});
}
