#include <tapegrad/tapegrad.hpp>
#include <tapegrad/testing.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../../examples/text_classifier/naive_bayes.hpp"
#include "run_example.hpp"
#include "text_classifier_data.hpp"

namespace tg = tapegrad;

namespace {

double accuracy(const Run& run) { return run.number_after("test accuracy "); }

}  // namespace

TEST_CASE("text_classifier learns labels from characters and prints a table with every test text") {
  const TemporaryFolder folder;
  const auto run = run_well("text_classifier --tokens characters --data " +
                            folder.write("words", words_of_three_languages(600)) + tiny + "--classify eauté KATOMI");
  CHECK(contains(run.out, "540 for training, 60 for testing\n"));
  CHECK(accuracy(run) > 80);  // guessing gives 33

  std::istringstream table(run.out_from("true \\ predicted"));
  std::string header, label;
  std::getline(table, header);
  CHECK(header == "true \\ predicted     isle     nörd      val");
  int all = 0, right = 0;
  for (int row = 0; row < 3; ++row) {
    table >> label;
    for (int column = 0; column < 3; ++column) {
      int count = 0;
      table >> count;
      all += count;
      if (row == column) right += count;
    }
  }
  CHECK(all == 60);
  CHECK(100.0 * right / all == doctest::Approx(accuracy(run)).epsilon(0.001));

  CHECK(contains(run.out_from("your words:"), "eauté    val"));
  CHECK(contains(run.out_from("your words:"), "KATOMI  isle"));
}

TEST_CASE("text_classifier learns labels from words, with or without positions, also from two files") {
  const TemporaryFolder folder;
  const std::string data = folder.write("data", reviews(200)), test = folder.write("test", reviews(30));
  for (const std::string& source : {"--data " + data, "--train " + data + " --test " + test + " --positions yes"}) {
    const auto run = run_well("text_classifier " + source + tiny + "--dropout 0.2 --classify 'a really dull story'");
    CHECK(accuracy(run) > 85);  // guessing gives 50
    CHECK(run.number_after("guessing gives 50.0%, naive Bayes ") > 85);
    CHECK(contains(run.out_from("your words:"), "a really dull story   blame"));
  }
}

TEST_CASE("text_classifier accepts a line with a label only as an empty text") {
  const TemporaryFolder folder;
  std::string lines = reviews(200), tests = "silence\nsilence \npraise the film is good .\nsilence\t\n";
  for (int i = 0; i < 20; ++i) lines += i % 2 ? "silence\n" : "silence \t \n";
  const std::string model = folder.path("model");
  const auto saved = run_well("text_classifier --train " + folder.write("train", lines) + " --test " +
                              folder.write("test", tests) + tiny + "--classify '' 'a good book' --save " + model);
  CHECK(contains(saved.out, "220 for training, 4 for testing\n"));
  CHECK(contains(saved.out, "4 of 4 correct"));
  CHECK(!contains(saved.out, "nan"));

  std::istringstream yours(saved.out_from("your words:"));
  std::string line;
  for (const char* expected : {"your words:", "  (empty)      silence", "  a good book   praise"}) {
    std::getline(yours, line);
    CHECK(line.starts_with(expected));
  }
  const auto alone = run_example("text_classifier --load " + model + " --classify '' --explain '' --explain-to " +
                                 folder.path("map"));  // a batch of one
  CHECK(contains(alone.out_from("your words:"), "  (empty)  silence"));
  CHECK(contains(alone.out_from("attention on the text"), "  (empty)  silence"));
  CHECK(contains(folder.read("map.csv"), "\n0,1,0,⊣,⊢,"));
}

TEST_CASE("text_classifier prints precision, recall and F1, also of labels without predictions or texts") {
  const TemporaryFolder folder;
  std::string lines;  // identical texts, so the most frequent label is predicted
  for (int i = 0; i < 60; ++i) lines += i % 6 == 0 ? "rare same\n" : i % 6 == 1 ? "absent same\n" : "common same\n";
  const auto run = run_well("text_classifier --train " + folder.write("train", lines) + tiny + "--test " +
                            folder.write("test", "common same\nrare same\ncommon same\ncommon same\n"));
  CHECK(contains(run.out,
                 "\n"
                 "                precision   recall       F1    tests\n"
                 "absent                  -        -        -        0\n"
                 "common              75.0%   100.0%    85.7%        3\n"
                 "rare                 0.0%     0.0%     0.0%        1\n"
                 "mean                37.5%    50.0%    42.9%\n"));
}

