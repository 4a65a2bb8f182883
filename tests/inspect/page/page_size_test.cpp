// Pages average arrays to fit their size limit.
#include <tapegrad/engine/tape/internal/recording.hpp>
#include <tapegrad/inspect/page/internal/step.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "in_double.hpp"

namespace {

using nlohmann::json;

constexpr tg::TapeOptions kept{.keep_values = true};

json told_page_of(const tg::Tape& tape, const tg::PageOptions& options = {}, const tg::PageStep& told = {}) {
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

// The arrays in any part of a page.
struct Arrays {
  std::size_t all = 0, averaged = 0, largest = 0;  // largest: numbers stored of an averaged one

  void add(const json& part) {
    if (part.is_object() && part.contains("data")) {
      ++all;
      if (!part.contains("pooled")) return;
      ++averaged;
      largest = std::max(largest, bytes_of_numbers(part) / 4 * 3 / sizeof(float));
    } else if (part.is_structured()) {
      for (const json& inner : part) add(inner);
    }
  }
};

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
  tg::Tape tape(kept);
  tg::IntArray ids(tg::Shape{1, 64});
  for (int i = 0; i < 64; ++i) ids(0, i) = i;
  tg::sum(model(ids, ids)).backward();
  const json page = told_page_of(tape);
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
  tg::Tape tape(kept);
  tg::sum(tg::multi_head_attention<double>(q, k, v, 2)).backward();  // 3 x 2 x 64 x 64 numbers of attention: 131 kB
  CHECK(Attention(told_page_of(tape, {.largest = 150'000})).averaged == 0);
  const json page = told_page_of(tape, {.largest = 50'000});
  CHECK(Attention(page).averaged == 3);
  CHECK(bytes_of_numbers(page) <= 50'000);
}

TEST_CASE("A missing gradient of attention weights takes no space") {
  const Tensor q(Array({1, 64, 4}, 0.5));
  const Parameter v(Array({1, 64, 4}, 0.5));
  tg::Tape tape(kept);
  (void)tg::multi_head_attention<double>(q, q, v, 2);  // without backward: 2 x 2 x 64 x 64 numbers of attention, 87 kB
  CHECK(Attention(told_page_of(tape, {.largest = 95'000})).averaged == 0);
}

TEST_CASE("A constant read by many operations is stored once") {
  const Parameter w(Array({1}, 2.0));
  const Tensor x(Array({64, 64}, 1.0));  // 22 kB
  tg::Tape tape(kept);
  Tensor y = w;
  for (int i = 0; i < 10; ++i) y = y * tg::sum(w * x);  // w x and its gradient, 22 kB each
  CHECK(told_page_of(tape, {.largest = 300'000})["left_out"].empty());
}

TEST_CASE("Numeric gradients count in the size, and averaging them is reported") {
  Parameter w(Array({64, 64}, 1.0));
  w.set_name("w");
  tg::Tape tape(kept);
  const Tensor y = tg::sum(w);
  const tg::PageStep told{.numeric = {{"w", Array({64, 64}, 1.0)}}};
  const json page = told_page_of(tape, {.largest = 30'000}, told);  // without this, w (22 kB) fits whole
  CHECK(bytes_of_numbers(page) <= 30'000);
  CHECK(page["left_out"] == json{"2 of 3 arrays are averaged down to at most 2048 numbers each."});
}

TEST_CASE("The largest array left and the number of averaged ones are those of all arrays of all steps, in any order") {
  const std::vector<tg::Shape> shapes{{40, 40}, {7, 9}, {300}, {1, 2000}, {5, 5, 5}, {2}};
  for (const bool reversed : {false, true})
    for (const std::size_t largest : {500, 2'000, 5'000, 20'000, 60'000}) {
      CAPTURE(reversed);
      CAPTURE(largest);
      std::vector<tg::detail::RecordedStep> steps;
      for (const bool in_second : {reversed, !reversed}) {
        const tg::Tape tape(kept);
        for (std::size_t i = 0; i < shapes.size(); ++i) {
          const Parameter w(Array(shapes[reversed ? shapes.size() - 1 - i : i], 0.5));
          if (in_second == (i % 2 == 1)) tg::sum(tg::exp(w)).backward();
        }
        steps.push_back({tape.recording(), {}});
      }
      const json page = json::parse(tg::detail::page_json(steps, {.largest = largest}).text());
      Arrays arrays;
      arrays.add(page["steps"]);
      const std::string expected = std::to_string(arrays.averaged) + " of " + std::to_string(arrays.all) +
                                   " arrays are averaged down to at most " + std::to_string(arrays.largest) +
                                   " numbers each.";
      CHECK(page["left_out"] == (arrays.averaged == 0 ? json::array() : json::array({expected})));
    }
}
