// The program pronounce.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "../../../examples/pronounce/search.hpp"
#include "page_data.hpp"
#include "run_example.hpp"

namespace tg = tapegrad;

namespace {

// Texts of two to four letters with themselves reversed, each once.
std::string reversals(std::size_t count) {
  std::string lines;
  unsigned state = 1;
  for (std::size_t i = 0; i < count; ++i) {
    std::string text;
    for (std::size_t length = 2 + i % 3; text.size() < length;)
      text += static_cast<char>('a' + (state = state * 1103515245u + 12345u) / 65536u % 6);
    lines += text + '\t' + std::string(text.rbegin(), text.rend()) + '\n';
  }
  return lines;
}

const std::string small_pronouncer = " --width 32 --heads 2 --layers 1 --eval-every 100 ",
                  draws =
                      " --width 8 --heads 2 --layers 1 --dropout 0.2 --batch-size 8 --accumulate 2 --eval-every 50 ";

using Tokens = std::vector<std::string>;

}  // namespace

TEST_CASE("pronounce learns to reverse texts, and uses the saved model") {
  const TemporaryFolder folder;
  const std::string data = " --data " + folder.write("pairs", reversals(600)), model = folder.path("model"),
                    use = " --pronounce abc fed";
  const Run learned =
      run_well("pronounce --steps 1200 --batch-size 32 --lr 5e-3 --save " + model + data + small_pronouncer + use);
  CHECK(learned.number_after(" test sources: ") > 90);
  CHECK(learned.out_from("\nabc  cba\nfed  def\n") != "");
  CHECK(learned.out_from("without stress") == "");

  for (const std::string beams : {"1", "5"}) {
    const Run loaded = run_well("pronounce --load " + model + use + data + " --beams " + beams);
    CHECK(loaded.number_after(" test sources: ") > 90);
    CHECK(loaded.out_from("\nabc  cba\nfed  def\n") != "");
  }

  const std::string map = folder.path("map");
  const Run explained = run_example("pronounce --load " + model + " --explain abc --explain-to " + map);
  check_drawn(explained, map + ".png");
  CHECK(explained.out_from("attention of the decoder, abc: cba, probability 0.") != "");
  CHECK(explained.out_from("weights and gradients of 2 heads, 4 x 5 tokens: ") != "");
  const std::string csv = folder.read("map.csv");
  CHECK(contains(csv, "0,0,0,c,⊢,"));
  CHECK(contains(csv, "1,3,4,⊣,⊣,"));

  const std::string page = folder.path("page");
  run_well("pronounce --load " + model + " --page " + page + " abc");
  CHECK(page_data(folder.read("page"))["title"] == "A training step on 'abc'");
  const Run of_test = run_example("pronounce --load " + model + data + " --page " + page);
  CHECK(of_test.out_from(", the first test source: loss ") != "");
}

TEST_CASE("pronounce reads sources and targets of words") {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += "day " + std::to_string(i % 12) + "\tnumber " + std::to_string(i % 12) + '\n';
  const std::string model = folder.path("model");
  const Run run = run_well("pronounce --source words --target words --steps 300 --lr 5e-3 --save " + model +
                           " --pronounce 'day 3' --data " + folder.write("pairs", lines) + small_pronouncer);
  CHECK(run.out_from("\nday 3  number 3\n") != "");
  CHECK(run_example("pronounce --load " + model + " --pronounce 'day 3'").out_from("\nday 3  number 3\n") != "");
}