TEST_CASE("text_classifier lists the labels with the lowest F1 if there are too many for a table") {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 25 * 8; ++i)  // the model cannot tell the first two apart
    lines += "label" + std::to_string(100 + i % 25) + " word" + std::to_string(i % 25 == 1 ? 0 : i % 25) + '\n';
  const std::string data = folder.write("lines", lines);
  const auto run = run_well("text_classifier --train " + data + " --test " + data + " --width 32 --heads 2 --lr 0.05");
  const std::string table = run.out_from("25 labels are too many for a table; those with the lowest F1:\n");
  CHECK(table.find("\nlabel100 ") < table.find("\nlabel102 "));
  CHECK(table.find("\nlabel101 ") < table.find("\nlabel102 "));
  CHECK(contains(table, "\nlabel119 "));
  CHECK(!contains(table, "\nlabel120 "));
  CHECK(contains(table, "\n... and 5 more labels\nmean "));
  CHECK(contains(run.out, "the most frequent errors"));
}

TEST_CASE("text_classifier aligns its tables under long, wide, accented and combined labels") {
  const TemporaryFolder folder;
  const std::string labels[] = {"日本語", "e\u0301te\u0301", "a_label_of_more_than_sixteen", "ünï"};
  std::string lines;
  for (int i = 0; i < 80; ++i) lines += labels[i % 4] + " text\n";
  const std::string data = folder.write("lines", lines);
  const auto run = run_example("text_classifier --train " + data + " --test " + data + " --steps 1");
  std::istringstream tables(run.out_from("true \\ predicted"));
  const auto columns = [](const std::string& line) {  // an ideograph has two columns, a combining acute none
    std::size_t count = 0;
    for (const unsigned char byte : line) count += byte == 0xcc ? 0 : byte >= 0xe0 ? 2 : (byte & 0xc0) != 0x80;
    return count;
  };
  std::string line;
  for (int table = 0; table < 2; ++table) {
    std::getline(tables, line);
    const std::size_t expected = columns(line);
    for (int row = 0; row < 4; ++row) {
      std::getline(tables, line);
      CAPTURE(line);
      CHECK(columns(line) == expected);
    }
    std::getline(tables, line);  // the line between the tables
  }
}

TEST_CASE("A saved text_classifier predicts the same after loading") {
  const TemporaryFolder folder;
  const std::string data = folder.write("words", words_of_three_languages(300)), model = folder.path("model");
  const std::string words = " --classify eauté KATOMI xyz";
  const auto saved = run_example("text_classifier --tokens characters --positions yes --max-length 9 --data " + data +
                                 tiny + "--save " + model + words);
  const auto loaded = run_well("text_classifier --load " + model + " --data " + data + words);
  REQUIRE(saved.out_from("test accuracy") != "");
  CHECK(saved.out_from("test accuracy") == loaded.out_from("test accuracy"));
  CHECK(run_example("text_classifier --load " + model + words).out_from("your words:") ==
        saved.out_from("your words:"));

  const auto tested = run_example("text_classifier --load " + model + " --test " + data);
  CHECK(tested.out.starts_with("300 for testing\n"));

  const auto strange = run_example("text_classifier --load " + model + " --data " + folder.write("r", reviews(30)));
  CHECK(strange.status == 1);
  CHECK(contains(strange.err, "r:10: expected a label of the model (isle, nörd, val), got 'blame'"));
}

TEST_CASE(
    "A saved text_classifier of words has its pairs and counts, and one saved before these existed loads without "
    "them") {
  const TemporaryFolder folder;
  const std::string data = folder.write("data", reviews(100)), model = folder.path("model"),
                    texts = " --classify 'the book is really dull .' 'good film'";
  const auto saved = run_example("text_classifier --pairs yes --data " + data + tiny + "--save " + model + texts);
  REQUIRE(contains(saved.out_from("test accuracy"), ", naive Bayes "));
  REQUIRE(saved.out_from("your words:") != "");
  CHECK(run_example("text_classifier --load " + model + " --data " + data + texts).out_from("test accuracy") ==
        saved.out_from("test accuracy"));

  const auto earlier = run_example("text_classifier --pairs no --prior no --residual no --data " + data + tiny +
                                   "--save " + model + texts);
  std::string bytes = folder.read("model");
  for (const char* setting :
       {"\\\"pairs\\\"", "\\\"prior\\\"", "\\\"naive_bayes\\\"", "\\\"residual\\\"", "\\\"token_dropout\\\""}) {
    const std::size_t place = bytes.find(setting);
    REQUIRE(place != bytes.npos);
    bytes[place + 2] = 'x';  // another setting's name
  }
  const auto loaded = run_well("text_classifier --load " + folder.write("earlier", bytes) + texts);
  CHECK(loaded.out_from("your words:") == earlier.out_from("your words:"));
  const auto tested = run_example("text_classifier --load " + folder.path("earlier") + " --data " + data);
  CHECK(!contains(tested.out_from("test accuracy"), "naive Bayes"));
}

