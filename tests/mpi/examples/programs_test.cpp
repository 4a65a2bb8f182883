// Runs the training programs on several ranks.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "../../support/run_example.hpp"
#include "../../support/temporary_folder.hpp"
#include "../../support/text.hpp"

namespace {

/// Runs a program alone or with mpirun, for at most two minutes.
Run run_on(int ranks, const std::string& program_and_arguments) {
  const std::string mpirun = ranks == 1 ? "" : TAPEGRAD_MPIRUN " -n " + std::to_string(ranks) + " ";
  const Run run = run_shell("timeout 120 " + mpirun + "$examples/" + program_and_arguments);
  return run;
}

/// The losses in a log.
std::vector<double> losses(const std::string& log) {
  std::vector<double> found;
  std::istringstream lines(log);
  std::string line;
  std::getline(lines, line);  // column names
  while (std::getline(lines, line)) found.push_back(std::stod(line.substr(line.find(',') + 1)));
  return found;
}

/// Lines of different lengths, so the ranks' parts of a batch have different numbers of letters.
std::string lines_of_many_lengths() {
  std::string text;
  for (int i = 0; i < 60; ++i) text += std::string(std::size_t(1 + i * 7 % 23), char('a' + i % 5)) + "bc\n";
  return text;
}

std::string small_model(const std::string& data, int batch_size = 7) {
  return "language_model --data " + data + " --lines --layers 2 --heads 2 --width 16 --context 24 --batch-size " +
         std::to_string(batch_size) + " --optimizer adamw --lr 0.01 --warmup 0 --decay none --length 1 ";
}

}  // namespace

// ---- the same training ----------------------------------------------------------------------------------------------

TEST_CASE("On any number of ranks the losses match one process, in one log and one report") {
  const TemporaryFolder folder;
  const std::string data = folder.write("lines", lines_of_many_lengths());
  const std::pair<std::string, int> options_and_batches[] = {{"", 7},
                                                             {"", 1},  // fewer rows than ranks
                                                             {"--accumulate 3 ", 7},
                                                             {"--divide-state ", 7},
                                                             {"--optimizer sgd --momentum 0.9 --divide-state ", 7}};
  for (const auto& [more, batch_size] : options_and_batches) {
    std::vector<double> alone;
    std::string test_alone;
    for (const int ranks : {1, 2, 4}) {
      const std::string log = folder.path("log" + std::to_string(ranks));
      std::string given =
          small_model(data, batch_size) + "--steps 20 --eval-every 10 --dropout 0 --log " + log + " " + more;
      if (contains(more, "sgd")) given.replace(given.find("--optimizer adamw "), 18, "");
      const Run run = run_on(ranks, given);
      CHECK(run.status == 0);
      CHECK(run.err == "");
      CHECK(count(run.out, "after 20 steps: validation loss") == 1);
      CHECK(count(run.out, "sample: ") == 2);
      const std::vector<double> of_ranks = losses(folder.read("log" + std::to_string(ranks)));
      REQUIRE(of_ranks.size() == 20);
      if (ranks == 1) alone = of_ranks;
      for (std::size_t i = 0; i < 20; ++i) CHECK(of_ranks[i] == doctest::Approx(alone[i]).epsilon(1e-4));
      CHECK(contains(run.out, "optimizer state: ") == (ranks > 1 && contains(more, "--divide-state")));
    }
  }
}

TEST_CASE("The same seed and number of ranks give the same bits, also with a divided state") {
  const TemporaryFolder folder;
  const std::string data = folder.write("lines", lines_of_many_lengths());
  const auto train = [&](const std::string& name, const std::string& more = "") {
    const Run run =
        run_on(2, small_model(data) + "--steps 12 --dropout 0.2 --checkpoint " + folder.path(name) + " " + more);
    CHECK(run.status == 0);
    return folder.read(name);
  };
  const std::string first = train("first");
  CHECK(first.size() > 1000);
  // The beginning of a checkpoint contains its own path.
  const auto weights = [](const std::string& checkpoint) { return checkpoint.substr(checkpoint.size() / 4); };
  CHECK(weights(train("again")) == weights(first));
  CHECK(weights(train("parts", "--divide-state")) == weights(first));
}

TEST_CASE("A run resumes to the same bits on as many ranks, and says if their number differs") {
  const TemporaryFolder folder;
  const std::string data = folder.write("lines", lines_of_many_lengths()), model = folder.path("model");
  const std::string run_of = small_model(data) + "--dropout 0.1 --checkpoint-every 5 --checkpoint ";
  CHECK(run_on(2, run_of + folder.path("whole") + " --steps 12 --save " + folder.path("whole_model")).status == 0);
  CHECK(run_on(2, run_of + folder.path("run") + " --steps 6").status == 0);
  for (const int ranks : {2, 4, 1}) {
    const std::string copy = folder.write("copy", folder.read("run"));
    const Run run = run_on(ranks, "language_model --resume " + copy + " --steps 12 --length 1 --save " + model +
                                      (ranks == 4 ? " --divide-state" : ""));
    CHECK(run.status == 0);
    CHECK(contains(run.out, "resuming at step 6"));
    CHECK(contains(run.out, "will not be bit-identical") == (ranks != 2));
    if (ranks == 2) CHECK(folder.read("model") == folder.read("whole_model"));
  }
}

