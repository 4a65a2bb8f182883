// Input that text_classifier refuses. learners_test.cpp has what language_model refuses, too.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "run_example.hpp"
#include "text_classifier_data.hpp"

namespace tg = tapegrad;

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
  REQUIRE(run_example("text_classifier --positions yes --max-length 9 --width 8 --heads 1 --steps 1 --data " +
                      folder.write("good", reviews(40)) + " --save " + model)
              .status == 0);
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
      {"--token-dropout 1", "--token-dropout: expected a number from 0 to 0.99, got '1'"},
      {"--min-count 0", "--min-count: expected a whole number of at least 1, got '0'"},
      {"--prior maybe", "--prior: expected yes|no, got 'maybe'"},
      {"--pairs maybe", "--pairs: expected yes|no, got 'maybe'"},
      {"--residual 1", "--residual: expected yes|no, got '1'"},
      {"--languages english klingon", "got 'klingon'"},
      {"--classify $(printf 'caf\\351')", "--classify: expected UTF-8, got the byte 0xe9 at character 4"},
      {"--tokens words", "--tokens: requires --data or --train"},
      {"--load model", "--load: requires --classify, --explain, --page, --data or --test"},
      {"--load model --classify a --steps 3", "--steps: not allowed with --load"},
      {"--load model --classify a --min-count 1", "--min-count: not allowed with --load"},
      {"--load model --classify a --prior no", "--prior: not allowed with --load"},
      {"--data random --prior yes", "--prior: not allowed with --data random"},
      {"--data random --min-count 1", "--min-count: not allowed with --data random"}};
  check_refusals("text_classifier", rows);
}
