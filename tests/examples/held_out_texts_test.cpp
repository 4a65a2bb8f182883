#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../../examples/common/interrupt.hpp"
#include "../../examples/text_classifier/split.hpp"
#include "run_example.hpp"

namespace {

const std::string small = " --width 8 --heads 2 --batch-size 16 ";

/// Two in three texts reveal their label, the others are random, so long training overfits.
std::string noisy_texts(int lines) {
  std::ostringstream text;
  unsigned state = 7;
  const auto next = [&](unsigned n) { return (state = state * 1103515245u + 12345u) / 65536u % n; };
  for (int i = 0; i < lines; ++i) {
    const bool up = i % 3 != 0;
    text << (up ? "up" : "down") << ' '
         << (next(3) == 0 ? "either"
             : up         ? "rise"
                          : "fall")
         << " n" << next(40) << " n" << next(40) << '\n';
  }
  return text.str();
}

}  // namespace

TEST_CASE("text_classifier --validation keeps, saves and tests the weights with the lowest loss") {
  const TemporaryFolder folder;
  const std::string model = folder.path("model"), shorter = folder.path("shorter"),
                    learn = "text_classifier --data " + folder.write("data", noisy_texts(200)) + small +
                            "--optimizer adamw --lr 0.01 --decay none --dropout 0 --token-dropout 0"
                            " --validation 0.2 --eval-every 20 ";
  const auto run = run_well(learn + "--steps 300 --save " + model);
  CHECK(contains(run.out, "180 for training, 20 for testing\n36 of them held out for validation\n"));
  const std::vector<double> losses = run.numbers_after("steps: validation loss ");
  REQUIRE(losses.size() == 15);
  const auto best = std::min_element(losses.begin(), losses.end());
  REQUIRE(best != losses.end() - 1);  // it overfits
  const std::string step = std::to_string(20 * (best - losses.begin() + 1));
  CHECK(contains(run.out, "\nkeeping the weights after " + step + " steps, with the lowest validation loss, "));

  const auto stopped = run_example(learn + "--steps " + step + " --save " + shorter);  // draws the same numbers
  CHECK(folder.read("shorter") == folder.read("model"));
  CHECK(stopped.out_from("test accuracy") == run.out_from("test accuracy"));

  // Patience stops at the first minimum followed by three higher losses.
  std::size_t lowest = 0, n = 0;
  while (n + 1 < losses.size() && n - lowest < 3)
    if (losses[++n] < losses[lowest]) lowest = n;
  REQUIRE(n == lowest + 3);
  const auto impatient = run_well(learn + "--steps 300 --patience 3");
  CHECK(impatient.numbers_after("steps: validation loss ").size() == n + 1);
  CHECK(contains(impatient.out, "\nkeeping the weights after " + std::to_string(20 * (lowest + 1)) + " steps"));
  CHECK(contains(impatient.out,
                 "\nstopped early: no lower validation loss since step " + std::to_string(20 * (lowest + 1)) + '\n'));
}

TEST_CASE("text_classifier --folds tests every text once, and prints the mean and deviation of the folds") {
  const TemporaryFolder folder;
  const auto run = run_well("text_classifier --data " + folder.write("data", noisy_texts(125)) + small +
                            "--optimizer adamw --lr 0.01 --steps 60 --validation 0.1 --folds 4");
  CHECK(run.out.starts_with("125 texts in 4 folds\n"));
  std::vector<double> accuracies;
  double sum = 0;
  for (int n = 1; n <= 4; ++n) {
    const std::string words = "\nfold " + std::to_string(n) + " of 4: accuracy ", line = run.out_from(words);
    REQUIRE(line != "");
    accuracies.push_back(std::stod(line.substr(words.size())));
    CHECK(line.find(n == 1 ? "% of 32 texts, naive Bayes " : "% of 31 texts, naive Bayes ") == line.find('%'));
    sum += accuracies.back();
  }
  double squares = 0;
  for (const double accuracy : accuracies) squares += (accuracy - sum / 4) * (accuracy - sum / 4);
  CHECK(run.numbers_after("\nmean accuracy of 4 folds ").at(0) == doctest::Approx(sum / 4).epsilon(0.002));
  const std::vector<double> baselines = run.numbers_after(" texts, naive Bayes ");
  REQUIRE(baselines.size() == 4);
  const double baseline = std::accumulate(baselines.begin(), baselines.end(), 0.0) / 4;
  CHECK(Run{0, run.out_from("\nmean accuracy of "), ""}.number_after(", naive Bayes ") ==
        doctest::Approx(baseline).epsilon(0.002));
  CHECK(run.numbers_after("%, standard deviation ").at(0) == doctest::Approx(std::sqrt(squares / 3)).epsilon(0.02));
  CHECK(sum / 4 > 60);
  CHECK(contains(run.out, " of 125 correct; "));
  std::istringstream table(run.out_from("precision"));
  for (const auto& [label, count] : {std::pair("down", "42"), std::pair("up", "83")}) {
    std::string line;
    do std::getline(table, line);
    while (table && !line.starts_with(label));
    CHECK(line.ends_with(std::string(" ") + count));
  }
  CHECK(!contains(run.out, "the first test text"));
}

