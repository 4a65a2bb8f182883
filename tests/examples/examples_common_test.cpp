#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <new>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../examples/common/batches.hpp"
#include "../../examples/common/given.hpp"
#include "../../examples/common/interrupt.hpp"
#include "../../examples/common/printable.hpp"
#include "../../examples/common/program.hpp"
#include "../../examples/common/progress.hpp"
#include "../../examples/common/text.hpp"
#include "../../examples/common/training.hpp"
#include "../../examples/common/training_log.hpp"
#include "../../examples/common/vocabulary.hpp"
#include "../../examples/common/word_lists.hpp"
#include "temporary_folder.hpp"
#include "text.hpp"

namespace examples {
namespace tg = tapegrad;

TEST_CASE("UTF-8 is decoded to code points and encoded back, from one byte to four") {
  const std::string bytes = "a\xc3\x9f\xe2\x82\xac\xf0\x9f\x99\x82\x7f";  // a ß € 🙂 DEL
  const Text text = decode(bytes);
  CHECK(text == U"aß€🙂\x7f");
  CHECK(encode(text) == bytes);
  CHECK(encode(U"\u0080\u07ff\u0800\uffff\U00010000\U0010ffff") ==
        "\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
  CHECK(decode("").empty());
}

TEST_CASE("Invalid UTF-8 is refused with the byte and its position") {
  for (const char* bytes : {"ab\xe9", "ab\xc3", "ab\x80", "ab\xc0\x80", "ab\xe0\x9f\xbf", "ab\xed\xa0\x80",
                            "ab\xf4\x90\x80\x80", "ab\xf5\x80\x80\x80", "ab\xe2\x82", "ab\xc3z"}) {
    CAPTURE(bytes);
    CHECK_THROWS_WITH_AS(decode(bytes), doctest::Contains("at character 3"), std::invalid_argument);
  }
  CHECK_THROWS_WITH(decode("na\xefve"), "expected UTF-8, got the byte 0xef at character 3");
}

TEST_CASE("In ISO-8859-1 every byte is the character with its number") {
  const TemporaryFolder folder;
  CHECK(read_text(folder.write("latin1", "na\xefve\xff\xbf"), Encoding::latin1) == "naïveÿ¿\n");
}

TEST_CASE("Terminal control characters are escaped when printed, and long text is shortened") {
  CHECK(printable("aß€🙂 'x' \\") == "aß€🙂 'x' \\");
  CHECK(printable("\x1b[2J\a\n\t\r\x7f") == "\\x1b[2J\\x07\\n\\t\\r\\x7f");
  CHECK(printable("\xc2\x9b|\u202e|\u2066|\u200f") == "\\x9b|\\u202e|\\u2066|\\u200f");
  CHECK(printable("ca\xe9|\xc3|\xed\xa0\x80") == "ca\\xe9|\\xc3|\\xed\\xa0\\x80");
  CHECK(printable("äöü", 3) == "äöü");
  CHECK(printable("äöüß", 3) == "äö…");
  CHECK(printable_text("\na\tb\x1b\n\nc") == "\na\tb\\x1b\n\nc");
  CHECK(in_quotes(std::string(1000, 'x')) == "'" + std::string(59, 'x') + "…'");
  CHECK(listed({"a", "b"}) == "a, b");
  CHECK(listed(std::vector<std::string>(10'000, "a")) == "a, a, a, a, a, a, a, a, a, a, ... and 9,990 more");
  CHECK(one_line("a\nb\x1b") == "a b\\x1b");
  std::string umlauts;
  for (int i = 0; i < 1000; ++i) umlauts += "ü";
  const std::string line = one_line("x" + umlauts + "got 3");
  CHECK(line.size() < 1000);
  CHECK(contains(line, "üü ... üü"));
  CHECK(line.ends_with("got 3"));
}

TEST_CASE("Capitals become lowercase in Latin, Greek and Cyrillic, and nothing else changes") {
  CHECK(to_lower(U"ÀÉÎÕÜÝÞ ĄĹŁŃŐŸŹŽ ΑΩ АЯЁЇ Z") == U"àéîõüýþ ąĺłńőÿźž αω аяёї z");
  CHECK(to_lower(U"aßÿ×÷ąĺłńőžа1-€") == U"aßÿ×÷ąĺłńőžа1-€");
}

TEST_CASE("Letters are distinguished from symbols") {
  for (const char32_t c : U"azAZßéłŒαя")
    if (c) CHECK(is_letter(c));
  for (const char32_t c : U"'-. 0@[`{×÷€\u00a0") CHECK(!is_letter(c));
}

TEST_CASE("Lines are read without their ends, of any kind, and without a byte order mark") {
  const TemporaryFolder folder;
  CHECK(read_lines(folder.write("unix", "a\n\nb\n")) == std::vector<Text>{U"a", U"", U"b"});
  CHECK(read_lines(folder.write("dos",
                                "\xef\xbb\xbf"
                                "a\r\nb")) == std::vector<Text>{U"a", U"b"});
  CHECK(read_lines(folder.write("mac", "a\r\rb\r")) == std::vector<Text>{U"a", U"", U"b"});
  CHECK(read_lines(folder.write("mixed", "a\n\rb\r\n\r\nc\r\r\nd")) ==
        std::vector<Text>{U"a", U"", U"b", U"", U"c", U"", U"d"});
  CHECK(read_lines(folder.write("latin1", "\xe9\n"), Encoding::latin1) == std::vector<Text>{U"é"});
}

TEST_CASE("Files that are not text are refused by name, and by line if possible") {
  const TemporaryFolder folder;
  const auto refuses = [](const std::string& path, const std::string& why) {
    CHECK_THROWS_WITH_AS(read_lines(path), doctest::Contains((path + why).c_str()), std::runtime_error);
  };
  refuses(folder.path("missing"), ": cannot be opened: No such file");
  refuses(folder.write("empty", ""), ": expected a text file, got an empty one");
  refuses(folder.path(""), ": expected a text file, got a folder");
  refuses(folder.write("latin1", "one\ntwo\nthr\xe9\n"), ":3: expected UTF-8, got the byte 0xe9 at character 4");
  refuses(folder.write("zero", std::string("one\0two", 7)), ": expected a text file, got a zero byte");
  refuses("/proc/self/mem", ": cannot be read: Input/output error");
  refuses(folder.write("cut", "one\ntw\xc3"), ":2: expected UTF-8, got the byte 0xc3 at character 3");
}

TEST_CASE("A text is divided into characters or words") {
  CHECK(split(U"é ß", Unit::characters) == std::vector<std::string>{"é", " ", "ß"});
  CHECK(split(U"  a\tbé  c ", Unit::words) == std::vector<std::string>{"a", "bé", "c"});
  CHECK(split(U"", Unit::words).empty());
}

TEST_CASE("A vocabulary numbers its tokens after the special ones, and maps others to unknown") {
  const Vocabulary vocabulary({"a", "b"});
  CHECK(vocabulary.size() == 6);
  CHECK(vocabulary.id("b") == 5);
  CHECK(vocabulary.token(5) == "b");
  CHECK(vocabulary.id("c") == Vocabulary::unknown);
  CHECK_THROWS_WITH_AS(Vocabulary({"a", "b", "a"}), doctest::Contains("got 'a' twice"), std::invalid_argument);
}

TEST_CASE("A tokenizer marks beginning and end, truncates long texts, and maps rare tokens to unknown") {
  const Tokenizer tokenizer = make_tokenizer({U"abca", U"b"}, Unit::characters, 5);
  CHECK(tokenizer.vocabulary.tokens() == std::vector<std::string>{"a", "b"});
  CHECK(tokenizer(U"bca") == Ids{Vocabulary::begin, 5, Vocabulary::unknown, 4, Vocabulary::end});
  CHECK(tokenizer(U"aaaaaaa") == Ids{Vocabulary::begin, 4, 4, 4, 4});
  CHECK(make_tokenizer({U"abca", U"b"}, Unit::characters, 5, 1).vocabulary.tokens() ==
        std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("Sequences are padded to the longest one selected, and the mask marks the real tokens") {
  const std::vector<Ids> sequences{{5, 0, 7}, {9}, {1, 2, 3, 4}};
  const std::vector<std::size_t> chosen{1, 0};
  const auto [ids, keep, tokens] = pad(sequences, chosen);
  CHECK(ids == tg::IntArray{{9, 0, 0}, {5, 0, 7}});
  CHECK(keep == tg::BoolArray{{true, false, false}, {true, true, true}});
  CHECK(tokens == 4);
}

TEST_CASE("Batches return every sequence once before any again, similar lengths together") {
  tg::manual_seed(0);
  std::vector<Ids> sequences;
  for (std::size_t i = 0; i < 70; ++i) sequences.emplace_back(1 + i % 7);
  Batches batches(sequences, 16);
  Place place;
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<int> seen(sequences.size());
    std::size_t padding = 0;
    for (int batch = 0; batch < 5; ++batch) {
      const auto chosen = batches.next(place);
      CHECK(chosen.size() <= 16);
      for (const std::size_t i : chosen) ++seen[i];
      const Padded padded = pad(sequences, chosen);
      padding += padded.ids.size() - padded.tokens;
    }
    CHECK(seen == std::vector<int>(70, 1));
    CHECK(padding < 60);  // in random order it would be about 190
  }
  CHECK_THROWS_WITH_AS(Batches({}, 16), doctest::Contains("got none"), std::invalid_argument);
}

TEST_CASE("Piped progress is plain lines, for one in several steps and the last") {
  std::ostringstream out;
  {
    Progress progress(out, /*terminal=*/false, 5, 2);
    for (std::size_t step = 0; step < 5; ++step) progress.report(step, 1.0 / (1.0 + static_cast<double>(step)), 1000);
  }
  std::istringstream lines(out.str());
  std::string line;
  for (const char* start : {"step 0 of 5   loss 1.0000 ", "step 2 of 5   loss 0.3333 ", "step 4 of 5   loss 0.2000 "}) {
    REQUIRE(std::getline(lines, line));
    CHECK(line.starts_with(start));
    CHECK(contains(line, " tokens/s   0:00 "));
  }
  CHECK(!std::getline(lines, line));
  CHECK(!contains(out.str(), "\x1b"));
}

TEST_CASE("On a terminal progress rewrites its line and ends it") {
  std::ostringstream out;
  {
    Progress progress(out, /*terminal=*/true, 1000, 1000);
    progress.report(0, 1.0, 10);
  }
  CHECK(out.str().starts_with("\r\x1b[Kstep    0 of 1000   loss 1.0000"));
  CHECK(out.str().ends_with(" left\n"));
}

TEST_CASE("Numbers and times are formatted for people") {
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(1000) == "1,000");
  CHECK(with_commas(12345678) == "12,345,678");
  CHECK(percent(0.765) == "76.5%");
  CHECK(minutes_and_seconds(0.4) == "0:00");
  CHECK(minutes_and_seconds(65) == "1:05");
  CHECK(minutes_and_seconds(3661) == "1:01:01");
}

TEST_CASE("Ctrl-C only sets a flag while an Interrupt exists") {
  Interrupt interrupt;
  CHECK(!interrupt.requested());
  CHECK(interrupt.status() == 0);
  CHECK_NOTHROW(interrupt.check());
  std::raise(SIGTERM);
  CHECK(interrupt.requested());
  CHECK(interrupt.status() == 128 + SIGTERM);
  CHECK_THROWS_AS(interrupt.check(), Interrupt::Stopped);
}

TEST_CASE("A signal while a file is written ends the program after the write") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const TemporaryFolder folder;
    const pid_t child = fork();
    if (child == 0) {
      std::signal(signal, SIG_DFL);
      examples::write_whole([&] {
        std::raise(signal);
        folder.write("file", "whole");
      });
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK((WIFSIGNALED(status) && WTERMSIG(status) == signal));
    CHECK(folder.read("file") == "whole");
  }
}

TEST_CASE("Running out of memory in a function that cannot throw ends the program with one line") {
  const TemporaryFolder folder;
  const std::string err = folder.path("err");
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen(err.c_str(), "w", stderr) == nullptr) _exit(2);
    CLI::App app("", "some_program");
    char name[] = "some_program", *arguments[] = {name, nullptr};
    const auto fails = []() -> int { throw std::bad_alloc(); };
    _exit(run_program(app, 1, arguments, [&]() noexcept { return fails(); }));
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 1));
  CHECK(folder.read("err") == "some_program: not enough memory for these sizes\n");
}

TEST_CASE("A signal while a file is written during training requests the end of the training") {
  const Interrupt interrupt;
  examples::write_whole([] { std::raise(SIGHUP); });
  CHECK(interrupt.status() == 128 + SIGHUP);
}

TEST_CASE("A program started with nohup ignores the hangup signal during training") {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  {
    const Interrupt interrupt;
    std::raise(SIGHUP);
    CHECK(!interrupt.requested());
  }
  std::signal(SIGHUP, before);
}

TEST_CASE("On a terminal the first signal prints what happens next") {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  const bool opened = terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0;
  const int other_end = opened ? open(ptsname(terminal), O_RDWR | O_NOCTTY) : -1, before = dup(STDERR_FILENO);
  if (other_end < 0) {
    MESSAGE("skipped: this system opens no pseudo-terminal: " << std::strerror(errno));
    return;
  }
  dup2(other_end, STDERR_FILENO);
  {
    Interrupt interrupt;
    std::raise(SIGINT);
  }
  dup2(before, STDERR_FILENO);
  for (const int descriptor : {before, other_end}) close(descriptor);
  std::string said;  // the terminal returns it in pieces; read() fails after the last
  char piece[200];
  for (ssize_t size; (size = read(terminal, piece, sizeof piece)) > 0;) said.append(piece, piece + size);
  CHECK(contains(said, "interrupt again to quit immediately"));
  close(terminal);
}

TEST_CASE("Word lists keep each lowercase word of only letters once, and drop words shared by lists") {
  const TemporaryFolder folder;
  const std::string left = folder.write("left.txt", "Haus\nhaus\nover-all\nit's\nmp3\n\nRest\nÖl\n");
  const std::string right = folder.write("right.txt", "maison\nrest\n");
  auto lists = read_word_lists({left, right});
  REQUIRE(lists.size() == 2);
  CHECK(lists[0].language == "left");
  CHECK(lists[0].words == std::vector<Text>{U"haus", U"rest", U"öl"});
  CHECK(remove_shared_words(lists) == 1);
  CHECK(lists[0].words == std::vector<Text>{U"haus", U"öl"});
  CHECK(lists[1].words == std::vector<Text>{U"maison"});
}

TEST_CASE("Unknown languages and duplicates are refused") {
  CHECK_THROWS_WITH_AS(read_word_lists({"klingon"}), doctest::Contains("got 'klingon'"), std::invalid_argument);
  const TemporaryFolder folder;
  const std::string list = folder.write("list", "a\n");
  CHECK_THROWS_WITH_AS(read_word_lists({list, list}), doctest::Contains("twice"), std::invalid_argument);
}

// ---- training: options, schedules, the position in the data, the log ------------------------------------------------

TEST_CASE("The rate warms up, then decays by the chosen schedule") {
  TrainingOptions options{.steps = 110, .lr = 1, .lr_floor = 0.1, .warmup = 10, .decay = Decay::cosine};
  const auto cosine = schedule_of(options);
  const auto expected = tg::warmup_cosine({.peak = 1, .floor = 0.1, .warmup = 10, .steps = 110});
  for (std::size_t step = 0; step < 120; ++step) CHECK(cosine(step) == doctest::Approx(expected(step)).epsilon(1e-12));

  options.decay = Decay::linear;
  const auto linear = schedule_of(options);
  CHECK(linear(0) == doctest::Approx(1.0 / 11));
  CHECK(linear(10) == 1);
  CHECK(linear(60) == doctest::Approx(0.55));
  CHECK(linear(110) == doctest::Approx(0.1));

  options.decay = Decay::none;
  CHECK(schedule_of(options)(5) == doctest::Approx(6.0 / 11));
  CHECK(schedule_of(options)(109) == 1);
  options.warmup = 1000;  // more than the number of steps
  CHECK(schedule_of(options)(109) == doctest::Approx(110.0 / 111));
}

TEST_CASE("muon trains the blocks' matrices, and adamw the other parameters") {
  struct Model {
    tg::Embedding<> embedding{5, 4};
    std::vector<tg::Linear<>> blocks;
    tg::Linear<> head{4, 5};
    TAPEGRAD_FIELDS(embedding, blocks, head)
  } model;
  model.blocks.emplace_back(4, 4);
  tg::add_low_rank(model.blocks.emplace_back(4, 4), 2, 4);
  TrainingState state(tg::parameters(model), {.optimizer = OptimizerKind::muon, .lr = 0.1});
  REQUIRE(state.muon);
  const auto names = [](const auto& optimizer) {
    std::set<std::string> all;
    for (const auto& parameter : optimizer.parameters()) all.insert(parameter->name());
    return all;
  };
  CHECK(names(*state.muon) == std::set<std::string>{"blocks.0.weight", "blocks.1.weight"});
  CHECK(names(*state.adamw) == std::set<std::string>{"embedding.weight", "blocks.0.bias", "blocks.1.bias",
                                                     "blocks.1.lora_A.weight", "blocks.1.lora_B.weight", "head.weight",
                                                     "head.bias"});
  CHECK(state.optimizers().size() == 2);
  CHECK_THROWS_AS(TrainingState(tg::parameters(model.head), {.optimizer = OptimizerKind::muon}), std::invalid_argument);
}

TEST_CASE("Parameters of two axes decay and biases do not, with sgd and adamw") {
  tg::Linear<> layer(3, 2);
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adamw}) {
    TrainingState state(tg::parameters(layer), {.optimizer = kind, .lr = 0.1, .weight_decay = 0.5});
    const auto weight = layer.weight.value(), bias = layer.bias.value();
    tg::Tape tape;
    (tg::sum(layer(tg::tensor({{1, 1, 1}}))) * 0.0F).backward();
    for (tg::Optimizer<float>* const optimizer : state.optimizers()) optimizer->step();
    CHECK(layer.weight.value() != weight);
    CHECK(layer.bias.value() == bias);
  }
}

