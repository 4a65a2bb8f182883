#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "../../../examples/gpt/model.hpp"
#include "language_model_texts.hpp"

namespace tg = tapegrad;

TEST_CASE("language_model reports invalid input in one line, with exit status 1") {
  const TemporaryFolder folder;
  const auto file = [&](const char* name, const std::string& content) { return folder.write(name, content); };
  const std::string text = file("good", rhyme(20)), list = file("list", joined(names(40)));

  const auto refuses = [](const std::string& arguments, const std::string& message) {
    CAPTURE(arguments);
    const auto run = run_example("language_model " + arguments);
    CAPTURE(run.err);
    CHECK(run.status == 1);
    CHECK(run.err.find(message) != std::string::npos);
    CHECK(run.err.find('\n') == run.err.size() - 1);
    CHECK(run.err.starts_with("language_model: "));
  };

  const std::string forever = " --steps 100000000 ";  // errors occur before training
  SUBCASE("files") {
    refuses("--data " + folder.path("none"), "none: cannot be opened: No such file");
    refuses("--data " + folder.path(""), "expected a text file, got a folder");
    refuses("--data " + file("empty", ""), "empty: expected a text file, got an empty one");
    refuses("--lines --data " + file("blank", "\n\n\n\n\n\n\n\n\n\n\n"), "blank: expected at least 10 lines");
    refuses("--lines --data " + file("short", "a\nb\n"),
            "short: expected at least 10 lines, since every tenth is held out");
    refuses("--data " + file("little", "abc\n"),
            "little: expected at least 20 characters, since the last tenth is held out");
    refuses("--data " + file("once", "abcdefghijklmnopqrstuvwxyz\n"),
            "once: expected characters that occur at least twice");
    refuses("--data " + file("latin1", "a b\nc caf\xe9\n"),
            "latin1:2: expected UTF-8, got the byte 0xe9 at character 6");
    refuses("--data " + file("cut", "a b\nc caf\xc3"), "cut:2: expected UTF-8, got the byte 0xc3 at character 6");
    refuses("--language " + folder.path("none"), "none: cannot be opened");
    refuses("--data " + text + " --save " + folder.path("none/model"),
            "none/model: expected a path in a writable folder");
    refuses("--data " + text + " --explain ist --explain-to " + folder.path("none/map"),
            "none/map.csv: expected a path in a writable folder");
    refuses("--data " + text + forever + "--page " + folder.path("none/page") + " ist",
            "none/page: expected a path in a writable folder");
    refuses("--data " + text + forever + "--page " + text, "good: expected an output file, got an input file");
    refuses("--load " + folder.path("none"), "none");
    refuses("--load " + text, "good");
  }
  SUBCASE("names of files that are not UTF-8, which a saved run cannot store") {
    const std::string strange = folder.path("$(printf 'caf\\351')"), front = "--data " + text + forever;
    const auto message = [](const std::string& option) {
      return option + ": expected UTF-8, got the byte 0xe9 at character ";
    };
    refuses(front + "--checkpoint " + strange, message("--checkpoint"));
    refuses(front + "--checkpoint run --log " + strange, message("--log"));
    refuses(front + "--checkpoint run --save " + strange, message("--save"));
    const auto run =
        run_example("language_model --width 8 --heads 1 --layers 0 --steps 1 --data " + text + " --save " + strange);
    CHECK(run.err == "");
    CHECK(std::filesystem::exists(folder / "caf\xe9"));
  }
  SUBCASE("saved models") {
    const std::string model = folder.path("model"), other = folder.path("other");
    REQUIRE(run_example("language_model --layers 0 --tie no --width 8 --heads 1 --steps 1 --data " + text + " --save " +
                        model)
                .status == 0);
    const tg::Metadata metadata = tg::load_metadata(model);
    LanguageModel<> strange(3, {.heads = 1, .width = 8, .context = 4});
    tg::save(strange, other);
    refuses("--load " + other, "other: expected a model saved by language_model, got another checkpoint");
    tg::save(strange, other, {{"language_model", "[1, 2"}});
    refuses("--load " + other, "other: expected settings saved by language_model, got others");
    for (const auto& [setting, value] :
         std::vector<std::pair<std::string, nlohmann::json>>{{"heads", 3},
                                                             {"heads", "x"},
                                                             {"heads", 0},
                                                             {"width", 1e300},
                                                             {"width", 8.5},
                                                             {"width", -8},
                                                             {"context", 0},
                                                             {"source", "song"},
                                                             {"vocabulary", {"a", "a"}}}) {
      auto settings = nlohmann::json::parse(metadata.at("language_model"));
      settings[setting] = value;
      tg::save(strange, other, {{"language_model", settings.dump()}});
      refuses("--load " + other, "other: expected settings saved by language_model, got others");
    }
    // No size may cause an allocation before it is compared with the file's size.
    for (const std::string setting : {"width", "heads", "context"}) {
      auto settings = nlohmann::json::parse(metadata.at("language_model"));
      settings[setting] = 10'000'000;
      tg::save(strange, other, {{"language_model", settings.dump()}});
      refuses("--load " + other, "got others: " + setting + ": expected a whole number from 1 to ");
      refuses("--load " + other, ", the limit from the file's length, got 10000000");
    }
    tg::save(strange, other, metadata);
    refuses("--load " + other, "other");
    const std::string half = folder.read("model").substr(0, 1000);
    refuses("--load " + file("half", half), "half");
    refuses("--load " + model + " --prompt é", "--prompt: expected characters in the model's vocabulary, got 'é'");
    refuses("--load " + model + " --explain isst --explain-to " + folder.path("none/map"),
            "none/map.csv: expected a path in a writable folder");
    refuses("--load " + model + " --explain é", "--explain: expected characters in the model's vocabulary, got 'é'");
    CHECK_FALSE(std::filesystem::exists("attention.csv"));
  }
  SUBCASE("options") {
    refuses("--nonsense", "--nonsense");
    refuses("--steps many", "--steps: expected a whole number of at least 1, got 'many'");
    refuses("--seed -1", "--seed: expected a whole number of at least 0, got '-1'");
    refuses("--lr nan", "--lr: expected a number from 0 to 1e+06, got 'nan'");
    refuses("--temperature -1", "--temperature: expected a number from 0 to 1000, got '-1'");
    refuses("--length 0", "--length: expected a whole number of at least 1, got '0'");
    refuses("--heads 7", "--heads: expected a divisor of the width 64, got 7");
    refuses("--positions maybe", "--positions: expected learned|rotary|no|yes, got 'maybe'");
    refuses("--language klingon", "--language: expected catalan, ");
    refuses("--prompt ''", "--prompt: expected a nonempty text");
    refuses("--prompt $(printf 'caf\\351')", "--prompt: expected UTF-8, got the byte 0xe9 at character 4");
    refuses("--data " + text + " --prompt ißt", "--prompt: expected characters in the model's vocabulary, got 'ß' at");
    refuses("--lines --data " + list + " --context 4 --prompt kata", "--prompt: expected at most 3 characters, got 4");
    refuses("--explain ''", "--explain: expected a nonempty text");
    refuses("--explain $(printf 'caf\\351')", "--explain: expected UTF-8, got the byte 0xe9 at character 4");
    refuses("--explain ißt" + forever + "--data " + text,
            "--explain: expected characters in the model's vocabulary, got 'ß' at");
    refuses("--explain 'ist ruh.' --context 7" + forever + "--data " + text,
            "--explain: expected at most 7 characters, got 8");
    refuses("--explain i" + forever + "--data " + text, "--explain: expected at least two characters, got 'i'");
    refuses("--explain kata --context 4 --lines" + forever + "--data " + list,
            "--explain: expected at most 3 characters, got 4");
    const std::string page = "--data " + text + forever + "--page";
    refuses(page, "--page: ");
    refuses(page + " ''", "--page: expected a file path, got an empty one");
    refuses(page + " page ''", "--page: expected a nonempty text");
    refuses(page + " page $(printf 'caf\\351')", "--page: expected UTF-8, got the byte 0xe9 at character 4");
    refuses(page + " page i", "--page: expected at least two characters, got 'i'");
    refuses(page + " page ißt", "--page: expected characters in the model's vocabulary, got 'ß' at character 2");
    refuses("--data " + text + " --lr 1000 --steps 100", "; use a lower learning rate");
  }
  SUBCASE("conflicting options") {
    refuses("--lines", "--lines: requires --data");
    refuses("--encoding latin1", "--encoding: requires --data or --language");
    refuses("--data " + text + " --language english", "--language: not allowed with --data");
    refuses("--load model --steps 3", "--steps: not allowed with --load");
    refuses("--load model --lines", "--lines: not allowed with --load");
    refuses("--load model --recompute", "--recompute: not allowed with --load");
    refuses("--data " + text + " --layers 0 --recompute", "--recompute: not allowed with --layers 0");
    refuses("--data random --save model", "--save: not allowed with --data random");
    refuses("--prompt a --explain-to name", "--explain-to: requires --explain");
    refuses("--load model --page page", "--page: expected FILE and TEXT");
    refuses("--data random --page page", "--page: not allowed with --data random");
    refuses("--data random --explain a", "--explain: not allowed with --data random");
    refuses("--data random --prompt a", "--prompt: not allowed with --data random");
  }
}