TEST_CASE("A stop request for the whole job also applies to parts that begin later") {
  const examples::Interrupt whole;
  {
    const examples::Interrupt part;
    CHECK(!part.requested());
  }
  std::raise(SIGINT);
  const examples::Interrupt part;
  CHECK(part.status() == 130);
  CHECK(whole.status() == 130);
}

TEST_CASE("Ctrl-C ends a cross-validation with the finished folds") {
  const TemporaryFolder folder;
  const auto run = run_interrupted_at(
      "fold 2 of", "text_classifier --steps 3000 --folds 100 --data " + folder.write("data", noisy_texts(200)) + small);
  CHECK(run.err == "");
  CHECK(run.status == 130);
  CHECK(run.out_from("interrupted; keeping") != "");
  CHECK(run.out_from("\nmean accuracy of ") != "");
}

namespace {

std::vector<Example> examples_of(const std::string& labels) {
  std::vector<Example> examples;
  for (const char label : labels) examples.push_back({std::string(1, label), {}, std::to_string(examples.size())});
  return examples;
}

}  // namespace

TEST_CASE("Texts are divided into parts of equal size with an equal share of every label") {
  const std::vector<Example> examples = examples_of("aaaaaaaaaaaabbbbbbbbccccd");  // 12, 8, 4 and 1
  const std::vector<std::size_t> part_of = deal(examples, 4);
  REQUIRE(part_of.size() == examples.size());
  std::map<std::size_t, std::map<std::string, int>> counts;
  for (std::size_t i = 0; i < examples.size(); ++i) ++counts[part_of[i]][examples[i].label];
  REQUIRE(counts.size() == 4);
  int with_d = 0;
  for (auto& [part, labels] : counts) {
    CHECK(labels["a"] == 3);
    CHECK(labels["b"] == 2);
    CHECK(labels["c"] == 1);
    with_d += labels["d"];

    const Data data = fold(examples, part_of, part);
    CHECK(data.train.size() + data.test.size() == examples.size());
    std::set<std::string> seen;
    for (const auto* side : {&data.train, &data.test})
      for (const Example& example : *side) CHECK(seen.insert(example.place).second);
    for (const Example& example : data.test) CHECK(part_of[std::stoul(example.place)] == part);
  }
  CHECK(with_d == 1);
  CHECK(deal(examples, 4) != part_of);  // at random
}

TEST_CASE("A share of the texts is taken from every label, and the rest stays in order") {
  std::vector<Example> examples =
      examples_of("abababababababababababababababababababababbbbbbbbbbbbbbbbbbb");  // 21 and 39
  const std::vector<Example> taken = take_share(examples, 0.1);
  CHECK(taken.size() == 6);
  CHECK(examples.size() == 54);
  CHECK(std::count_if(taken.begin(), taken.end(), [](const Example& e) { return e.label == "a"; }) == 2);
  CHECK(std::is_sorted(examples.begin(), examples.end(),
                       [](const Example& a, const Example& b) { return std::stoi(a.place) < std::stoi(b.place); }));
  CHECK_THROWS_WITH_AS(take_share(examples, 0.001),
                       doctest::Contains("--validation: expected a share that holds out some"), std::runtime_error);
  CHECK(examples.size() == 54);
}

TEST_CASE("text_classifier refuses options that conflict with validation and folds") {
  const TemporaryFolder folder;
  const std::string good = "--data " + folder.write("good", noisy_texts(40));
  const std::vector<Refused> rows{
      {good + " --validation 0", "--validation: expected a number from 0.001 to 0.9, got '0'"},
      {good + " --validation 0.001", "--validation: expected a share that holds out some of the 36 training texts"},
      {good + " --patience 3", "--patience: requires --validation"},
      {good + " --eval-every 3", "--eval-every: requires --validation"},
      {good + " --validation 0.1 --patience 0", "--patience: expected a whole number of at least 1, got '0'"},
      {good + " --folds 1", "--folds: expected a whole number of at least 2, got '1'"},
      {good + " --folds 41", "--folds: expected at most 40, the number of texts, got 41"},
      {good + " --folds 3 --save a", "--save: not allowed with --folds"},
      {good + " --folds 3 --classify a", "--classify: not allowed with --folds"},
      {"--train a --test b --folds 3", "--train: not allowed with --folds"},
      {"--data random --folds 3", "--folds: not allowed with --data random"},
      {"--data random --validation 0.1", "--validation: not allowed with --data random"},
      {"--load a --classify b --folds 3", "--folds: not allowed with --load"},
      {"--load a --classify b --validation 0.1", "--validation: not allowed with --load"}};
  for (const auto& [arguments, words] : rows)
    check_refusals("text_classifier", {{arguments, "text_classifier: " + words}});
}
