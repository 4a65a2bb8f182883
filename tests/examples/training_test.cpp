// Features shared by the training programs: options, schedules, the position in the data, the log.

#include "../../examples/common/training.hpp"

#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../examples/common/batches.hpp"
#include "../../examples/common/given.hpp"
#include "../../examples/common/training_log.hpp"
#include "temporary_folder.hpp"

namespace examples {
namespace tg = tapegrad;

TEST_CASE("The rate warms up, then decays by the chosen schedule") {
  TrainingOptions options{.steps = 110, .lr = 1, .lr_floor = 0.1, .warmup = 10, .decay = Decay::cosine};
  const auto cosine = schedule_of(options);
  const auto expected = tg::warmup_cosine({.peak = 1, .floor = 0.1, .warmup = 10, .steps = 110});
  for (std::size_t step = 0; step < 120; ++step) CHECK(cosine(step) == doctest::Approx(expected(step)).epsilon(1e-12));

  options.decay = Decay::linear;
  const auto linear = schedule_of(options);
  CHECK(linear(0) == doctest::Approx(1.0 / 11));
  CHECK(linear(10) == 1);
  CHECK(linear(60) == doctest::Approx(0.55));
  CHECK(linear(110) == doctest::Approx(0.1));

  options.decay = Decay::none;
  CHECK(schedule_of(options)(5) == doctest::Approx(6.0 / 11));
  CHECK(schedule_of(options)(109) == 1);
  options.warmup = 1000;  // more than the number of steps
  CHECK(schedule_of(options)(109) == doctest::Approx(110.0 / 111));
}

TEST_CASE("muon trains the blocks' matrices, and adamw the other parameters") {
  struct Model {
    tg::Embedding<> embedding{5, 4};
    std::vector<tg::Linear<>> blocks;
    tg::Linear<> head{4, 5};
    TAPEGRAD_FIELDS(embedding, blocks, head)
  } model;
  model.blocks.emplace_back(4, 4);
  tg::add_low_rank(model.blocks.emplace_back(4, 4), 2, 4);
  TrainingState state(tg::parameters(model), {.optimizer = OptimizerKind::muon, .lr = 0.1});
  REQUIRE(state.muon);
  const auto names = [](const auto& optimizer) {
    std::set<std::string> all;
    for (const auto& parameter : optimizer.parameters()) all.insert(parameter->name());
    return all;
  };
  CHECK(names(*state.muon) == std::set<std::string>{"blocks.0.weight", "blocks.1.weight"});
  CHECK(names(*state.adamw) == std::set<std::string>{"embedding.weight", "blocks.0.bias", "blocks.1.bias",
                                                     "blocks.1.lora_A.weight", "blocks.1.lora_B.weight", "head.weight",
                                                     "head.bias"});
  CHECK(state.optimizers().size() == 2);
  CHECK_THROWS_AS(TrainingState(tg::parameters(model.head), {.optimizer = OptimizerKind::muon}), std::invalid_argument);
}

TEST_CASE("Parameters of two axes decay and biases do not, with sgd and adamw") {
  tg::Linear<> layer(3, 2);
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adamw}) {
    TrainingState state(tg::parameters(layer), {.optimizer = kind, .lr = 0.1, .weight_decay = 0.5});
    const auto weight = layer.weight.value(), bias = layer.bias.value();
    tg::Tape tape;
    (tg::sum(layer(tg::tensor({{1, 1, 1}}))) * 0.0F).backward();
    for (tg::Optimizer<float>* const optimizer : state.optimizers()) optimizer->step();
    CHECK(layer.weight.value() != weight);
    CHECK(layer.bias.value() == bias);
  }
}

TEST_CASE("Batches resume in the middle of an epoch, in a new object and in a used one") {
  tg::manual_seed(1);
  std::vector<Ids> sequences;
  for (std::size_t i = 0; i < 50; ++i) sequences.emplace_back(1 + i % 7);
  const auto take = [](Batches& batches, Place& place, int count) {
    std::vector<std::size_t> taken;
    for (int i = 0; i < count; ++i) {
      const auto chosen = batches.next(place);
      taken.insert(taken.end(), chosen.begin(), chosen.end());
    }
    return taken;
  };
  Batches batches(sequences, 8), elsewhere(sequences, 8);
  Place place, other;
  take(batches, place, 10);
  take(elsewhere, other, 3);
  const tg::Generator random = tg::default_generator();
  const Place kept = place;
  const auto expected = take(batches, place, 9);

  for (int same = 0; same < 2; ++same) {
    Batches fresh(sequences, 8);
    tg::default_generator() = random;
    place = kept;
    CHECK(take(same == 0 ? elsewhere : fresh, place, 9) == expected);
  }
  place.batches_left = 8;
  CHECK_THROWS_AS(batches.next(place), std::out_of_range);
}

