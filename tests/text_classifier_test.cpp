#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include "run_example.hpp"

namespace tg = tapegrad;

namespace {

const std::string tiny = " --width 16 --heads 2 --batch-size 32 --steps 200 ";

/// Words of three made-up languages that share most of their letters, a label and a word a line.
std::string words_of_three_languages(int lines) {
  const std::string syllables[3][4] = {
      {"ka", "to", "mi", "ru"}, {"sto", "krim", "tak", "urs"}, {"eau", "is", "our", "té"}};
  const char* labels[] = {"isle", "nörd", "val"};
  std::ostringstream text;
  unsigned state = 1;
  const auto next = [&](unsigned n) { return (state = state * 1103515245u + 12345u) / 65536u % n; };
  for (int line = 0; line < lines; ++line) {
    const unsigned label = next(3);
    text << labels[label] << ' ';
    for (unsigned i = 0, count = 2 + next(2); i < count; ++i) text << syllables[label][next(4)];
    text << '\n';
  }
  return text.str();
}

/// "praise" and "blame", to be told apart by their words.
std::string reviews(int lines) {
  std::ostringstream text;
  for (int i = 0; i < lines; ++i) {
    const bool good = i / 3 % 2 == 0;
    text << (good ? "praise" : "blame") << " the " << (i % 5 < 2 ? "film" : "book") << " is "
         << (i % 7 < 3 ? "really " : "") << (good ? (i % 3 ? "good" : "fine") : (i % 3 ? "dull" : "poor")) << " .\n";
  }
  return text.str();
}

double accuracy(const Run& run) {
  const std::string words = "test accuracy ", found = run.out_from(words);
  return found.empty() ? 0 : std::stod(found.substr(words.size()));
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

TEST_CASE("text_classifier learns labels from characters and prints a table whose rows hold every test") {
  const TemporaryFolder folder;
  const auto run = run_example("text_classifier --tokens characters --data " +
                               folder.write("words", words_of_three_languages(600)) + tiny + "--classify eauté KATOMI");
  CAPTURE(run.out);
  REQUIRE(run.err == "");
  REQUIRE(run.status == 0);
  CHECK(run.out.find("540 to learn from, 60 to test with\n") != std::string::npos);
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

  CHECK(run.out_from("yours:").find("eauté    val") != std::string::npos);
  CHECK(run.out_from("yours:").find("KATOMI  isle") != std::string::npos);
}

TEST_CASE("text_classifier learns labels from words, with positions or without, from two files as well") {
  const TemporaryFolder folder;
  const std::string data = folder.write("data", reviews(200)), test = folder.write("test", reviews(30));
  for (const std::string& source : {"--data " + data, "--train " + data + " --test " + test + " --positions yes"}) {
    const auto run = run_example("text_classifier " + source + tiny + "--dropout 0.2 --classify 'a really dull story'");
    CAPTURE(run.out);
    CHECK(run.err == "");
    CHECK(run.status == 0);
    CHECK(accuracy(run) > 85);  // guessing gives 50
    CHECK(run.out_from("yours:").find("a really dull story   blame") != std::string::npos);
  }
}

TEST_CASE(
    "text_classifier takes a line with a label and no text for an empty text, which it learns and tells like others") {
  const TemporaryFolder folder;
  std::string lines = reviews(200), tests = "silence\nsilence \npraise the film is good .\nsilence\t\n";
  for (int i = 0; i < 20; ++i) lines += i % 2 ? "silence\n" : "silence \t \n";
  const std::string model = folder.path("model");
  const auto saved = run_example("text_classifier --train " + folder.write("train", lines) + " --test " +
                                 folder.write("test", tests) + tiny + "--classify '' 'a good book' --save " + model);
  CAPTURE(saved.out);
  CHECK(saved.err == "");
  CHECK(saved.status == 0);
  CHECK(saved.out.find("220 to learn from, 4 to test with\n") != std::string::npos);
  CHECK(saved.out.find("4 of 4 are right") != std::string::npos);
  CHECK(saved.out.find("nan") == std::string::npos);

  std::istringstream yours(saved.out_from("yours:"));
  std::string line;
  for (const char* expected : {"yours:", "  (empty)      silence", "  a good book   praise"}) {
    std::getline(yours, line);
    CHECK(line.starts_with(expected));
  }
  const auto alone = run_example("text_classifier --load " + model + " --classify '' --explain '' --explain-to " +
                                 folder.path("map"));  // a batch of one
  CAPTURE(alone.out);
  CHECK(alone.out_from("yours:").find("  (empty)  silence") != std::string::npos);
  CHECK(alone.out_from("explained:").find("  (empty)  silence") != std::string::npos);
  CHECK(folder.read("map.csv").find("\n0,1,0,⊣,⊢,") != std::string::npos);
}

TEST_CASE("text_classifier prints a loss that falls, on plain lines when piped") {
  const TemporaryFolder folder;
  const auto run = run_example("text_classifier --data " + folder.write("data", reviews(200)) + tiny);
  std::istringstream lines(run.out_from("step "));
  std::string line;
  double first = 0, last = 0;
  for (int i = 0; std::getline(lines, line) && line.starts_with("step "); ++i) {
    last = std::stod(line.substr(line.find("loss ") + 5));
    if (i == 0) first = last;
  }
  CHECK(first > 0.5);
  CHECK(last < 0.5 * first);
  CHECK(run.out.find('\r') == std::string::npos);
}

TEST_CASE("text_classifier prints precision, recall and F1, of labels never predicted or never there as well") {
  const TemporaryFolder folder;
  std::string lines;  // nothing tells the labels apart, so that the most frequent is predicted
  for (int i = 0; i < 60; ++i) lines += i % 6 == 0 ? "rare same\n" : i % 6 == 1 ? "absent same\n" : "common same\n";
  const auto run = run_example("text_classifier --train " + folder.write("train", lines) + tiny + "--test " +
                               folder.write("test", "common same\nrare same\ncommon same\ncommon same\n"));
  CAPTURE(run.out);
  CHECK(run.err == "");
  CHECK(run.out.find("\n"
                     "                precision   recall       F1    tests\n"
                     "absent                  -        -        -        0\n"
                     "common              75.0%   100.0%    85.7%        3\n"
                     "rare                 0.0%     0.0%     0.0%        1\n"
                     "mean                37.5%    50.0%    42.9%\n") != std::string::npos);
}

TEST_CASE("text_classifier lists the labels with the lowest F1 when they are too many for a table") {
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 25 * 8; ++i)  // the first two are the same to the model
    lines += "label" + std::to_string(100 + i % 25) + " word" + std::to_string(i % 25 == 1 ? 0 : i % 25) + '\n';
  const std::string data = folder.write("lines", lines);
  const auto run =
      run_example("text_classifier --train " + data + " --test " + data + " --width 32 --heads 2 --lr 0.05");
  CAPTURE(run.out);
  CHECK(run.err == "");
  const std::string table = run.out_from("25 labels are too many for a table; those with the lowest F1:\n");
  CHECK(table.find("\nlabel100 ") < table.find("\nlabel102 "));
  CHECK(table.find("\nlabel101 ") < table.find("\nlabel102 "));
  CHECK(table.find("\nlabel119 ") != std::string::npos);
  CHECK(table.find("\nlabel120 ") == std::string::npos);
  CHECK(table.find("\n... and 5 more labels\nmean ") != std::string::npos);
}

TEST_CASE("text_classifier lines its tables up under labels that are long, wide, accented or combined") {
  const TemporaryFolder folder;
  const std::string labels[] = {"日本語", "e\u0301te\u0301", "a_label_of_more_than_sixteen", "ünï"};
  std::string lines;
  for (int i = 0; i < 80; ++i) lines += labels[i % 4] + " text\n";
  const std::string data = folder.write("lines", lines);
  const auto run = run_example("text_classifier --train " + data + " --test " + data + " --steps 1");
  CAPTURE(run.out);
  std::istringstream tables(run.out_from("true \\ predicted"));
  const auto columns = [](const std::string& line) {  // an ideograph takes two, a combining acute none
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
    std::getline(tables, line);  // what stands between the tables
  }
}

TEST_CASE("the same seed gives text_classifier the same results, another seed others") {
  const TemporaryFolder folder;
  const std::string command = "text_classifier --tokens characters --data " +
                              folder.write("words", words_of_three_languages(200)) + tiny + "--classify eau --seed ";
  const auto results = [&](const char* seed) { return run_example(command + seed).out_from("test accuracy"); };
  const std::string first = results("1");
  REQUIRE(first != "");
  CHECK(first == results("1"));
  CHECK(first != results("2"));
}

TEST_CASE("a saved text_classifier says the same once it is loaded") {
  const TemporaryFolder folder;
  const std::string data = folder.write("words", words_of_three_languages(300)), model = folder.path("model");
  const std::string words = " --classify eauté KATOMI xyz";
  const auto saved = run_example("text_classifier --tokens characters --positions yes --max-length 9 --data " + data +
                                 tiny + "--save " + model + words);
  const auto loaded = run_example("text_classifier --load " + model + " --data " + data + words);
  CHECK(loaded.err == "");
  REQUIRE(saved.out_from("test accuracy") != "");
  CHECK(saved.out_from("test accuracy") == loaded.out_from("test accuracy"));
  CHECK(run_example("text_classifier --load " + model + words).out_from("yours:") == saved.out_from("yours:"));

  const auto tested = run_example("text_classifier --load " + model + " --test " + data);
  CHECK(first_line(tested.out) == "300 to test with");

  const auto strange = run_example("text_classifier --load " + model + " --data " + folder.write("r", reviews(30)));
  CHECK(strange.status == 1);
  CHECK(strange.err.find("r:10: expected a label that was learned (isle, nörd, val), given 'blame'") !=
        std::string::npos);
}

TEST_CASE("Ctrl-C stops text_classifier after its step, and what --save asked for is kept") {
  const TemporaryFolder folder;
  const std::string model = folder.path("model"), out = folder.path("out");
  const auto run = run_shell("$examples/text_classifier --steps 100000000 --data " +
                             folder.write("data", reviews(200)) + " --save " + model + " >" + out + " & program=$!\n" +
                             "until grep -qs '^step' " + out + "; do sleep 0.05; done\n" +
                             "kill -INT $program; wait $program; status=$?; cat " + out + "; exit $status");
  CAPTURE(run.out);
  CHECK(run.err == "");
  CHECK(run.status == 130);
  CHECK(run.out_from("stopped early") != "");
  CHECK(run.out_from("test accuracy") != "");
  const auto loaded = run_example("text_classifier --load " + model + " --classify 'a good film'");
  CHECK(loaded.status == 0);
}

TEST_CASE("text_classifier --explain writes what the heads attend to, after training and from a saved model") {
  const TemporaryFolder folder;
  const std::string data = "text_classifier --tokens characters --data " +
                           folder.write("words", words_of_three_languages(200)) + tiny,
                    model = folder.path("model"), drawn = "picture of the weights: ";
  const bool gnuplot = std::system("command -v gnuplot >/dev/null") == 0;
  const auto check = [&](const Run& run, const std::string& name) {
    CAPTURE(run.out);
    CAPTURE(run.err);
    CHECK(run.out.find("  KAtö  ") != std::string::npos);
    CHECK(run.out.find("2 heads, 6 x 6 tokens: " + folder.path(name + ".csv")) != std::string::npos);
    CHECK(folder.read(name + ".csv").find("\n1,0,5,⊢,⊣,") != std::string::npos);
    CHECK(folder.read(name + ".npy").size() == 128 + 2 * 6 * 6 * 4);
    CHECK(folder.read(name + ".gradients.npy").size() == 128 + 2 * 6 * 6 * 4);
    CHECK(run.status == (gnuplot ? 0 : 1));
    CHECK((run.out.find(drawn + folder.path(name + ".png")) != std::string::npos) == gnuplot);
    CHECK((run.err.find("gnuplot-nox") == std::string::npos) == gnuplot);
  };
  check(run_example(data + "--save " + model + " --explain KAtö --explain-to " + folder.path("one")), "one");
  check(run_example("text_classifier --load " + model + " --explain KAtö --explain-to " + folder.path("two")), "two");
  CHECK(folder.read("one.csv") == folder.read("two.csv"));
}

TEST_CASE("text_classifier learns random sequences by heart") {
  const auto run = run_example("text_classifier --data random --width 64 --steps 100 --lr 0.2 --batch-size 8");
  CAPTURE(run.out);
  CHECK(run.status == 0);
  const auto loss_at = [&](const std::string& step) {
    const std::string line = first_line(run.out_from("step " + step + " of 100"));
    return line.empty() ? -1 : std::stod(line.substr(line.find("loss ") + 5));
  };
  CHECK(loss_at("  0") > 0.8);
  CHECK(loss_at("  0") < 1.5);
  CHECK(loss_at(" 10") > 0);  // ten lines, and the last step
  CHECK(loss_at(" 99") < 0.5);
}

TEST_CASE("text_classifier tells the languages of Debian's word lists apart") {
  for (const char* list : {"american-english", "spanish", "italian"})
    if (!std::filesystem::exists(std::string("/usr/share/dict/") + list)) {
      MESSAGE("not tested: the word list " << list << " is not installed");
      return;
    }
  const auto run = run_example(
      "text_classifier --languages english spanish italian --words 1000 --steps 300"
      " --classify through grazie --batch-size 32");
  CAPTURE(run.out);
  CHECK(run.err == "");
  CHECK(run.status == 0);
  CHECK(run.out.find("that more than one list has are left out") != std::string::npos);
  CHECK(run.out.find("2,700 to learn from, 300 to test with") != std::string::npos);
  CHECK(accuracy(run) > 55);  // guessing gives 33
  CHECK(run.out_from("yours:").find("through") != std::string::npos);
}

TEST_CASE("text_classifier --help explains itself") {
  const auto run = run_example("text_classifier --help");
  CHECK(run.status == 0);
  CHECK(run.err == "");
  for (const char* word : {"--languages", "--data", "--save", "--classify", "--seed", "Examples:"})
    CHECK(run.out.find(word) != std::string::npos);
}

TEST_CASE("text_classifier answers what it cannot use with one line and the exit status 1") {
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

  SUBCASE("files") {
    refuses("--data " + folder.path("none"), "none: expected a text file, but it cannot be opened: No such file");
    refuses("--data " + file("empty", ""), "empty: expected a text file, given an empty one");
    refuses("--data " + file("blank", "\n\n\n\n\n\n\n\n\n\n\n"),
            "blank: expected lines of a label, a space and a text");
    refuses("--data " + file("short", "a b\nc d\n"), "short: expected 10 lines or more, since every tenth is kept");
    refuses("--train " + good + " --test " + file("no_label", "praise a\n\n  good\n"),
            "no_label:3: expected a label, a space and a text, given '  good'");
    refuses("--data " + file("latin1", "a b\nc caf\xe9\n"),
            "latin1:2: expected UTF-8, given the byte 0xe9 as character 6");
    refuses("--data " + file("cut", "a b\nc caf\xc3"), "cut:2: expected UTF-8, given the byte 0xc3 as character 6");
    refuses("--train " + file("one", "a b\na c\n") + " --test " + good, "one:1: expected two labels or more");
    refuses("--train " + good + " --test " + file("other", "praise a\nshrug b\n"),
            "other:2: expected a label that was learned (blame, praise), given 'shrug'");
    refuses("--languages english " + folder.path("none"), "none: expected a text file");
    refuses("--languages " + list + ' ' + file("more", "three\n"), "--words: expected at most 2");
    refuses("--load " + good + " --classify a", "good");
    refuses("--data " + good + " --explain a --explain-to " + folder.path("none/map"),
            "none/map.csv: expected a path in a folder");
    refuses("--data " + good + " --save " + folder.path("none/model"), "none/model: expected a path in a folder");
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
      refuses("--classify a --load " + other, "other: expected settings that text_classifier saved, given others: " +
                                                  setting + ": expected a whole number from 1 to ");
    }
    for (const char* setting : {"vocabulary", "labels"}) {
      auto settings = nlohmann::json::parse(metadata.at("text_classifier"));
      settings[setting] = nlohmann::json::array();
      tg::save(strange, other, {{"text_classifier", settings.dump()}});
      refuses("--classify a --load " + other, "other: expected ");
    }
  }
  SUBCASE("options") {
    refuses("--nonsense", "--nonsense");
    refuses("--steps many", "--steps: expected a whole number of at least 1, given 'many'");
    refuses("--steps -3", "--steps: expected a whole number of at least 1, given '-3'");
    refuses("--seed 1.5", "--seed: expected a whole number of at least 0, given '1.5'");
    refuses("--lr nan", "--lr: expected a number from 0 to 1e+06, given 'nan'");
    refuses("--dropout 1", "--dropout: expected a number from 0 to 0.99, given '1'");
    refuses("--heads 7", "--heads: expected a number that divides the width 64, given 7");
    refuses("--data " + good + " --tokens bytes", "--tokens: expected characters|words, given 'bytes'");
    refuses("--languages english klingon", "given 'klingon'");
    refuses("--classify $(printf 'caf\\351')", "--classify: expected UTF-8, given the byte 0xe9 as character 4");
    refuses("--data " + good + " --lr 1000 --steps 100", "--lr: expected a learning rate that lets the loss fall");
  }
  SUBCASE("options that do not go together") {
    refuses("--tokens words", "--tokens: expected together with --data or --train");
    refuses("--train " + good, "--train: expected together with --test");
    refuses("--test " + good, "--test: expected together with --train or --load");
    refuses("--data " + good + " --test " + good, "--test: expected without --data");
    refuses("--data " + good + " --words 100", "--words: expected without --data");
    refuses("--load model", "--load: expected together with --classify, --explain, --data or --test");
    refuses("--load model --classify a --steps 3", "--steps: expected without --load");
    refuses("--classify a --explain-to name", "--explain-to: expected together with --explain");
    refuses("--data random --explain a", "--explain: expected without --data random");
    refuses("--data random --save model", "--save: expected without --data random");
  }
}

TEST_CASE("text_classifier reads ISO-8859-1 when told so") {
  const TemporaryFolder folder;
  std::string latin1 = reviews(100);
  for (std::size_t i = 0; (i = latin1.find("dull", i)) != latin1.npos;) latin1.replace(i, 4, "pass\xe9");
  const auto run = run_example("text_classifier --encoding latin1 --data " + folder.write("latin1", latin1) + tiny +
                               "--classify passé");
  CHECK(run.err == "");
  CHECK(run.out_from("yours:").find("passé   blame") != std::string::npos);
}