TEST_CASE("A run of pronounce that is killed resumes to the same weights") {
  const TemporaryFolder folder;
  const std::string log = folder.write("log", ""), run = folder.path("run");
  const std::string learn = "$examples/pronounce --steps 300 --data " + folder.write("pairs", reversals(100)) + draws;
  REQUIRE(run_shell(learn + "--save " + folder.path("whole")).status == 0);
  const Run killed =
      run_shell(learn + "--save " + folder.path("more") + " --checkpoint " + run + " --checkpoint-every 20 --log " +
                log + " >" + folder.path("out") + " 2>&1 & program=$!\nuntil [ $(cat " + log +
                " | wc -l) -gt 130 ]; do sleep 0.01; done\nkill -KILL $program\nwait $program\n"
                "$examples/pronounce --resume " +
                run);
  CHECK(contains(killed.out, "resuming at step "));
  CHECK(folder.read("more") == folder.read("whole"));
  run_well("pronounce --load " + run + " --pronounce ab");  // contains the model
  check_refusals("pronounce --resume " + run,
                 {{"--width 16", "--width: expected the same value as in the resumed run"},
                  {"--source words", "--source: expected the same value as in the resumed run"},
                  {"--steps 10", "--steps: expected the same value as in the resumed run"}});
  folder.write("pairs", reversals(101));
  check_refusals("pronounce --steps 400 --resume " + run, {{"", "pairs: expected the run's pairs, got others"}});
  run_well("pronounce --resume " + run + " --data " + folder.write("moved", reversals(100)));
}

TEST_CASE("pronounce refuses files and options in one line") {
  const TemporaryFolder folder;
  const std::string data = "--data " + folder.write("good", reversals(40)) + " --steps 100000000 ",
                    model = folder.path("model");
  run_well("pronounce --steps 1 --save " + model + ' ' + data.substr(0, data.find(" --steps")) + draws);
  check_refusals(
      "pronounce",
      {{"--data " + folder.path("none"), "none: cannot be opened"},
       {"--data " + folder.write("few", reversals(5)), "few: expected at least 10 sources"},
       {"--data " + folder.write("one", "a\tb\nab\n"), "one: line 2: expected a source, a tab and a target, got 'ab'"},
       {"--data " + folder.write("empty", "a\tb\na\t\n"), "empty: line 2: expected a source, a tab and a target"},
       {data + "--pronounce xyz", "--pronounce: expected tokens of the training data, got 'x' in 'xyz'"},
       {data + "--explain abcdefghi", "--explain: expected from 1 to 4 tokens, as in training, got 9"},
       {data + "--heads 3", "--heads: expected a divisor of the width 128, got 3"},
       {data + "--width 6 --heads 2", "--heads: expected an even width of heads, for rotary positions, got 3"},
       {"--source words", "--source: requires --data"},
       {"--encoding latin1", "--encoding: requires --data"},
       {"--data " + folder.write("latin1", "a\tcaf\xe9\n"), "latin1:1: expected UTF-8"},
       {"--load " + model, "--load: requires --pronounce, --explain, --page or --data"},
       {"--load " + model + " --seed 3", "--seed: not allowed with --load"},
       {"--beams 0", "--beams: expected a whole number from 1 to 1000"},
       {"--explain-to map", "--explain-to: requires --explain"},
       {"--load " + model + " --steps 3", "--steps: not allowed with --load"},
       {"--load " + model + " --page page", "--page: expected FILE and TEXT"},
       {"--load " + folder.write("other", "no model"), "other"}});
}

TEST_CASE("pronounce refuses saved models with other settings in one line") {
  const TemporaryFolder folder;
  const std::string model = folder.path("model"), other = folder.path("other");
  run_well("pronounce --steps 1 --save " + model + " --data " + folder.write("good", reversals(40)) + draws);
  const tg::Metadata metadata = tg::load_metadata(model);
  tg::Linear<> strange(3, 4);
  const auto changes = nlohmann::json::parse(
      R"([{"width": 0}, {"width": 1000}, {"layers": 1000}, {"heads": -1}, {"source_length": 100000},
          {"target_length": 2.5}, {"sources": "a"}, {"targets": []}, {"source_unit": "letters"}, {"dropout": "much"},
          {"has_stress": "yes"}])");
  for (const nlohmann::json& change : changes) {
    CAPTURE(change.dump());
    auto settings = nlohmann::json::parse(metadata.at("pronounce"));
    settings.update(change);
    tg::save(strange, other, {{"pronounce", settings.dump()}});
    check_refusals("pronounce", {{"--load " + other, "other: expected settings saved by pronounce"}});
  }
  tg::save(strange, other, metadata);
  check_refusals("pronounce", {{"--load " + other, "other: expected"}});
  tg::save(strange, other);
  check_refusals("pronounce", {{"--load " + other, "other: expected a model saved by pronounce"}});
}

