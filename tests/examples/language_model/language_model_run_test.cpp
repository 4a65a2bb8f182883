// Saved runs of language_model: stopped in every way, and resumed.

#include <CLI/CLI.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "../../../examples/language_model/defaults.hpp"
#include "file_parts.hpp"
#include "language_model_texts.hpp"

namespace {

/// Everything random or stateful: dropout, batches of lines, two batches per step, validation, AdamW.
const std::string all_that_draws =
    " --layers 1 --heads 2 --dropout 0.2 --accumulate 2 --batch-size 4 --optimizer adamw"
    " --lr 0.01 --warmup 20 --clip 1 --weight-decay 0.1 --eval-every 100 --length 1 --seed 5 ";

/// The log's rows without tokens per second.
std::vector<std::string> rows(const std::string& log) {
  std::istringstream lines(log);
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(line.substr(0, line.rfind(',')));
  return rows;
}

/// Shell code: runs a command until the log has this many rows, sends a signal and prints the exit status.
std::string stopped_at(const std::string& command, const std::string& log, std::size_t rows,
                       const std::string& signal) {
  return command + " >" + log + ".out 2>&1 & program=$!\n" + "until [ $(cat " + log + " | wc -l) -gt " +
         std::to_string(rows) + " ]; do sleep 0.01; done\n" + "kill -" + signal +
         " $program; wait $program 2>&1; echo status $?\n";
}

}  // namespace

TEST_CASE("A run killed at ten random moments ends with the weights of an uninterrupted run") {
  const TemporaryFolder folder;
  const std::string learn = "$examples/language_model --lines --data " + folder.write("names", joined(names(100))) +
                            all_that_draws + "--width 8 --context 12 --steps 3000 ";
  const auto files = [&](const std::string& name) {
    return " --save " + folder.path(name) + " --best " + folder.path(name + ".best") + " --log " +
           folder.path(name + ".csv") + " --checkpoint " + folder.path(name + ".run");
  };
  REQUIRE(run_shell(learn + files("whole")).status == 0);

  std::string commands, command = learn + files("killed") + " --checkpoint-every 23";
  std::ofstream(folder.path("killed.csv"));  // so that it can be read before it is written
  unsigned state = 7;
  for (std::size_t kill = 0; kill < 10; ++kill) {
    state = state * 1103515245u + 12345u;
    commands += stopped_at(command, folder.path("killed.csv"), 20 + 220 * kill + state / 65536u % 180, "KILL");
    command = "$examples/language_model --resume " + folder.path("killed.run");
  }
  const Run killed = run_shell(commands + command);
  CHECK(killed.status == 0);
  CHECK(count(killed.out, "status 137") == 10);
  CHECK(contains(killed.out, "resuming at step "));

  CHECK(folder.read("killed") == folder.read("whole"));
  CHECK(folder.read("killed.best") == folder.read("whole.best"));
  CHECK(rows(folder.read("killed.csv")) == rows(folder.read("whole.csv")));
  CHECK(rows(folder.read("whole.csv")).size() == 3001);
}

TEST_CASE("Ctrl-C and SIGTERM save a run in the middle of a step, and it resumes to the same weights") {
  const TemporaryFolder folder;
  const std::string learn = "$examples/language_model --data " + folder.write("text", rhyme(100)) + all_that_draws +
                            "--steps 500 --context 64 --width 32 ";
  REQUIRE(run_shell(learn + "--save " + folder.path("whole")).status == 0);

  std::size_t kept = 0;
  for (const std::string signal : {"INT", "TERM"}) {
    const std::string log = folder.write(signal + ".csv", ""), run = folder.path(signal + ".run");
    const Run stopped = run_shell(stopped_at(
        learn + "--save " + folder.path(signal) + " --log " + log + " --checkpoint " + run, log, 40 + kept++, signal));
    CHECK(contains(stopped.out, signal == "INT" ? "status 130" : "status 143"));
    CHECK(contains(folder.read(signal + ".csv.out"), "interrupted"));
    CHECK(folder.read(signal) != folder.read("whole"));

    CHECK(run_shell("$examples/language_model --resume " + run).status == 0);
    CHECK(folder.read(signal) == folder.read("whole"));
    CHECK(rows(folder.read(signal + ".csv")).size() == 501);
  }
}

