#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <paths.hpp>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "../../../examples/gpt/model.hpp"
#include "language_model_texts.hpp"
#include "sanitized.hpp"

namespace tg = tapegrad;

namespace {

std::vector<std::string> invented(const Run& run) {
  std::istringstream lines(run.out_from("invented "));
  std::vector<std::string> found;
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && line.starts_with("  ")) found.push_back(line.substr(2));
  return found;
}

}  // namespace

TEST_CASE("language_model learns a list of lines and invents others by the same rules") {
  const TemporaryFolder folder;
  const auto known = names(600);
  const auto run = run_well("language_model --lines --length 30 --data " + folder.write("names", joined(known)) +
                            one_block + "--temperature 0.5");
  CHECK(contains(run.out, "names: 540 lines for training, 60 lines for testing\n"));

  const std::vector<double> losses = run.numbers_after("   loss ");
  REQUIRE(losses.size() == 11);
  CHECK(losses.front() > 2);
  CHECK(losses.back() < 0.75 * losses.front());
  CHECK(!contains(run.out, "\r"));

  const auto words = invented(run);
  CHECK(words.size() == 30);
  CHECK(std::set<std::string>(words.begin(), words.end()).size() == 30);
  const std::set<std::string> list(known.begin(), known.end());
  const std::string vowels = "aéou";
  for (const std::string& word : words) {
    CAPTURE(word);
    CHECK(!list.contains(word));
    CHECK(contains(vowels, word.substr(word.size() - 1)));  // é's last byte occurs in no other letter
  }
}

TEST_CASE("language_model's perplexity is lower than that of character frequencies, which it prints exactly") {
  const TemporaryFolder folder;
  const auto known = names(400);
  const auto run = run_example("language_model --lines --data " + folder.write("names", joined(known)) + one_block);

  // é and ß share their first byte, c3, so the last byte of a letter identifies it.
  std::map<char, double> counts{{'\n', 1}};
  double all = 4 + 9, loss = 0, count = 0;  // one extra count for each of the four special tokens and nine letters
  const auto for_each_letter = [&](bool test, auto visit) {
    for (std::size_t i = 0; i < known.size(); ++i)
      if (((i + 1) % 10 == 0) == test)
        for (const char byte : known[i] + '\n')
          if (byte != '\xc3') visit(byte);
  };
  for (const char letter : {'k', 't', '\x9f', 'r', 'L', 'a', '\xa9', 'o', 'u'}) counts[letter] = 1;
  for_each_letter(false, [&](char letter) { ++counts[letter], ++all; });
  for_each_letter(true, [&](char letter) { loss -= std::log(counts[letter] / all), ++count; });
  const double by_frequency = run.number_after("character frequencies alone give ");
  CHECK(by_frequency == doctest::Approx(std::exp(loss / count)).epsilon(0.001));

  // Four vowels, five consonants or the end: the optimum is about 4.2.
  CHECK(run.number_after("test perplexity ") < 0.7 * by_frequency);
  CHECK(run.number_after("test perplexity ") > 3.8);
}

TEST_CASE("language_model memorizes a text and continues it beyond its context") {
  const TemporaryFolder folder;
  const auto run = run_well("language_model --context 16 --temperature 0 --prompt 'über' --length 60 --data " +
                            folder.write("text", rhyme(100)) + one_block);
  CHECK(contains(run.out, "text: 2,340 characters for training, 260 characters for testing\n"));
  CHECK(run.number_after("test perplexity ") < 1.5);
  CHECK(run.out_from("generated text:\n") ==
        "generated text:\nüber alle wipfel\nist ruh.\nüber alle wipfel\nist ruh.\nüber alle wi\n");
}

TEST_CASE("A saved language_model generates the same text after loading") {
  const TemporaryFolder folder;
  const std::string list = folder.write("names", joined(names(200))), text = folder.write("text", rhyme(50)),
                    model = folder.path("model");
  for (const std::string& source :
       {" --lines --data " + list + " --prompt té", " --data " + text + " --length 80 --temperature 3"}) {
    const std::string writing = source.substr(source.find(" --", source.find(" --data ") + 1));
    const auto saved = run_example("language_model" + source + one_block + "--seed 3 --save " + model);
    const auto loaded = run_example("language_model --seed 3 --load " + model + writing);
    CHECK(loaded.err == "");
    const char* written = source.starts_with(" --lines") ? "invented lines:" : "generated text:";
    REQUIRE(saved.out_from(written) != "");
    CHECK(saved.out_from(written) == loaded.out_from(written));

    const auto other = run_example("language_model --seed 4 --load " + model + writing);
    CHECK(saved.out_from(written) != other.out_from(written));
    const auto tested =
        run_example("language_model --load " + model + " --data " + (source.starts_with(" --lines") ? list : text));
    CHECK(tested.number_after("test perplexity ") == saved.number_after("test perplexity "));
  }
}

