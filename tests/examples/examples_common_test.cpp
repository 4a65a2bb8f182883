#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <sstream>
#include <stdexcept>

#include "../../examples/common/batches.hpp"
#include "../../examples/common/interrupt.hpp"
#include "../../examples/common/printable.hpp"
#include "../../examples/common/program.hpp"
#include "../../examples/common/progress.hpp"
#include "../../examples/common/text.hpp"
#include "../../examples/common/vocabulary.hpp"
#include "../../examples/common/word_lists.hpp"
#include "temporary_folder.hpp"

namespace examples {

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
  CHECK(ids == tapegrad::IntArray{{9, 0, 0}, {5, 0, 7}});
  CHECK(keep == tapegrad::BoolArray{{true, false, false}, {true, true, true}});
  CHECK(tokens == 4);
}

TEST_CASE("Batches return every sequence once before any again, similar lengths together") {
  tapegrad::manual_seed(0);
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
  if (terminal < 0) {
    MESSAGE("skipped: this system opens no pseudo-terminal: " << std::strerror(errno));
    return;
  }
  REQUIRE((grantpt(terminal) == 0 && unlockpt(terminal) == 0));
  const int other_end = open(ptsname(terminal), O_RDWR | O_NOCTTY), before = dup(STDERR_FILENO);
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

}  // namespace examples
