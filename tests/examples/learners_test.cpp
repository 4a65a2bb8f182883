// Features of both training programs, text_classifier and language_model.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "language_model_texts.hpp"
#include "text_classifier_data.hpp"

TEST_CASE("text_classifier and language_model refuse the same files and options in one line") {
  const TemporaryFolder folder;
  const auto file = [&](const char* name, const std::string& content) { return folder.write(name, content); };
  const std::string good = file("good", reviews(40)), data = "--data " + good + " --steps 100000000 ",
                    page = data + "--page ", writable = ": expected a path in a writable folder";
  for (const auto& [program, use] :
       {std::pair<std::string, std::string>{"text_classifier", "--classify a "}, {"language_model", ""}}) {
    const std::vector<Refused> rows{
        {"--data " + folder.path("none"), "none: cannot be opened: No such file"},
        {"--data " + file("empty", ""), "empty: expected a text file, got an empty one"},
        {"--data " + file("latin1", "a b\nc caf\xe9\n"), "latin1:2: expected UTF-8, got the byte 0xe9 at character 6"},
        {"--data " + file("cut", "a b\nc caf\xc3"), "cut:2: expected UTF-8, got the byte 0xc3 at character 6"},
        {use + "--load " + good, "good"},
        {data + "--explain the --explain-to " + folder.path("none/map"), "none/map.csv" + writable},
        {page + folder.path("none/page") + " the", "none/page" + writable},
        {page + good, "good: expected an output file, got an input file"},
        {"--nonsense", "--nonsense"},
        {"--steps many", "--steps: expected a whole number of at least 1, got 'many'"},
        {"--lr nan", "--lr: expected a number from 0 to 1e+06, got 'nan'"},
        {"--heads 7", "--heads: expected a divisor of the width 64, got 7"},
        {page, "--page: "},
        {page + "''", "--page: expected a file path, got an empty one"},
        {page + "page $(printf 'caf\\351')", "--page: expected UTF-8, got the byte 0xe9 at character 4"},
        {"--load model --page page", "--page: expected FILE and TEXT"},
        {use + "--explain-to name", "--explain-to: requires --explain"},
        {"--data random --save model", "--save: not allowed with --data random"},
        {"--data random --page page", "--page: not allowed with --data random"},
        {"--data random --explain a", "--explain: not allowed with --data random"}};
    check_refusals(program, rows);
    if (program == "text_classifier")
      check_refusals(program, {{data + "--optimizer muon", "--optimizer: expected sgd or adamw, got muon"},
                               {"--encoding latin1", "--encoding: requires --data, --train or --test"}});
  }
}

TEST_CASE("Equal seeds give a training program equal results, and different seeds different ones") {
  const TemporaryFolder folder;
  for (const std::string& command :
       {"text_classifier --tokens characters --data " + folder.write("words", words_of_three_languages(200)) + tiny +
            "--classify eau",
        "language_model --lines --data " + folder.write("names", joined(names(200))) + one_block}) {
    const auto results = [&](const char* seed) { return run_example(command + " --seed " + seed).out_from("test "); };
    const std::string first = results("1");
    REQUIRE(first != "");
    CHECK(first == results("1"));
    CHECK(first != results("2"));
  }
}

TEST_CASE("The training programs' --help describes their options") {
  const std::vector<std::string> both{"--data", "--save", "--explain", "--page", "--seed", "Examples:"};
  const std::pair<std::string, std::vector<std::string>> programs[] = {
      {"text_classifier",
       {"--languages", "--classify", "--pairs", "--prior", "--residual", "--token-dropout", "--min-count",
        "--validation", "--patience", "--folds"}},
      {"language_model",
       {"--language", "--lines", "--layers", "--tie", "--optimizer", "--decay", "--checkpoint", "--resume", "--best",
        "--log", "--plot", "--prompt", "--temperature", "--top-k", "--top-p"}}};
  for (const auto& [program, own] : programs) {
    const auto run = run_well(program + " --help");
    for (const auto& options : {both, own})
      for (const std::string& option : options) {
        CAPTURE(option);
        CHECK(contains(run.out, option));
      }
  }
}