TEST_CASE("Batches resume in the middle of an epoch, in a new object and in a used one") {
  tg::manual_seed(1);
  std::vector<Ids> sequences;
  for (std::size_t i = 0; i < 50; ++i) sequences.emplace_back(1 + i % 7);
  const auto take = [](Batches& batches, Place& place, int count) {
    std::vector<std::size_t> taken;
    for (int i = 0; i < count; ++i) {
      const auto chosen = batches.next(place);
      taken.insert(taken.end(), chosen.begin(), chosen.end());
    }
    return taken;
  };
  Batches batches(sequences, 8), elsewhere(sequences, 8);
  Place place, other;
  take(batches, place, 10);
  take(elsewhere, other, 3);
  const tg::Generator random = tg::default_generator();
  const Place kept = place;
  const auto expected = take(batches, place, 9);

  for (int same = 0; same < 2; ++same) {
    Batches fresh(sequences, 8);
    tg::default_generator() = random;
    place = kept;
    CHECK(take(same == 0 ? elsewhere : fresh, place, 9) == expected);
  }
  place.batches_left = 8;
  CHECK_THROWS_AS(batches.next(place), std::out_of_range);
}

TEST_CASE("A log has complete rows of the steps taken, and other files are refused") {
  const TemporaryFolder folder;
  const std::string path = folder.path("log.csv");
  const auto add = [&](std::size_t taken, std::vector<std::size_t> steps) {
    TrainingLog log(path, taken);
    for (const std::size_t step : steps) log.add({step, 2.5, std::nullopt, 0.1, 1.5, 1000});
  };
  const std::string header = "step,loss,validation_loss,rate,gradient_norm,tokens_per_second\n";
  add(0, {1, 2, 3});
  add(2, {3, 4});
  CHECK(folder.read("log.csv").substr(0, header.size()) == header);
  const auto expected = [&](int last) {
    std::string text = header;
    for (int step = 1; step <= last; ++step) text += std::to_string(step) + ",2.5,,0.1,1.5,1000\n";
    return text;
  };
  CHECK(folder.read("log.csv") == expected(4));
  std::ofstream(path, std::ios::app) << "5,2.";
  add(9, {});
  CHECK(folder.read("log.csv") == expected(4));
  add(0, {1});  // a new run
  CHECK(folder.read("log.csv") == expected(1));

  folder.write("log.csv", "1,2\n3,4\n");
  CHECK_THROWS_WITH_AS(add(0, {}), doctest::Contains("expected a training log"), std::runtime_error);
  CHECK(folder.read("log.csv") == "1,2\n3,4\n");

  for (const char* rows :
       {"end\nset output 'x'\n", "1,2.5,,0.1,1.5,1000\nend\n", "1,2.5,,0.1,1.5\n", "1,2.5,,0.1,1.5,1000,7\n",
        "1,2.5,,0.1,1.5,1000 \n", "-1,2.5,,0.1,1.5,1000\n", ",2.5,,0.1,1.5,1000\n", "1,`ls`,,0.1,1.5,1000\n", "\n"}) {
    CAPTURE(rows);
    folder.write("log.csv", header + rows);
    CHECK_THROWS_WITH_AS(add(3, {}), doctest::Contains("expected a training log"), std::runtime_error);
    CHECK(folder.read("log.csv") == header + rows);
  }
  const std::string odd = header + "1,1e-05,nan,0,inf,0\n2,-1.5e+20,,1e+06,nan,1000\n";
  folder.write("log.csv", odd);
  add(2, {});
  CHECK(folder.read("log.csv") == odd);
}