TEST_CASE("A model with a single attention, saved before blocks existed, is loaded as --layers 0") {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", rhyme(20)), path = folder.path("model");
  const auto learned =
      run_well("language_model --layers 0 --tie no --width 8 --heads 2 --steps 5 --data " + text + " --save " + path);
  tg::Metadata metadata = tg::load_metadata(path);
  auto settings = nlohmann::json::parse(metadata.at("language_model"));
  for (const char* later : {"layers", "tie", "norm", "dropout"}) settings.erase(later);
  LanguageModel<> model(settings["vocabulary"].size() + 4,
                        {.heads = 2, .width = 8, .context = settings["context"], .positions = Positions::learned});
  tg::load(model, path);
  tg::save(model, path, {{"language_model", settings.dump()}});
  const auto loaded = run_well("language_model --load " + path);
  CHECK(loaded.out_from("generated text:") == learned.out_from("generated text:"));
}

TEST_CASE("language_model begins every line with the prompt, and gives up when it finds no new lines") {
  const TemporaryFolder folder;
  const std::string model = folder.path("model");
  const auto run = run_example("language_model --lines --data " + folder.write("names", joined(names(300))) +
                               one_block + "--save " + model + " --prompt ßéL");
  const auto words = invented(run);
  CHECK(words.size() == 20);
  for (const std::string& word : words) CHECK(word.starts_with("ßéL"));

  const auto likeliest = run_example("language_model --temperature 0 --load " + model);
  CHECK(invented(likeliest).size() <= 1);
  CHECK(likeliest.status == 0);
}

namespace {

/// Checks output and files of --explain-to folder/name for this many characters and heads.
void check_explained(const Run& run, const TemporaryFolder& folder, const std::string& name, std::size_t characters,
                     const std::string& heads_of_layers, std::size_t heads) {
  const std::string size = std::to_string(characters);
  CHECK(contains(run.out, "gradients of " + heads_of_layers + " heads, " + size + " x " + size +
                              " tokens: " + folder.path(name + ".csv")));
  for (const char* ending : {".npy", ".gradients.npy"})
    CHECK(folder.read(name + ending).size() == 128 + heads * characters * characters * sizeof(float));
  check_drawn(run, folder.path(name + ".png"));
}

}  // namespace

TEST_CASE("language_model --explain writes the attention of the heads in a line, after training and after loading") {
  const TemporaryFolder folder;
  const std::string path = folder.path("model");
  const auto explained = [&](const std::string& source, const std::string& name) {
    return run_example("language_model --length 1 " + source + " --explain katé --explain-to " + folder.path(name));
  };
  const auto run = explained(
      "--lines --data " + folder.write("names", joined(names(200))) + narrow + "--layers 2 --save " + path, "one");
  check_explained(run, folder, "one", 5, "2 layers of 4", 8);
  check_explained(explained("--load " + path, "two"), folder, "two", 5, "2 layers of 4", 8);
  CHECK(folder.read("one.csv") == folder.read("two.csv"));

  // The letters are L, a, k, o, r, t, u, ß and é, numbered from 4; 2 and 3 are the begin and end tokens.
  LanguageModel<> model(
      13, {.layers = 2, .heads = 4, .width = 16, .context = 32, .positions = Positions::learned, .tie = true});
  tg::load(model, path);
  tg::Tape tape;
  auto [logits, weights] = model.with_weights({{2, 6, 5, 9, 12}});
  for (auto& of_one : weights) of_one.retain_grad();
  const auto loss = tg::cross_entropy(logits, tg::IntArray{{6, 5, 9, 12, 3}});
  (loss * -5.0f).backward();  // log probability of all five
  CHECK(run.number_after("attention on the text (perplexity ") ==
        doctest::Approx(std::exp(loss.item())).epsilon(0.001));

  std::istringstream csv(folder.read("one.csv"));
  std::string line;
  std::getline(csv, line);
  CHECK(line == "layer,head,query,key,query_token,key_token,weight,gradient");
  const char* tokens[] = {"⊢", "k", "a", "t", "é"};
  for (std::size_t h = 0; h < 8; ++h)
    for (std::size_t t = 0; t < 5; ++t)
      for (std::size_t s = 0; s < 5; ++s) {
        std::getline(csv, line);
        CAPTURE(line);
        std::ostringstream names;
        names << h / 4 << ',' << h % 4 << ',' << t << ',' << s << ',' << tokens[t] << ',' << tokens[s] << ',';
        REQUIRE(line.starts_with(names.str()));
        const std::size_t comma = line.rfind(',');
        const auto& block = weights[h / 4];
        CHECK(std::stod(line.substr(names.str().size())) ==
              doctest::Approx(block.value()(0, h % 4, t, s)).epsilon(1e-4));
        CHECK(std::stod(line.substr(comma + 1)) == doctest::Approx(block.grad()(0, h % 4, t, s)).epsilon(1e-3));
      }
}