TEST_CASE("text_classifier knows words that occurred once, and ignores unknown words") {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += (i % 2 ? "praise w" : "blame w") + std::to_string(i) + '\n';
  const std::string data = folder.write("lines", lines), model = folder.path("model"),
                    command = "text_classifier --train " + data + " --test " + data + tiny + "--save " + model;
  const auto largest_of_unknown = [&] {
    const tg::Array<float> vectors = tg::read_safetensors(model).at("embedding.weight").as<float>();
    float largest = 0;
    for (std::size_t i = 0; i < vectors.shape()[1]; ++i) largest = std::max(largest, std::abs(vectors(1, i)));
    return largest;
  };
  CHECK(accuracy(run_example(command)) == 100);
  CHECK(largest_of_unknown() == 0);
  CHECK(accuracy(run_example(command + " --min-count 2")) == 50);
  CHECK(largest_of_unknown() > 0);
}

TEST_CASE("text_classifier learns the meaning of two adjacent words from pairs or naive Bayes") {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += i / 2 % 2 ? "yes so it is\n" : "no is it so\n";  // the same words
  const std::string data = folder.write("lines", lines);
  CHECK(accuracy(run_example("text_classifier --data " + data + tiny + "--prior no --pairs yes")) == 100);
  CHECK(accuracy(run_example("text_classifier --data " + data + tiny + "--prior no --pairs no")) < 100);
  CHECK(accuracy(run_example("text_classifier --data " + data + tiny + "--prior yes --pairs no")) == 100);
}

TEST_CASE("text_classifier --explain writes the attention of the heads, after training and after loading") {
  const TemporaryFolder folder;
  const std::string data = "text_classifier --tokens characters --data " +
                           folder.write("words", words_of_three_languages(200)) + tiny,
                    model = folder.path("model");
  const auto check = [&](const Run& run, const std::string& name) {
    CHECK(contains(run.out, "  KAtö  "));
    CHECK(contains(run.out, "2 heads, 6 x 6 tokens: " + folder.path(name + ".csv")));
    CHECK(contains(folder.read(name + ".csv"), "\n1,0,5,⊢,⊣,"));
    CHECK(folder.read(name + ".npy").size() == 128 + 2 * 6 * 6 * 4);
    CHECK(folder.read(name + ".gradients.npy").size() == 128 + 2 * 6 * 6 * 4);
    check_drawn(run, folder.path(name + ".png"));
  };
  check(run_example(data + "--save " + model + " --explain KAtö --explain-to " + folder.path("one")), "one");
  check(run_example("text_classifier --load " + model + " --explain KAtö --explain-to " + folder.path("two")), "two");
  CHECK(folder.read("one.csv") == folder.read("two.csv"));
}

TEST_CASE("text_classifier memorizes random sequences") {
  const auto run = run_well("text_classifier --data random --width 64 --steps 100 --lr 0.2 --batch-size 8");
  const auto loss_at = [&](const std::string& step) { return run.number_after("step " + step + " of 100   loss "); };
  CHECK(loss_at("  0") > 0.8);
  CHECK(loss_at("  0") < 1.5);
  CHECK(loss_at(" 10") > 0);  // ten lines, and the last step
  CHECK(loss_at(" 99") < 0.5);
}

TEST_CASE("text_classifier distinguishes the languages of Debian's word lists") {
  for (const char* list : {"american-english", "spanish", "italian"})
    if (!std::filesystem::exists(std::string("/usr/share/dict/") + list)) {
      MESSAGE("not tested: the word list " << list << " is not installed");
      return;
    }
  const auto run = run_well(
      "text_classifier --languages english spanish italian --words 1000 --steps 300"
      " --classify through grazie --batch-size 32");
  CHECK(contains(run.out, "found in several lists were dropped"));
  CHECK(contains(run.out, "2,700 for training, 300 for testing"));
  CHECK(accuracy(run) > 55);  // guessing gives 33
  CHECK(contains(run.out_from("your words:"), "through"));
}