TEST_CASE("A run can be resumed for more steps, but not with other options") {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", rhyme(100)), run = folder.path("run");
  const std::string learn = "language_model --data " + text + all_that_draws + "--width 8 --decay none --steps 30";
  run_well(learn + " --checkpoint " + run);
  run_well("language_model --length 5 --load " + run);  // contains the model

  const std::string resume = "language_model --resume " + run;
  const std::string reason = ": expected the same value as in the resumed run; only --steps may increase";
  check_refusals(resume, {{" --lr 0.02", "--lr" + reason},
                          {" --layers 2", "--layers" + reason},
                          {" --data random", "--resume: not allowed with --data random"},
                          {" --language french", "--language" + reason},
                          {" --seed 6", "--seed" + reason},
                          {" --steps 29", "--steps" + reason},
                          {" --depth 1", "--depth: not allowed with --resume, which takes both from the run"},
                          {" --minutes 1", "--minutes: not allowed with --resume, which takes both from the run"},
                          {" --load " + run, "--resume: not allowed with --load"}});
  const Run whole = run_example("language_model --data " + text + all_that_draws +
                                "--width 8 --decay none --steps 50 --save " + folder.path("whole"));
  const Run more = run_example(resume + " --lr 0.01 --seed 5 --steps 50 --save " + folder.path("more"));
  CHECK(contains(more.out, "resuming at step 30\n"));
  CHECK(folder.read("more") == folder.read("whole"));

  folder.write("text", rhyme(101));
  check_refusals(resume, {{"", "expected the run's training texts, got others"}});
  run_well(resume + " --data " + folder.write("moved", rhyme(100)));
  run_well(resume);  // takes the new path from the file
  const Run no_run = run_example("language_model --resume " + folder.path("more"));
  CHECK(contains(no_run.err, "more: expected a model saved by language_model --checkpoint"));
}

TEST_CASE("A saved run with options that the command line would refuse is refused") {
  const TemporaryFolder folder;
  const std::string run = folder.path("run"), wrong = folder.path("wrong");
  const std::string learn = "language_model --lines --data " + folder.write("names", joined(names(40)));
  run_well(learn + all_that_draws + "--width 8 --steps 2 --checkpoint " + run);
  const auto change = [&](const std::string& pointer, const nlohmann::json& value) {  // one that no program writes
    FileParts file{std::filesystem::path(run)};
    std::string& stored = file.texts.at("language_model --checkpoint");
    auto options = nlohmann::json::parse(stored);
    options.at(nlohmann::json::json_pointer(pointer)) = value;
    stored = options.dump();
    write_bytes(wrong, file.bytes());
  };
  const auto refuses = [&](const std::string& pointer, const nlohmann::json& value, const std::string& message) {
    change(pointer, value);
    check_message(run_example("language_model --resume " + wrong), "language_model", "wrong: " + message);
  };
  refuses("/model/heads", 0, "--heads: expected a whole number from 1 to 1000000, got '0'");
  refuses("/model/layers", 1001, "--layers: expected a whole number from 0 to 1000, got '1001'");
  refuses("/training/lr", -0.5, "--lr: expected a number from 0 to 1e+06, got '-0.5'");
  const std::string others = "expected settings saved by language_model --checkpoint, got others: ";
  refuses("/training/steps", 2.5, others + "/training/steps: expected a value written by this program, got 2.5");
  refuses("/training/optimizer", "adam",
          others + "/training/optimizer: expected a value written by this program, got \"adam\"");
  refuses("/outputs/checkpoint_every", -1,
          others + "/outputs/checkpoint_every: expected a value written by this program");
  change("/training/steps", 3);
  run_well("language_model --resume " + wrong);
}

TEST_CASE("--best keeps the weights with the lowest validation loss, and --patience ends a run without improvement") {
  const TemporaryFolder folder;
  // Pure noise: memorizing the training text does not help on the validation text.
  std::string noise;
  unsigned state = 3;
  for (int i = 0; i < 600; ++i) noise += "abcdefgh"[(state = state * 1103515245u + 12345u) / 65536u % 8];
  const Run run = run_well("language_model --data " + folder.write("text", noise + '\n') +
                           " --layers 2 --heads 2 --width 32 --context 16 --lr 0.01 --steps 3000 --eval-every 20"
                           " --patience 5 --length 1 --best " +
                           folder.path("best") + " --save " + folder.path("last"));
  CHECK(contains(run.out, "stopped early: no lower validation loss since step "));

  double lowest = 1e9, last = 0;
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);)
    if (const std::size_t at = line.find("steps: validation loss "); at != line.npos) {
      last = std::stod(line.substr(at + 23));
      CHECK((contains(line, "the lowest so far")) == (last < lowest));
      lowest = std::min(lowest, last);
    }
  CHECK(lowest < last);
  const auto loss_of = [&](const std::string& model) {
    return run_example("language_model --data " + folder.path("text") + " --length 1 --load " + folder.path(model))
        .number_after("validation loss ");
  };
  CHECK(loss_of("best") == doctest::Approx(lowest).epsilon(1e-4));
  CHECK(loss_of("last") == doctest::Approx(last).epsilon(1e-4));
}