TEST_CASE("Validations without a lower loss are counted, and patience ends the training") {
  struct {
    tg::Linear<> layer{2, 1};
    TAPEGRAD_FIELDS(layer)
  } model;
  const auto parameters = tg::parameters(model);
  const TrainingOptions options{.steps = 100, .lr = 0, .eval_every = 10, .patience = 2};
  TrainingState state(parameters, options);
  std::vector<double> losses{3, 2, 4, 1, 5, 6, 0};
  std::size_t next = 0, bests = 0;
  std::ostringstream out;
  std::streambuf* before = std::cout.rdbuf(out.rdbuf());
  const int status = train(state, parameters, options,
                           {.next_loss =
                                [&] {
                                  return StepLoss{tg::mean(model.layer(tg::tensor({{1, 1}}))), 1, 2};
                                },
                            .validation_loss = [&] { return losses[next++]; },
                            .on_best = [&] { ++bests; }});
  std::cout.rdbuf(before);
  CHECK(out.str().find("after 20 steps: validation loss 2.0000, the lowest so far\n") != std::string::npos);
  CHECK(out.str().find("after 30 steps: validation loss 4.0000\n") != std::string::npos);
  CHECK(out.str().ends_with("stopped early: no lower validation loss since step 40\n"));
  CHECK(status == 0);
  CHECK(state.step == 60);
  CHECK(state.best_step == 40);
  CHECK(state.best_loss == 1);
  CHECK(bests == 3);
}

