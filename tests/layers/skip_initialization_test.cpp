#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <thread>

namespace tg = tapegrad;

namespace {

struct Skipped {
  tg::Embedding<double> embedding{5, 4, {.padding_idx = 1}};
  tg::TransformerBlock<double> block{4, 2};
  tg::Linear<double> head{4, 5};
  TAPEGRAD_FIELDS(embedding, block, head)
};

bool draws() {
  const tg::Generator before = tg::default_generator();
  Skipped model;
  tg::initialize_gpt2(model);
  return tg::default_generator().state() != before.state();
}

}  // namespace

TEST_CASE("With SkipInitialization, layers draw no numbers, and have their shapes and norms") {
  tg::manual_seed(3);
  {
    const tg::SkipInitialization skip;
    CHECK(!draws());
    {
      const tg::SkipInitialization inner;
      CHECK(!draws());
    }
    CHECK(tg::SkipInitialization::is_active());  // the outer scope still does
    CHECK(!draws());
    bool other_thread_draws = false;
    std::thread([&] { other_thread_draws = draws(); }).join();
    CHECK(other_thread_draws);

    const Skipped model;
    CHECK(model.embedding.weight.shape() == tg::Shape{5, 4});
    CHECK(model.block.feed_forward.fc1.weight.shape() == tg::Shape{16, 4});
    CHECK(model.head.bias.shape() == tg::Shape{5});
    CHECK(model.block.norm1.weight.value() == xt::ones<double>({4}));
    CHECK(model.embedding.weight.value()(1, 3) == 0);  // padding row
  }
  CHECK(!tg::SkipInitialization::is_active());
  CHECK(draws());
}

TEST_CASE("With SkipInitialization, initialize_... leaves a model unchanged") {
  Skipped model;
  const tg::Array<double> weight = model.head.weight.value(), table = model.embedding.weight.value();
  const tg::SkipInitialization skip;
  tg::initialize_gpt2(model);
  tg::initialize_lecun(model);
  CHECK(model.head.weight.value() == weight);
  CHECK(model.embedding.weight.value() == table);
}