TEST_CASE("The edit distance counts the fewest insertions, deletions and substitutions") {
  const auto distance = [](const std::string& a, const std::string& b) {
    const auto tokens = [](const std::string& text) {
      Tokens all;
      for (const char c : text) all.emplace_back(1, c);
      return all;
    };
    CHECK(pronounce::edit_distance(tokens(b), tokens(a)) == pronounce::edit_distance(tokens(a), tokens(b)));
    return pronounce::edit_distance(tokens(a), tokens(b));
  };
  CHECK(distance("", "") == 0);
  CHECK(distance("abc", "") == 3);
  CHECK(distance("kitten", "sitting") == 3);
  CHECK(distance("ab", "ba") == 2);
  CHECK(distance("abcdef", "acdefg") == 2);
}

TEST_CASE("A test counts a source with several targets once, with the closest of them") {
  tg::manual_seed(3);
  const pronounce::Pairs pairs{"", {{{"a"}, {"x1", "y1"}}, {{"b"}, {"z1"}}}, {}};
  pronounce::PronounceOptions options;
  options.model = {.layers = 1, .heads = 1, .width = 4};
  pronounce::Pronouncer pronouncer = pronounce::make_pronouncer(pairs, options);
  tg::eval(pronouncer.model);
  const auto found =
      pronouncer.shown_target(pronounce::find_targets(pronouncer, {pronouncer.encode_source({"a"})}, 1).front());
  Tokens other_stress = found;
  for (std::string& token : other_stress) token.back() = '2';
  Tokens longer = found;
  longer.push_back("x1");

  const pronounce::Report exact =
      pronounce::test(pronouncer, {{{"a"}, longer}, {{"a"}, found}, {{"a"}, {"q", "q", "q", "q"}}}, 1);
  CHECK(exact.all.sources == 1);
  CHECK(exact.all.right == 1);
  CHECK(exact.all.edits == 0);
  CHECK(exact.all.tokens == found.size());
  CHECK(exact.confusions.empty());

  const pronounce::Report close = pronounce::test(pronouncer, {{{"a"}, longer}}, 1);
  CHECK(close.all.right == 0);
  CHECK(close.all.edits == 1);
  REQUIRE(close.confusions.size() == 1);
  CHECK(close.confusions[0].right == "x1");
  CHECK(close.confusions[0].found == "");
  const pronounce::Report stressed = pronounce::test(pronouncer, {{{"a"}, other_stress}}, 1);
  CHECK(stressed.all.right == 0);
  CHECK(stressed.without_stress.right == 1);
}

TEST_CASE("pronounce reads the pronouncing dictionary, if it is installed") {
  const std::string dictionary = "/usr/share/festival/dicts/cmu/cmudict-0.4.out";
  if (!std::filesystem::exists(dictionary)) {
    check_refusals("pronounce", {{"", "install Debian's package festlex-cmu, or pass other pairs: --data FILE"}});
    return;
  }
  const pronounce::Pairs pairs = pronounce::read_pairs({});
  CHECK(pairs.train.size() > 90'000);
  CHECK(pairs.test.size() > 10'000);
  const auto word = [](const pronounce::Pair& pair) {
    std::string text;
    for (const std::string& letter : pair.source) text += letter;
    return text;
  };
  const auto abandon = std::ranges::find(pairs.train, "abandon", word);
  REQUIRE(abandon != pairs.train.end());
  CHECK(abandon->target == Tokens{"ax0", "b", "ae1", "n", "d", "ax0", "n"});
  for (const auto* part : {&pairs.train, &pairs.test})
    for (const pronounce::Pair& pair : *part) REQUIRE(!pair.source.empty());
}
