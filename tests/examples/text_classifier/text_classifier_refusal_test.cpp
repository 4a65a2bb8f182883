#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "run_example.hpp"
#include "text_classifier_data.hpp"

namespace tg = tapegrad;

TEST_CASE("text_classifier reports invalid input in one line, with exit status 1") {
  const TemporaryFolder folder;
  const auto file = [&](const char* name, const std::string& content) { return folder.write(name, content); };
  const std::string good = file("good", reviews(40)), list = file("list", "one\ntwo\n");

  const auto refuses = [](const std::string& arguments, const std::string& message) {
    CAPTURE(arguments);
    const auto run = run_example("text_classifier " + arguments);
    CHECK(run.status == 1);
    CHECK(run.err.find(message) != std::string::npos);
    CHECK(run.err.find('\n') == run.err.size() - 1);
    CAPTURE(run.err);
    CHECK(run.err.starts_with("text_classifier: "));
  };

  const std::string forever = " --steps 100000000 ";  // errors occur before training
  SUBCASE("files") {
    refuses("--data " + folder.path("none"), "none: cannot be opened: No such file");
    refuses("--data " + file("empty", ""), "empty: expected a text file, got an empty one");
    refuses("--data " + file("blank", "\n\n\n\n\n\n\n\n\n\n\n"),
            "blank: expected lines of a label, a space and a text");
    refuses("--data " + file("short", "a b\nc d\n"),
            "short: expected at least 10 lines, since every tenth is held out");
    refuses("--train " + good + " --test " + file("no_label", "praise a\n\n  good\n"),
            "no_label:3: expected a label, a space and a text, got '  good'");
    refuses("--data " + file("latin1", "a b\nc caf\xe9\n"),
            "latin1:2: expected UTF-8, got the byte 0xe9 at character 6");
    refuses("--data " + file("cut", "a b\nc caf\xc3"), "cut:2: expected UTF-8, got the byte 0xc3 at character 6");
    refuses("--train " + file("one", "a b\na c\n") + " --test " + good, "one:1: expected at least two labels");
    refuses("--train " + good + " --test " + file("other", "praise a\nshrug b\n"),
            "other:2: expected a label of the model (blame, praise), got 'shrug'");
    refuses("--languages english " + folder.path("none"), "none: cannot be opened");
    refuses("--languages " + list + ' ' + file("more", "three\n"), "--words: expected at most 2");
    refuses("--load " + good + " --classify a", "good");
    refuses("--data " + good + " --explain a --explain-to " + folder.path("none/map"),
            "none/map.csv: expected a path in a writable folder");
    refuses("--data " + good + " --save " + folder.path("none/model"),
            "none/model: expected a path in a writable folder");
    refuses("--data " + good + forever + "--page " + folder.path("none/page") + " a",
            "none/page: expected a path in a writable folder");
    refuses("--data " + good + forever + "--page " + good, "good: expected an output file, got an input file");
  }
  SUBCASE("saved models") {
    const std::string model = folder.path("model"), other = folder.path("other");
    REQUIRE(
        run_example("text_classifier --positions yes --width 8 --heads 1 --steps 1 --data " + good + " --save " + model)
            .status == 0);
    const tg::Metadata metadata = tg::load_metadata(model);
    const tg::MultiHeadAttention<> strange(8, 1);
    for (const std::string setting : {"width", "heads", "max_length"}) {
      auto settings = nlohmann::json::parse(metadata.at("text_classifier"));
      settings[setting] = 10'000'000;
      tg::save(strange, other, {{"text_classifier", settings.dump()}});
      refuses("--classify a --load " + other, "other: expected settings saved by text_classifier, got others: " +
                                                  setting + ": expected a whole number from 1 to ");
    }
    auto settings = nlohmann::json::parse(metadata.at("text_classifier"));
    settings["pairs"] = std::vector(100'000, std::vector{4, 4});
    tg::save(strange, other, {{"text_classifier", settings.dump()}});
    refuses("--classify a --load " + other, "others: pairs: expected at most ");
    for (const char* setting : {"vocabulary", "labels"}) {
      auto settings = nlohmann::json::parse(metadata.at("text_classifier"));
      settings[setting] = nlohmann::json::array();
      tg::save(strange, other, {{"text_classifier", settings.dump()}});
      refuses("--classify a --load " + other, "other: expected ");
    }
  }
  SUBCASE("options") {
    refuses("--nonsense", "--nonsense");
    refuses("--steps many", "--steps: expected a whole number of at least 1, got 'many'");
    refuses("--steps -3", "--steps: expected a whole number of at least 1, got '-3'");
    refuses("--seed 1.5", "--seed: expected a whole number of at least 0, got '1.5'");
    refuses("--lr nan", "--lr: expected a number from 0 to 1e+06, got 'nan'");
    refuses("--dropout 1", "--dropout: expected a number from 0 to 0.99, got '1'");
    refuses("--token-dropout 1", "--token-dropout: expected a number from 0 to 0.99, got '1'");
    refuses("--min-count 0", "--min-count: expected a whole number of at least 1, got '0'");
    refuses("--pairs maybe", "--pairs: expected yes|no, got 'maybe'");
    refuses("--residual 1", "--residual: expected yes|no, got '1'");
    refuses("--heads 7", "--heads: expected a divisor of the width 64, got 7");
    refuses("--data " + good + " --tokens bytes", "--tokens: expected characters|words, got 'bytes'");
    refuses("--languages english klingon", "got 'klingon'");
    refuses("--classify $(printf 'caf\\351')", "--classify: expected UTF-8, got the byte 0xe9 at character 4");
    refuses("--data " + good + forever + "--page", "--page: ");
    refuses("--data " + good + forever + "--page ''", "--page: expected a file path, got an empty one");
    refuses("--data " + good + forever + "--page page $(printf 'caf\\351')",
            "--page: expected UTF-8, got the byte 0xe9 at character 4");
    refuses("--data " + good + " --lr 1000 --steps 100", "; use a lower learning rate");
  }
  SUBCASE("conflicting options") {
    refuses("--tokens words", "--tokens: requires --data or --train");
    refuses("--train " + good, "--train: requires --test");
    refuses("--test " + good, "--test: requires --train or --load");
    refuses("--data " + good + " --test " + good, "--test: not allowed with --data");
    refuses("--data " + good + " --words 100", "--words: not allowed with --data");
    refuses("--load model", "--load: requires --classify, --explain, --page, --data or --test");
    refuses("--load model --page page", "--page: expected FILE and TEXT");
    refuses("--data " + good + " --folds 3 --page page", "--page: not allowed with --folds");
    refuses("--data random --page page", "--page: not allowed with --data random");
    refuses("--load model --classify a --steps 3", "--steps: not allowed with --load");
    refuses("--classify a --explain-to name", "--explain-to: requires --explain");
    refuses("--load model --classify a --min-count 1", "--min-count: not allowed with --load");
    refuses("--data random --min-count 1", "--min-count: not allowed with --data random");
    refuses("--data random --explain a", "--explain: not allowed with --data random");
    refuses("--data random --save model", "--save: not allowed with --data random");
  }
}