TEST_CASE("A log has complete rows of the steps taken, and other files are refused") {
  const TemporaryFolder folder;
  const std::string path = folder.path("log.csv");
  const auto add = [&](std::size_t taken, std::vector<std::size_t> steps) {
    TrainingLog log(path, taken);
    for (const std::size_t step : steps) log.add({step, 2.5, std::nullopt, 0.1, 1.5, 1000});
  };
  const std::string header = "step,loss,validation_loss,rate,gradient_norm,tokens_per_second\n";
  add(0, {1, 2, 3});
  add(2, {3, 4});
  CHECK(folder.read("log.csv").substr(0, header.size()) == header);
  const auto expected = [&](int last) {
    std::string text = header;
    for (int step = 1; step <= last; ++step) text += std::to_string(step) + ",2.5,,0.1,1.5,1000\n";
    return text;
  };
  CHECK(folder.read("log.csv") == expected(4));
  std::ofstream(path, std::ios::app) << "5,2.";
  add(9, {});
  CHECK(folder.read("log.csv") == expected(4));
  add(0, {1});  // a new run
  CHECK(folder.read("log.csv") == expected(1));

  folder.write("log.csv", "1,2\n3,4\n");
  CHECK_THROWS_WITH_AS(add(0, {}), doctest::Contains("expected a training log"), std::runtime_error);
  CHECK(folder.read("log.csv") == "1,2\n3,4\n");

  for (const char* rows :
       {"end\nset output 'x'\n", "1,2.5,,0.1,1.5,1000\nend\n", "1,2.5,,0.1,1.5\n", "1,2.5,,0.1,1.5,1000,7\n",
        "1,2.5,,0.1,1.5,1000 \n", "-1,2.5,,0.1,1.5,1000\n", ",2.5,,0.1,1.5,1000\n", "1,`ls`,,0.1,1.5,1000\n", "\n"}) {
    CAPTURE(rows);
    folder.write("log.csv", header + rows);
    CHECK_THROWS_WITH_AS(add(3, {}), doctest::Contains("expected a training log"), std::runtime_error);
    CHECK(folder.read("log.csv") == header + rows);
  }
  const std::string odd = header + "1,1e-05,nan,0,inf,0\n2,-1.5e+20,,1e+06,nan,1000\n";
  folder.write("log.csv", odd);
  add(2, {});
  CHECK(folder.read("log.csv") == odd);
}

TEST_CASE("Validations without a lower loss are counted, and patience ends the training") {
  struct {
    tg::Linear<> layer{2, 1};
    TAPEGRAD_FIELDS(layer)
  } model;
  const auto parameters = tg::parameters(model);
  const TrainingOptions options{.steps = 100, .lr = 0, .eval_every = 10, .patience = 2};
  TrainingState state(parameters, options);
  std::vector<double> losses{3, 2, 4, 1, 5, 6, 0};
  std::size_t next = 0, bests = 0;
  std::ostringstream out;
  std::streambuf* before = std::cout.rdbuf(out.rdbuf());
  const int status = train(state, parameters, options,
                           {.next_loss =
                                [&] {
                                  return StepLoss{tg::mean(model.layer(tg::tensor({{1, 1}}))), 1, 2};
                                },
                            .validation_loss = [&] { return losses[next++]; },
                            .on_best = [&] { ++bests; }});
  std::cout.rdbuf(before);
  CHECK(out.str().find("after 20 steps: validation loss 2.0000, the lowest so far\n") != std::string::npos);
  CHECK(out.str().find("after 30 steps: validation loss 4.0000\n") != std::string::npos);
  CHECK(out.str().ends_with("stopped early: no lower validation loss since step 40\n"));
  CHECK(status == 0);
  CHECK(state.step == 60);
  CHECK(state.best_step == 40);
  CHECK(state.best_loss == 1);
  CHECK(bests == 3);
}

TEST_CASE("Saved options are checked like the command line, or have their defaults") {
  CLI::App app;
  Given<TrainingOptions> given;
  std::uint64_t seed = 0;
  add_training_options(app, given, seed);
  add_validation_options(app, given);
  const auto check = [&](const TrainingOptions& kept) { given.check("run", kept); };
  CHECK_NOTHROW(check({}));  // its eval_every is 0, invalid as --eval-every
  CHECK_NOTHROW(check({.lr = 0.1, .beta2 = 0.999999, .eval_every = 1}));
  CHECK_NOTHROW(check({.lr = 0x1p-1074, .clip = 1.0 / 3}));
  CHECK_THROWS_WITH_AS(check({.batch_size = 0}),
                       "run: --batch-size: expected a whole number from 1 to 1000000, got '0'", std::runtime_error);
  CHECK_THROWS_WITH_AS(check({.lr = std::nan("")}), "run: --lr: expected a number from 0 to 1e+06, got 'nan'",
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(check({.beta2 = 0.9999991}),
                       "run: --beta2: expected a number from 0 to 0.999999, got '0.9999991'", std::runtime_error);
}

TEST_CASE("Contradicting options are found by name, and equal ones are accepted") {
  CLI::App app;
  Given<TrainingOptions> given;
  std::uint64_t seed = 0;
  add_training_options(app, given, seed);
  app.parse("--lr 0.5 --optimizer adamw --steps 7");
  const TrainingOptions all = given.value_or({.batch_size = 3});
  CHECK(all.lr == 0.5);
  CHECK(all.optimizer == OptimizerKind::adamw);
  CHECK(all.batch_size == 3);
  CHECK(given.contradicting(all).empty());
  TrainingOptions other = all;
  other.lr = 0.4;
  other.batch_size = 9;
  CHECK(given.contradicting(other) == std::vector<std::string>{"--lr"});
}

}  // namespace examples