TEST_CASE("text_classifier reads ISO-8859-1 with --encoding") {
  const TemporaryFolder folder;
  std::string latin1 = reviews(100);
  for (std::size_t i = 0; (i = latin1.find("dull", i)) != latin1.npos;) latin1.replace(i, 4, "pass\xe9");
  const auto run = run_well("text_classifier --encoding latin1 --data " + folder.write("latin1", latin1) + tiny +
                            "--classify passé");
  CHECK(contains(run.out_from("your words:"), "passé   blame"));
}

// ---- refusals; learners_test.cpp has what language_model refuses, too
// ------------------------------------------------

TEST_CASE("text_classifier refuses files in one line") {
  const TemporaryFolder folder;
  const auto file = [&](const char* name, const std::string& content) { return folder.write(name, content); };
  const std::string good = file("good", reviews(40)), list = file("list", "one\ntwo\n");
  const std::vector<Refused> rows{
      {"--data " + file("blank", "\n\n\n\n\n\n\n\n\n\n\n"), "blank: expected lines of a label, a space and a text"},
      {"--data " + file("short", "a b\nc d\n"), "short: expected at least 10 lines, since every tenth is held out"},
      {"--train " + good + " --test " + file("no_label", "praise a\n\n  good\n"),
       "no_label:3: expected a label, a space and a text, got '  good'"},
      {"--train " + file("one", "a b\na c\n") + " --test " + good, "one:1: expected at least two labels"},
      {"--train " + good + " --test " + file("other", "praise a\nshrug b\n"),
       "other:2: expected a label of the model (blame, praise), got 'shrug'"},
      {"--languages english " + folder.path("none"), "none: cannot be opened"},
      {"--languages " + list + ' ' + file("more", "three\n"), "--words: expected at most 2"},
      {"--data " + good + " --tokens bytes", "--tokens: expected characters|words, got 'bytes'"},
      {"--train " + good, "--train: requires --test"},
      {"--test " + good, "--test: requires --train or --load"},
      {"--data " + good + " --test " + good, "--test: not allowed with --data"},
      {"--data " + good + " --words 100", "--words: not allowed with --data"},
      {"--data " + good + " --folds 3 --page page", "--page: not allowed with --folds"}};
  check_refusals("text_classifier", rows);
}

