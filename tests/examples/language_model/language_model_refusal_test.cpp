// Input that language_model refuses. learners_test.cpp has what text_classifier refuses, too.
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

static const std::string without_end = " --steps 100000000 ";  // errors occur before training

TEST_CASE("language_model refuses files in one line") {
  const TemporaryFolder folder;
  const auto file = [&](const char* name, const std::string& content) { return folder.write(name, content); };
  const std::vector<Refused> rows{
      {"--lines --data " + file("blank", "\n\n\n\n\n\n\n\n\n\n\n"), "blank: expected at least 10 lines"},
      {"--lines --data " + file("short", "a\nb\n"), "short: expected at least 10 lines, since every tenth is held out"},
      {"--data " + file("little", "abc\n"),
       "little: expected at least 20 characters, since the last tenth is held out"},
      {"--data " + file("once", "abcdefghijklmnopqrstuvwxyz\n"), "once: expected characters that occur at least twice"},
      {"--language " + folder.path("none"), "none: cannot be opened"},
      {"--load " + folder.path("none"), "none"}};
  check_refusals("language_model", rows);
}

TEST_CASE("A saved run cannot store names of files that are not UTF-8") {
  const TemporaryFolder folder;
  const std::string strange = folder.path("$(printf 'caf\\351')"), data = "--data " + folder.write("good", rhyme(20)),
                    words = ": expected UTF-8, got the byte 0xe9 at character ";
  check_refusals("language_model " + data + without_end, {{"--checkpoint " + strange, "--checkpoint" + words},
                                                          {"--checkpoint run --log " + strange, "--log" + words},
                                                          {"--checkpoint run --save " + strange, "--save" + words}});
  const auto run =
      run_example("language_model --width 8 --heads 1 --layers 0 --steps 1 " + data + " --save " + strange);
  CHECK(run.err == "");
  CHECK(std::filesystem::exists(folder / "caf\xe9"));
}

TEST_CASE("language_model refuses saved models with other settings in one line") {
  const TemporaryFolder folder;
  const std::string model = folder.path("model"), other = folder.path("other"), load = "--load " + model;
  REQUIRE(run_example("language_model --layers 0 --tie no --width 8 --heads 1 --steps 1 --data " +
                      folder.write("good", rhyme(20)) + " --save " + model)
              .status == 0);
  const tg::Metadata metadata = tg::load_metadata(model);
  LanguageModel<> strange(3, {.heads = 1, .width = 8, .context = 4});
  const auto refuses = [&](const tg::Metadata& changed, const std::string& words) {
    tg::save(strange, other, changed);
    check_refusals("language_model", {{"--load " + other, words}});
  };
  const auto with = [&](const std::string& setting, const nlohmann::json& value) {
    auto settings = nlohmann::json::parse(metadata.at("language_model"));
    settings[setting] = value;
    return tg::Metadata{{"language_model", settings.dump()}};
  };
  const std::string others = "other: expected settings saved by language_model, got others";
  refuses({}, "other: expected a model saved by language_model, got another checkpoint");
  refuses({{"language_model", "[1, 2"}}, others);
  const std::vector<std::pair<std::string, nlohmann::json>> wrong{
      {"heads", 3},  {"heads", "x"}, {"heads", 0},       {"width", 1e300},          {"width", 8.5},
      {"width", -8}, {"context", 0}, {"source", "song"}, {"vocabulary", {"a", "a"}}};
  for (const auto& [setting, value] : wrong) refuses(with(setting, value), others);
  // No size may cause an allocation before it is compared with the file's size.
  for (const std::string setting : {"width", "heads", "context"}) {
    refuses(with(setting, 10'000'000), "got others: " + setting + ": expected a whole number from 1 to ");
    refuses(with(setting, 10'000'000), ", the limit from the file's length, got 10000000");
  }
  refuses(metadata, "other");
  const std::vector<Refused> rows{
      {"--load " + folder.write("half", folder.read("model").substr(0, 1000)), "half"},
      {load + " --prompt é", "--prompt: expected characters in the model's vocabulary, got 'é'"},
      {load + " --explain isst --explain-to " + folder.path("none/map"),
       "none/map.csv: expected a path in a writable folder"},
      {load + " --explain é", "--explain: expected characters in the model's vocabulary, got 'é'"}};
  check_refusals("language_model", rows);
  CHECK_FALSE(std::filesystem::exists("attention.csv"));
}

TEST_CASE("language_model refuses options and texts in one line") {
  const TemporaryFolder folder;
  const std::string text = "--data " + folder.write("good", rhyme(20)) + without_end,
                    list = "--context 4 --lines --data " + folder.write("list", joined(names(40))) + without_end,
                    page = text + "--page page ", vocabulary = ": expected characters in the model's vocabulary, got ";
  const std::vector<Refused> rows{
      {"--seed -1", "--seed: expected a whole number of at least 0, got '-1'"},
      {"--temperature -1", "--temperature: expected a number from 0 to 1000, got '-1'"},
      {"--length 0", "--length: expected a whole number of at least 1, got '0'"},
      {"--positions maybe", "--positions: expected learned|rotary|no|yes, got 'maybe'"},
      {"--language klingon", "--language: expected catalan, "},
      {"--prompt ''", "--prompt: expected a nonempty text"},
      {"--prompt $(printf 'caf\\351')", "--prompt: expected UTF-8, got the byte 0xe9 at character 4"},
      {text + "--prompt ißt", "--prompt" + vocabulary + "'ß' at"},
      {list + "--prompt kata", "--prompt: expected at most 3 characters, got 4"},
      {"--explain ''", "--explain: expected a nonempty text"},
      {"--explain $(printf 'caf\\351')", "--explain: expected UTF-8, got the byte 0xe9 at character 4"},
      {text + "--explain ißt", "--explain" + vocabulary + "'ß' at"},
      {text + "--explain 'ist ruh.' --context 7", "--explain: expected at most 7 characters, got 8"},
      {text + "--explain i", "--explain: expected at least two characters, got 'i'"},
      {list + "--explain kata", "--explain: expected at most 3 characters, got 4"},
      {page + "''", "--page: expected a nonempty text"},
      {page + "i", "--page: expected at least two characters, got 'i'"},
      {page + "ißt", "--page" + vocabulary + "'ß' at character 2"},
      {"--lines", "--lines: requires --data"},
      {"--encoding latin1", "--encoding: requires --data or --language"},
      {text + "--language english", "--language: not allowed with --data"},
      {"--load model --steps 3", "--steps: not allowed with --load"},
      {"--load model --lines", "--lines: not allowed with --load"},
      {"--load model --recompute", "--recompute: not allowed with --load"},
      {text + "--layers 0 --recompute", "--recompute: not allowed with --layers 0"},
      {"--prompt a --explain-to name", "--explain-to: requires --explain"},
      {"--data random --prompt a", "--prompt: not allowed with --data random"}};
  check_refusals("language_model", rows);
}
