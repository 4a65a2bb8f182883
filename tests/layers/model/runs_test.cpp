// Runs resumed from a file match uninterrupted runs bit for bit.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <xtensor/xmath.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint_bytes.hpp"
#include "file_parts.hpp"
#include "temporary_folder.hpp"

namespace tg = tapegrad;

namespace {

template <class T> struct Net {
  tg::Embedding<T> embedding{12, 4};
  tg::Dropout dropout{0.25};
  std::vector<tg::Linear<T>> heads;
  tg::Array<T> mean{tg::Shape{4}, T(0)};
  TAPEGRAD_FIELDS(embedding, dropout, heads, mean)

  Net() {
    for (int i = 0; i < 2; ++i) heads.emplace_back(4, 3);
  }

  tg::Tensor<T> operator()(const tg::IntArray& ids) const {
    const auto x = dropout(tg::mean(embedding(ids), {1})) - tg::Tensor<T>(mean);
    return tg::sum(heads[0](x) * heads[1](x), {1});
  }
};

// A run with every kind of state: a random order of examples and noise from a separate generator.
template <class T, template <class> class Optimizer> struct Run {
  using Options = typename Optimizer<T>::Options;

  Net<T> model;
  Optimizer<T> optimizer;
  tg::RandomState random;
  tg::Generator noise{3};
  std::size_t step = 0;
  tg::IntArray order = tg::random_permutation(12);
  std::vector<double> losses;
  std::optional<double> best;
  std::string phase = "start";
  TAPEGRAD_FIELDS(model, optimizer, random, noise, step, order, losses, best, phase)

  explicit Run(const Options& options) : optimizer(tg::parameters(model), options) {}

  // Matrices and other parameters in separate groups.
  Run(const Options& of_matrices, const Options& of_others)
      : optimizer(tg::parameters(model, [](auto, auto& p) { return p.dimension() == 2; }), of_matrices) {
    optimizer.add_group(tg::parameters(model, [](auto, auto& p) { return p.dimension() != 2; }), of_others);
  }

  void train_step() {
    if (step % 5 == 0) order = tg::random_permutation(12);
    const tg::IntArray ids{{order(step % 12), order((step + 1) % 12)}, {order((step + 2) % 12), 0}};
    {
      const tg::Tape tape;
      optimizer.zero_grad();
      const auto difference = model(ids) - tg::Tensor<T>(tg::normal<T>({2}, 0, 1, noise));
      const auto loss = tg::mean(difference * difference);
      loss.backward();
      losses.push_back(loss.item());
    }
    optimizer.step();
    model.mean = model.mean * T(0.75) + T(0.125);
    if (!best || losses.back() < *best) best = losses.back();
    phase = ++step % 2 ? "odd" : "even";
  }

  void train(int steps) {
    for (int i = 0; i < steps; ++i) train_step();
  }
};

// `make` creates a run, `remake` one with other options. A file saved after `before` steps is loaded, from disk or
// memory, into a new run and into runs trained less or more; all must continue like the uninterrupted run.
template <class Make, class Remake> void check_resumes(int before, Make make, Remake remake) {
  const TemporaryFolder folder;
  tg::manual_seed(5);
  auto run = make();
  run.train(before);
  tg::save(run, folder / "a.safetensors");
  const std::string at_save = bytes_of(folder / "a.safetensors");
  run.train(6);
  const std::string expected = saved_bytes(run);
  CHECK(expected != at_save);
  for (const int trained : {0, 2, 13}) {
    CAPTURE(trained);
    tg::manual_seed(99);
    auto resumed = remake();
    resumed.train(trained);
    if (trained == 2)
      tg::load(resumed, InMemory(at_save));
    else
      tg::load(resumed, folder / "a.safetensors");
    CHECK(saved_bytes(resumed) == at_save);
    resumed.train(6);
    CHECK(saved_bytes(resumed) == expected);
    CHECK(resumed.losses == run.losses);
    CHECK(resumed.model.heads[1].weight.value() == run.model.heads[1].weight.value());
  }
}

template <class T, template <class> class Optimizer>
void check_resumes(const typename Optimizer<T>::Options& options, int before = 7) {
  using Made = Run<T, Optimizer>;
  check_resumes(
      before, [&] { return Made(options); }, [] { return Made({.lr = 0.5}); });
}

}  // namespace