TEST_CASE("Accumulating equal batches gives the losses of one") {
  const auto losses = [](const std::string& options) {
    const Run run = run_example("language_model --data random --width 16 --steps 20 --lr 0.5 --batch-size 2" + options);
    std::istringstream lines(run.out_from("step "));
    std::string losses;
    for (std::string line; std::getline(lines, line);) losses += line.substr(0, line.find("tokens") - 12) + '\n';
    return losses;
  };
  CHECK(losses("") != "");
  CHECK(losses(" --accumulate 2") == losses(""));
}

TEST_CASE("A run with recomputed blocks ends with the same weights, and may resume without them") {
  const TemporaryFolder folder;
  const std::string data = folder.write("names", joined(names(60)));
  const auto learn = [&](const std::string& name, const std::string& options) {
    const std::string files = " --save " + folder.path(name) + " --checkpoint " + folder.path(name + ".run");
    return run_example("language_model --lines --data " + data + all_that_draws + "--width 8 " + files + options);
  };
  REQUIRE(learn("without", " --steps 30").status == 0);
  REQUIRE(learn("with", " --steps 30 --recompute").status == 0);
  CHECK(folder.read("with") == folder.read("without"));
  run_well("language_model --steps 40 --resume " + folder.path("with.run"));
  run_well("language_model --steps 40 --recompute --resume " + folder.path("without.run"));
  CHECK(folder.read("with") == folder.read("without"));
}

TEST_CASE("A run of some minutes measures its steps, and equals a run of as many steps") {
  const TemporaryFolder folder;
  const std::string learn = "language_model --data " + folder.write("text", rhyme(100)) +
                            " --depth 1 --dropout 0.2 --context 16 --batch-size 4 --eval-every 20 --length 1 --save ";
  const Run timed = run_well(learn + folder.path("timed") + " --minutes 0.005");
  const std::size_t end = timed.out.find(" steps take about 0.005 minutes\n");
  REQUIRE(end != timed.out.npos);
  const std::size_t begin = timed.out.rfind('\n', end) + 1;
  std::string steps = timed.out.substr(begin, end - begin);
  std::erase(steps, ',');
  run_well(learn + folder.path("counted") + " --steps " + steps);
  CHECK(folder.read("timed") == folder.read("counted"));
}

TEST_CASE("The depth sets a model's sizes, and the minutes set the depth; other options override both") {
  const TemporaryFolder folder;
  const std::string learn = "language_model --length 1 --data " + folder.write("text", rhyme(100));
  const auto check = [&](const std::string& options, int layers, int heads, int width) {
    const std::string out = run_well(learn + options).out, columns = std::to_string(width);
    CAPTURE(out);
    CHECK(contains(out, "blocks." + std::to_string(layers - 1)));
    CHECK(!contains(out, "blocks." + std::to_string(layers)));
    CHECK(contains(out, "num_heads=" + std::to_string(heads)));
    CHECK(contains(out, "norm1         LayerNorm(eps=1e-05, center=false)  weight (" + columns + ")"));
  };
  check(" --depth 3 --steps 1", 3, 3, 96);
  check(" --depth 3 --steps 1 --layers 1 --heads 2", 1, 2, 96);
  check(" --minutes 0.002", 4, 4, 128);
  CHECK((budget_for(4.9).depth == 4 && budget_for(5).depth == 6 && budget_for(29).context == 128 &&
         !budget_for(29).weight_decay));
  LanguageModelOptions hour;
  CLI::App app;
  add_options(app, hour);
  app.parse("--minutes 30 --data text --activation gelu --lr 1e-5");
  CHECK((hour.depth == 6 && hour.model.width == 192 && hour.model.dropout == 0.2));
  CHECK((hour.model.context == 256 && hour.model.feed_forward == 0 && hour.training.lr_floor < 2e-6 &&
         hour.training.weight_decay == 1));
  Defaults text = defaults_for(Source::text), lines = defaults_for(Source::lines);
  set_depth(text, 3, Source::text), set_depth(lines, 3, Source::lines);
  CHECK((text.model.context == 128 && text.training.batch_size == 6 && lines.model.context == 32));
  check_refusals(learn, {{" --minutes 1 --steps 10", "--steps: not allowed with --minutes"},
                         {" --minutes 0", "--minutes: expected a number from 0.001 to 1e+06, got '0'"},
                         {" --depth 0", "--depth: expected a whole number from 1 to 1000, got '0'"},
                         {" --depth 2 --load model", "--depth: not allowed with --load"}});
}