TEST_CASE("text_classifier refuses saved models with other settings in one line") {
  const TemporaryFolder folder;
  const std::string model = folder.path("model"), other = folder.path("other");
  run_well("text_classifier --positions yes --max-length 9 --width 8 --heads 1 --steps 1 --data " +
           folder.write("good", reviews(40)) + " --save " + model);
  const tg::Metadata metadata = tg::load_metadata(model);
  const auto refuses = [&](const std::string& setting, const nlohmann::json& value, const std::string& words) {
    auto settings = nlohmann::json::parse(metadata.at("text_classifier"));
    settings[setting] = value;
    tg::save(tg::MultiHeadAttention<>(8, 1), other, {{"text_classifier", settings.dump()}});
    check_refusals("text_classifier", {{"--classify a --load " + other, words}});
  };
  for (const std::string setting : {"width", "heads", "max_length"})
    refuses(setting, 10'000'000,
            "other: expected settings saved by text_classifier, got others: " + setting +
                ": expected a whole number from 1 to ");
  refuses("pairs", std::vector(100'000, std::vector{4, 4}), "others: pairs: expected at most ");
  using nlohmann::json;
  const json counts = json::array({json::array({json::array({-1, 4}), json::array({1, 2, 3})})});
  refuses("naive_bayes", {{"texts", {1, 2}}, {"counts", counts}}, "others: naive_bayes: expected 2 counts");
  refuses("naive_bayes", {{"texts", {1, -2}}, {"counts", json::array()}}, "others: naive_bayes: expected 2 counts");
  for (const char* setting : {"vocabulary", "labels"}) refuses(setting, nlohmann::json::array(), "other: expected ");
}

TEST_CASE("text_classifier refuses options in one line") {
  const std::vector<Refused> rows{
      {"--steps -3", "--steps: expected a whole number of at least 1, got '-3'"},
      {"--seed 1.5", "--seed: expected a whole number of at least 0, got '1.5'"},
      {"--dropout 1", "--dropout: expected a number from 0 to 0.99, got '1'"},
      {"--min-count 0", "--min-count: expected a whole number of at least 1, got '0'"},
      {"--prior maybe", "--prior: expected yes|no, got 'maybe'"},
      {"--residual 1", "--residual: expected yes|no, got '1'"},
      {"--languages english klingon", "got 'klingon'"},
      {"--classify $(printf 'caf\\351')", "--classify: expected UTF-8, got the byte 0xe9 at character 4"},
      {"--tokens words", "--tokens: requires --data or --train"},
      {"--load model", "--load: requires --classify, --explain, --page, --data or --test"},
      {"--load model --classify a --steps 3", "--steps: not allowed with --load"},
      {"--load model --classify a --prior no", "--prior: not allowed with --load"},
      {"--data random --min-count 1", "--min-count: not allowed with --data random"}};
  check_refusals("text_classifier", rows);
}

// ---- naive Bayes ----------------------------------------------------------------------------------------------------

namespace {

const std::vector<examples::Ids> texts{{4, 5}, {4, 4}, {6}, {6, 5}};
const std::vector<std::int64_t> labels{0, 0, 1, 2};

/// The logarithms of the products, minus their mean. -> (1, labels)
tg::Array<float> centered(const std::vector<double>& products) {
  double mean = 0;
  for (const double product : products) mean += std::log(product) / static_cast<double>(products.size());
  tg::Array<float> scores(tg::Shape{1, products.size()});
  for (std::size_t i = 0; i < products.size(); ++i) scores(0, i) = static_cast<float>(std::log(products[i]) - mean);
  return scores;
}

}  // namespace

TEST_CASE("NaiveBayes counts each token and pair of a text once, with add-one smoothing") {
  const NaiveBayes bayes(texts, labels, 3);
  CHECK(!bayes.empty());
  // Labels 0, 1, 2 have 2, 1, 1 texts with 5, 1, 3 features: 4 5 4-5 and 4 4-4; 6; 6 5 6-5. Six of them are distinct.
  CHECK_CLOSE(bayes.scores({{4}}), centered({3 * 3 / 11., 2 * 1 / 7., 2 * 1 / 9.}), 1e-6);
  CHECK_CLOSE(bayes.scores({{4, 4}}), centered({3 * 3 * 2 / 121., 2 / 49., 2 / 81.}), 1e-6);
  CHECK_CLOSE(bayes.scores({{6, 5}}), centered({3 * 1 * 2 * 1 / 1331., 2 * 2 / 343., 2 * 2 * 2 * 2 / 729.}), 1e-6);
}

TEST_CASE("NaiveBayes ignores unknown features, and knows only the labels' frequency of an empty text") {
  const NaiveBayes bayes(texts, labels, 3);
  CHECK_CLOSE(bayes.scores({{}}), centered({3, 2, 2}), 1e-6);
  CHECK_CLOSE(bayes.scores({{7, 8}}), centered({3, 2, 2}), 1e-6);
  CHECK_CLOSE(bayes.scores({{7, 4, 8}}), bayes.scores({{4}}), 0);
  const NaiveBayes none({}, {}, 3);
  CHECK(none.empty());
  CHECK_CLOSE(none.scores({{4}}), centered({1, 1, 1}), 0);
}

TEST_CASE("NaiveBayes scores a training text without its own features, and counts them again") {
  NaiveBayes bayes(texts, labels, 3);
  const tg::Array<float> before = bayes.scores(texts), left_out = bayes.left_out_scores(texts, labels);
  CHECK((left_out.shape() == tg::Shape{4, 3}));
  // Without {4, 5}, label 0 has the features 4 and 4-4; 4-5 is unknown.
  const tg::Array<float> expected = centered({3 * 2 * 1 / 64., 2 * 1 * 1 / 49., 2 * 1 * 2 / 81.});
  for (std::size_t label = 0; label < 3; ++label) CHECK(left_out(0, label) == doctest::Approx(expected(0, label)));
  CHECK_CLOSE(bayes.scores(texts), before, 0);
}

TEST_CASE("NaiveBayes has the same scores after saving its counts, and refuses other settings") {
  const NaiveBayes bayes(texts, labels, 3);
  const auto settings = nlohmann::json::parse(bayes.settings().dump());
  CHECK_CLOSE(NaiveBayes(settings, 3).scores(texts), bayes.scores(texts), 0);
  CHECK_THROWS_AS(NaiveBayes(settings, 2), std::invalid_argument);
  CHECK_THROWS_AS(NaiveBayes(nlohmann::json::object(), 3), nlohmann::json::exception);
}