TEST_CASE_TEMPLATE("A resumed run matches an uninterrupted one, with any optimizer", T, float, double) {
  check_resumes<T, tg::SGD>({.lr = 0.05});
  check_resumes<T, tg::SGD>({.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01});
  check_resumes<T, tg::SGD>({.lr = 0.05, .momentum = 0.9, .dampening = 0.5});
  check_resumes<T, tg::SGD>({.lr = 0.05, .momentum = 0.9, .nesterov = true});
  check_resumes<T, tg::Adam>({.lr = 0.01, .betas = {0.8, 0.95}, .eps = 1e-6, .weight_decay = 0.1});
  using Made = Run<T, tg::AdamW>;  // with two groups
  check_resumes(
      7,
      [] {
        return Made({.lr = 0.02, .weight_decay = 0.1}, {.lr = 0.01, .betas = {0.5, 0.9}, .weight_decay = 0});
      },
      [] { return Made({.lr = 0.5}, {.lr = 0.25}); });
}

TEST_CASE("A file from before the first step restores the start, including the optimizer's state") {
  check_resumes<float, tg::AdamW>({.lr = 0.01}, 0);
  check_resumes<double, tg::SGD>({.lr = 0.05, .momentum = 0.9, .dampening = 0.5}, 0);

  const TemporaryFolder folder;
  Run<float, tg::AdamW> run({.lr = 0.01});
  tg::save(run, folder / "a.safetensors");
  CHECK_FALSE(FileParts(folder / "a.safetensors").contains("optimizer.state.heads.0.bias.exp_avg"));
  run.train(2);
  CHECK(run.optimizer.state().at("heads.0.bias").exp_avg.has_value());
  tg::load(run, folder / "a.safetensors");
  for (const auto& named : run.optimizer.state()) {
    CAPTURE(named.first);
    CHECK(named.second.step == 0);
    CHECK_FALSE((named.second.exp_avg.has_value() || named.second.exp_avg_sq.has_value()));
  }
  CHECK(run.losses.empty());
  CHECK_FALSE(run.best.has_value());
}

TEST_CASE("A resumed run with a frozen parameter keeps it, without a state") {
  const auto with_frozen = [](double lr) {
    Run<float, tg::AdamW> run({.lr = lr});
    run.model.heads[0].bias.set_requires_grad(false);
    return run;
  };
  check_resumes(
      7, [&] { return with_frozen(0.01); }, [&] { return with_frozen(0.5); });

  auto run = with_frozen(0.01);
  run.train(3);
  FileParts file(saved_bytes(run));
  CHECK_FALSE(file.contains("optimizer.state.heads.0.bias.exp_avg"));
  CHECK(file.at("optimizer.state.heads.0.bias.step").bytes == raw<std::uint64_t>({0}));
  CHECK(file.at("optimizer.state.heads.1.bias.step").bytes == raw<std::uint64_t>({3}));

  // The program decides whether a parameter is frozen, like the training mode; the moments come from the file.
  Run<float, tg::AdamW> trained({.lr = 0.5});
  trained.train(4);
  trained.model.heads[0].bias.set_requires_grad(false);
  tg::load(trained, tg::save_bytes(run));
  CHECK_FALSE(trained.model.heads[0].bias.requires_grad());
  CHECK(saved_bytes(trained) == saved_bytes(run));
}

TEST_CASE("The order of numbers and names in a file does not matter") {
  Run<float, tg::AdamW> run({.lr = 0.01}), other({.lr = 0.5});
  run.train(5);
  FileParts file(saved_bytes(run));
  std::ranges::reverse(file.tensors);  // no tensor is aligned any more
  file.add<unsigned char>("another", "U8", {1});
  std::rotate(file.tensors.begin(), file.tensors.end() - 1, file.tensors.end());
  const InMemory moved(file.bytes());
  other.train(2);
  tg::load(other, moved, {.ignore = {"another"}});
  CHECK(saved_bytes(other) == saved_bytes(run));
}

TEST_CASE("A run in double resumes one in float and the reverse, without losing float's precision") {
  Run<float, tg::AdamW> single({.lr = 0.01}), back({.lr = 0.5});
  single.train(5);
  Run<double, tg::AdamW> wide({.lr = 0.5});
  wide.train(2);
  tg::load(wide, tg::save_bytes(single));
  CHECK(tg::Array<float>(xt::cast<float>(wide.model.mean)) == single.model.mean);
  CHECK(wide.losses == single.losses);
  CHECK(FileParts(saved_bytes(wide)).at("optimizer.state.heads.0.bias.exp_avg").dtype == "F64");
  tg::load(back, tg::save_bytes(wide));
  CHECK(saved_bytes(back) == saved_bytes(single));
}