TEST_CASE("Saved options are checked like the command line, or have their defaults") {
  CLI::App app;
  Given<TrainingOptions> given;
  std::uint64_t seed = 0;
  add_training_options(app, given, seed);
  add_validation_options(app, given);
  const auto check = [&](const TrainingOptions& kept) { given.check("run", kept); };
  CHECK_NOTHROW(check({}));  // its eval_every is 0, invalid as --eval-every
  CHECK_NOTHROW(check({.lr = 0.1, .beta2 = 0.999999, .eval_every = 1}));
  CHECK_NOTHROW(check({.lr = 0x1p-1074, .clip = 1.0 / 3}));
  CHECK_THROWS_WITH_AS(check({.batch_size = 0}),
                       "run: --batch-size: expected a whole number from 1 to 1000000, got '0'", std::runtime_error);
  CHECK_THROWS_WITH_AS(check({.lr = std::nan("")}), "run: --lr: expected a number from 0 to 1e+06, got 'nan'",
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(check({.beta2 = 0.9999991}),
                       "run: --beta2: expected a number from 0 to 0.999999, got '0.9999991'", std::runtime_error);
}

TEST_CASE("Contradicting options are found by name, and equal ones are accepted") {
  CLI::App app;
  Given<TrainingOptions> given;
  std::uint64_t seed = 0;
  add_training_options(app, given, seed);
  app.parse("--lr 0.5 --optimizer adamw --steps 7");
  const TrainingOptions all = given.value_or({.batch_size = 3});
  CHECK(all.lr == 0.5);
  CHECK(all.optimizer == OptimizerKind::adamw);
  CHECK(all.batch_size == 3);
  CHECK(given.contradicting(all).empty());
  TrainingOptions other = all;
  other.lr = 0.4;
  other.batch_size = 9;
  CHECK(given.contradicting(other) == std::vector<std::string>{"--lr"});
}

}  // namespace examples