TEST_CASE("language_model --explain keeps spaces and line ends, and has no next character at the end of a text") {
  const TemporaryFolder folder;
  const auto run = run_example("language_model --length 1 --context 5 --explain 'e w\nf' --explain-to " +
                               folder.path("map") + " --data " + folder.write("text", rhyme(50)) + one_block);
  check_explained(run, folder, "map", 5, "4", 4);
  const std::string csv = folder.read("map.csv");
  CHECK(contains(csv, "\n0,3,1,\"\n\", ,"));
  CHECK(contains(csv, "\n3,4,0,f,e,"));

  std::vector<float> gradients(4 * 5 * 5);
  const std::string file = folder.read("map.gradients.npy");
  REQUIRE(file.size() == 128 + gradients.size() * sizeof(float));
  std::memcpy(gradients.data(), file.data() + 128, gradients.size() * sizeof(float));
  for (std::size_t row = 0; row < gradients.size() / 5; ++row) CHECK((gradients[5 * row] == 0) == (row % 5 == 4));
}

// Sanitizers need extra memory.
TEST_CASE("A long text takes little more memory than its file, at most five times as much" *
          doctest::skip(kSanitized)) {
  const TemporaryFolder folder;
  const auto peak = [&](std::size_t times) {  // in KB, after training begins
    const std::string out = folder.path("out");
    const auto run =
        run_shell("$examples/language_model --layers 1 --width 16 --steps 100000000 --data " +
                  folder.write("text", rhyme(times)) + " >" + out + " & program=$!\n" + "until grep -qs '^step' " +
                  out + "; do sleep 0.05; done\n" + "grep VmHWM /proc/$program/status; kill -KILL $program");
    return run.number_after("VmHWM:");
  };
  const std::size_t times = 400'000;
  const double size = static_cast<double>(times) * static_cast<double>(rhyme(1).size()) / 1024;
  CHECK(peak(times) - peak(100) < 5 * size);
}

TEST_CASE("language_model --data random has the same losses as in earlier versions") {
  const std::pair<std::string, std::vector<double>> runs[] = {
      {"1", {3.2728, 3.2210, 3.1806, 3.1400, 3.0820, 2.9834, 2.8375, 2.7002, 2.5745, 2.4359, 2.3133}},
      {"8", {3.2723, 3.2194, 3.1775, 3.1375, 3.0863, 3.0063, 2.8731, 2.6871, 2.4905, 2.2784, 2.0925}}};
  for (const auto& [heads, losses] : runs) {
    const auto run =
        run_well("language_model --data random --width 64 --steps 60 --lr 0.5 --batch-size 2 --heads " + heads);
    CHECK(contains(run.out, "num_heads=" + heads));
    const std::vector<double> printed = run.numbers_after("   loss ");
    REQUIRE(printed.size() >= losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i) CHECK(printed[i] == doctest::Approx(losses[i]).epsilon(1e-4));
  }
}

// ---- refusals; learners_test.cpp has what text_classifier refuses, too ----------------------------------------------

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
  run_well("language_model --width 8 --heads 1 --layers 0 --steps 1 " + data + " --save " + strange);
  CHECK(std::filesystem::exists(folder / "caf\xe9"));
}

TEST_CASE("language_model refuses saved models with other settings in one line") {
  const TemporaryFolder folder;
  const std::string model = folder.path("model"), other = folder.path("other"), load = "--load " + model;
  run_well("language_model --layers 0 --tie no --width 8 --heads 1 --steps 1 --data " +
           folder.write("good", rhyme(20)) + " --save " + model);
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
      {"heads", 3}, {"heads", "x"}, {"width", 1e300}, {"width", 8.5}, {"source", "song"}, {"vocabulary", {"a", "a"}}};
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
      {text + "--explain ißt", "--explain" + vocabulary + "'ß' at"},
      {text + "--explain 'ist ruh.' --context 7", "--explain: expected at most 7 characters, got 8"},
      {list + "--explain kata", "--explain: expected at most 3 characters, got 4"},
      {page + "''", "--page: expected a nonempty text"},
      {page + "i", "--page: expected at least two characters, got 'i'"},
      {"--lines", "--lines: requires --data"},
      {"--encoding latin1", "--encoding: requires --data or --language"},
      {text + "--language english", "--language: not allowed with --data"},
      {"--load model --steps 3", "--steps: not allowed with --load"},
      {"--load model --recompute", "--recompute: not allowed with --load"},
      {"--load model --divide-state", "--divide-state: not allowed with --load"},
      {text + "--layers 0 --recompute", "--recompute: not allowed with --layers 0"},
      {"--prompt a --explain-to name", "--explain-to: requires --explain"},
      {"--data random --prompt a", "--prompt: not allowed with --data random"}};
  check_refusals("language_model", rows);
}