TEST_CASE("Of several ranks of gpt2 the first makes the tokenizer, the same as in one process") {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", lines_of_many_lengths());
  for (const int ranks : {1, 4}) {
    const std::string made = "made" + std::to_string(ranks);
    const Run run = run_on(ranks, "gpt2 " + folder.path(made) + " --train-tokenizer " + text + " --vocabulary 265");
    CHECK(run.status == 0);
    CHECK(run.out == "265 tokens: " + folder.path(made) + "/vocab.json and merges.txt\n");
    CHECK(folder.read(made + "/merges.txt") == folder.read("made1/merges.txt"));
    CHECK(folder.read(made + "/vocab.json") == folder.read("made1/vocab.json"));
  }
}

TEST_CASE("text_classifier trains, validates and cross-validates on several ranks") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += std::string(i % 2 ? "even" : "odd") + '\t' + std::string(std::size_t(1 + i % 9), i % 2 ? 'e' : 'o') + '\n';
  const std::string common = "text_classifier --data " + folder.write("labelled", text) +
                             " --width 8 --heads 2 --batch-size 5 --steps 30 --dropout 0 --token-dropout 0 ";
  for (const std::string more : {"--validation 0.2 --eval-every 10", "--folds 3"}) {
    const Run alone = run_on(1, common + more), both = run_on(2, common + more);
    CHECK(alone.status == 0);
    CHECK(both.status == 0);
    const std::string words = more == "--folds 3" ? "\nmean accuracy" : "\ntrue \\ predicted";
    CHECK(alone.out_from(words) != "");
    CHECK(both.out_from(words).substr(0, 200) == alone.out_from(words).substr(0, 200));
  }
}

TEST_CASE("pronounce trains, validates and tests on several ranks as in one process") {
  const TemporaryFolder folder;
  std::string pairs;
  for (int i = 0; i < 60; ++i) pairs += "no. " + std::to_string(i * i) + '\t' + std::to_string(i % 7) + '\n';
  const std::string common = "pronounce --data " + folder.write("pairs", pairs) +
                             " --width 16 --heads 2 --layers 1 --batch-size 7 --steps 20 --eval-every 10 ";
  std::vector<double> alone;
  std::string tested_alone;
  for (const std::string more : {"", "--divide-state "})
    for (const int ranks : {1, 2, 4}) {
      CAPTURE(more);
      CAPTURE(ranks);
      const Run run = run_on(ranks, common + more + "--log " + folder.path("log"));
      CHECK(run.status == 0);
      CHECK(run.err == "");
      CHECK(count(run.out, "after 20 steps: validation loss") == 1);
      CHECK(contains(run.out, "optimizer state: ") == (ranks > 1 && !more.empty()));
      const std::string tested = run.out_from(" test sources: ");
      CHECK(tested != "");
      if (alone.empty()) tested_alone = tested;
      CHECK(tested == tested_alone);
      const std::vector<double> found = losses(folder.read("log"));
      REQUIRE(found.size() == 20);
      if (alone.empty()) alone = found;
      for (std::size_t i = 0; i < 20; ++i) CHECK(found[i] == doctest::Approx(alone[i]).epsilon(1e-3));
    }
}

// ---- the end of a run -----------------------------------------------------------------------------------------------

TEST_CASE("An error on all ranks is printed once, and an error on one rank by that rank") {
  const TemporaryFolder folder;
  const std::string data = folder.write("lines", lines_of_many_lengths());
  const Run all = run_on(2, "language_model --data /none/such");
  CHECK(all.status == 1);
  CHECK(count(all.err, "language_model: /none/such: cannot be opened") == 1);

  const auto start = std::chrono::steady_clock::now();
  const Run one = run_shell(TAPEGRAD_MPIRUN " -n 1 $examples/" + small_model(data) + "--steps 100000 : -n 1 " +
                            "$examples/language_model --data /none/such");
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  CHECK(one.status == 1);
  CHECK(count(one.err, "language_model: rank 1 of 2: /none/such: cannot be opened") == 1);
  CHECK(taken.count() < 20);
}

TEST_CASE("Ctrl-C ends all ranks and saves the run, and a killed rank ends all with the last checkpoint") {
  // Matches the beginning of the command line: those of mpirun and the shell contain the file's name, too.
  const std::string rank_of_run = "'^[^ ]*/language_model .*run_that_ends'";
  const std::vector<std::string> endings{"pkill -INT --parent $program", "pkill -KILL --newest --full " + rank_of_run};
  for (const std::string& ending : endings) {
    CAPTURE(ending);
    const TemporaryFolder folder;
    const std::string data = folder.write("lines", lines_of_many_lengths());
    const std::string kept = folder.path("run_that_ends"), out = folder.path("out");
    // A shell's background programs ignore SIGINT, unless env(1) restores it.
    const Run run =
        run_shell("env --default-signal=INT timeout --foreground 60 " TAPEGRAD_MPIRUN " -n 2 $examples/" +
                  small_model(data) + "--steps 1000000 --checkpoint-every 1 --checkpoint " + kept + " >" + out +
                  " & program=$!\nuntil [ -s " + kept + " ] || ! kill -0 $program; do sleep 0.05; done\n" + ending +
                  "\nwait $program; status=$?; sleep 1; pgrep --full " + rank_of_run + "; exit $status");
    CHECK(run.status != 0);
    CHECK(run.out == "");  // no rank is left
    if (contains(ending, "-INT")) CHECK(contains(folder.read("out"), "interrupted"));
    CHECK(run_interrupted_at("resuming at step", "language_model --resume " + kept).status == 130);
  }
}
