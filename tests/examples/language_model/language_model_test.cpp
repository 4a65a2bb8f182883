#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <paths.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
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
  const auto run = run_example("language_model --lines --length 30 --data " + folder.write("names", joined(known)) +
                               one_block + "--temperature 0.5");
  CAPTURE(run.out);
  REQUIRE(run.err == "");
  REQUIRE(run.status == 0);
  CHECK(run.out.find("names: 540 lines for training, 60 lines for testing\n") != std::string::npos);

  const std::vector<double> losses = run.numbers_after("   loss ");
  REQUIRE(losses.size() == 11);
  CHECK(losses.front() > 2);
  CHECK(losses.back() < 0.75 * losses.front());
  CHECK(run.out.find('\r') == std::string::npos);

  const auto words = invented(run);
  CHECK(words.size() == 30);
  CHECK(std::set<std::string>(words.begin(), words.end()).size() == 30);
  const std::set<std::string> list(known.begin(), known.end());
  const std::string vowels = "aéou";
  for (const std::string& word : words) {
    CAPTURE(word);
    CHECK(!list.contains(word));
    CHECK(vowels.find(word.back()) != std::string::npos);  // é's last byte occurs in no other letter
  }
}

TEST_CASE("language_model's perplexity is lower than that of character frequencies, which it prints exactly") {
  const TemporaryFolder folder;
  const auto known = names(400);
  const auto run = run_example("language_model --lines --data " + folder.write("names", joined(known)) + one_block);
  CAPTURE(run.out);

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
  const auto run = run_example("language_model --context 16 --temperature 0 --prompt 'über' --length 60 --data " +
                               folder.write("text", rhyme(100)) + one_block);
  CAPTURE(run.out);
  CHECK(run.err == "");
  CHECK(run.status == 0);
  CHECK(run.out.find("text: 2,340 characters for training, 260 characters for testing\n") != std::string::npos);
  CHECK(run.number_after("test perplexity ") < 1.5);
  CHECK(run.out_from("generated text:\n") ==
        "generated text:\nüber alle wipfel\nist ruh.\nüber alle wipfel\nist ruh.\nüber alle wi\n");
}

TEST_CASE("language_model generates without positions, without a prompt and from latin1") {
  const TemporaryFolder folder;
  std::string latin1 = rhyme(60);
  for (std::size_t i = 0; (i = latin1.find("ü", i)) != latin1.npos;) latin1.replace(i, 2, "\xfc");
  const auto run = run_example("language_model --encoding latin1 --positions no --length 40 --data " +
                               folder.write("latin1", latin1) + one_block);
  CAPTURE(run.out);
  CHECK(run.err == "");
  CHECK(run.status == 0);
  CHECK(run.out.find("positions") == std::string::npos);
  CHECK(run.out_from("generated text:\n").size() >= 40);
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
    CAPTURE(saved.out);
    CAPTURE(loaded.out);
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

TEST_CASE("Temperature 0, top-k 1 and a tiny top-p all generate the most likely character") {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", rhyme(50)), model = folder.path("model");
  REQUIRE(run_example("language_model --data " + text + " --layers 1 --width 16 --heads 4 --steps 20 --save " + model)
              .status == 0);
  const auto written = [&](const std::string& options) {
    return run_example("language_model --length 100 --load " + model + options).out_from("generated text:");
  };
  REQUIRE(written(" --temperature 0") != "");
  CHECK(written(" --temperature 2 --top-k 1") == written(" --temperature 0"));
  CHECK(written(" --temperature 2 --top-p 1e-9") == written(" --temperature 0"));
  CHECK(written(" --temperature 2") != written(" --temperature 0"));
}

TEST_CASE("A model with a single attention, saved before blocks existed, is loaded as --layers 0") {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", rhyme(20)), path = folder.path("model");
  const auto learned = run_example("language_model --layers 0 --tie no --width 8 --heads 2 --steps 5 --data " + text +
                                   " --save " + path);
  REQUIRE(learned.status == 0);
  tg::Metadata metadata = tg::load_metadata(path);
  auto settings = nlohmann::json::parse(metadata.at("language_model"));
  for (const char* later : {"layers", "tie", "norm", "dropout"}) settings.erase(later);
  LanguageModel<> model(settings["vocabulary"].size() + 4,
                        {.heads = 2, .width = 8, .context = settings["context"], .positions = Positions::learned});
  tg::load(model, path);
  tg::save(model, path, {{"language_model", settings.dump()}});
  const auto loaded = run_example("language_model --load " + path);
  CAPTURE(loaded.err);
  REQUIRE(loaded.status == 0);
  CHECK(loaded.out_from("generated text:") == learned.out_from("generated text:"));
}

TEST_CASE("language_model begins every line with the prompt, and gives up when it finds no new lines") {
  const TemporaryFolder folder;
  const std::string model = folder.path("model");
  const auto run = run_example("language_model --lines --data " + folder.write("names", joined(names(300))) +
                               one_block + "--save " + model + " --prompt ßéL");
  CAPTURE(run.out);
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
  CAPTURE(run.out);
  const std::string size = std::to_string(characters);
  CHECK(run.out.find("gradients of " + heads_of_layers + " heads, " + size + " x " + size +
                     " tokens: " + folder.path(name + ".csv")) != std::string::npos);
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
  CHECK(csv.find("\n0,3,1,\"\n\", ,") != std::string::npos);
  CHECK(csv.find("\n3,4,0,f,e,") != std::string::npos);

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
        run_example("language_model --data random --width 64 --steps 60 --lr 0.5 --batch-size 2 --heads " + heads);
    CAPTURE(run.out);
    CHECK(run.status == 0);
    CHECK(run.out.find("num_heads=" + heads) != std::string::npos);
    const std::vector<double> printed = run.numbers_after("   loss ");
    REQUIRE(printed.size() >= losses.size());
    for (std::size_t i = 0; i < losses.size(); ++i) CHECK(printed[i] == doctest::Approx(losses[i]).epsilon(1e-4));
  }
}

TEST_CASE("language_model invents English words") {
  if (!std::filesystem::exists("/usr/share/dict/american-english")) {
    MESSAGE("not tested: the word list american-english is not installed");
    return;
  }
  const auto run =
      run_example("language_model --steps 150 --layers 1 --width 32 --heads 4 --lr 0.01 --prompt un --length 5");
  CAPTURE(run.out);
  CHECK(run.err == "");
  CHECK(run.status == 0);
  CHECK(run.out.starts_with("english: "));
  CHECK(run.out.find(" words for training, ") != std::string::npos);
  CHECK(run.number_after("test perplexity ") < 14);  // letter frequencies give 19
  CHECK(invented(run).size() == 5);
  for (const std::string& word : invented(run)) CHECK(word.starts_with("un"));
}
