// The examples' common behavior with the terminal, signals and user files.

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "run_example.hpp"

namespace {

const std::string smallest = " --width 8 --heads 1 --batch-size 8 --steps 200 --lr 0.01 ",
                  endless = " --steps 100000000 ";

/// Lines of a label, a space and a text, cycling through this many labels.
std::string labelled(int lines, const std::string& label, int labels) {
  std::string text;
  for (int i = 0; i < lines; ++i) text += label + std::to_string(i % labels) + " a text of words " + '\n';
  return text;
}

std::string letters(std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += "over all the hills\nis rest.\n";
  return text;
}

/// Words of repeated letters, with the letter as the target.
std::string letter_pairs() {
  std::string lines;
  for (char c = 'a'; c <= 'z'; ++c) lines += std::string(2, c) + '\t' + c + '\n';
  return lines;
}

bool has_control_bytes(const std::string& text) {
  const auto is_control = [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f; };
  return std::any_of(text.begin(), text.end(), is_control) || contains(text, "\xc2\x9b");
}

}  // namespace

// ---- standard output ----------------------------------------------------------------------------------------------

TEST_CASE("Output to a full device is an error in every program, also with --help") {
  const TemporaryFolder folder;
  const std::string data = folder.write("data", labelled(40, "label", 2)), text = folder.write("text", letters(1000));
  for (const std::string& command :
       {std::string("masking"), std::string("schedules"), std::string("contextual_embedding --seed 1"),
        std::string("manual_backward --help"), "text_classifier --data " + data + smallest,
        "language_model --data " + text + smallest,
        "pronounce --data " + folder.write("pairs", letter_pairs()) + smallest}) {
    CAPTURE(command);
    const Run run = run_example(command + " >/dev/full");
    check_message(run, command.substr(0, command.find(' ')), ": standard output: cannot be written");
    CHECK(contains(run.err, "No space left on device"));
  }
}

TEST_CASE("The files of --save are written if standard output is closed, at the start or later") {
  const TemporaryFolder folder;
  const std::string data = folder.write("data", labelled(40, "label", 2)), text = folder.write("text", letters(1000)),
                    status = folder.path("status");
  for (const std::string& command : {"text_classifier --data " + data, "language_model --data " + text,
                                     "pronounce --data " + folder.write("pairs", letter_pairs())}) {
    const std::string program = command.substr(0, command.find(' '));
    for (const std::string& after :
         {" | head -1 >" + folder.path("first"), std::string(" >&-"), std::string(" >/dev/full")}) {
      CAPTURE(after);
      const std::string model = folder.path("model"), training = "$examples/" + command + smallest + "--save " + model;
      Run run = run_shell("{ " + training + "; echo $? >" + status + "; }" + after);
      run.status = std::stoi('0' + folder.read("status"));
      check_message(run, program, "standard output: cannot be written");
      const std::string use = program == "text_classifier" ? " --classify a"
                              : program == "pronounce"     ? " --pronounce a"
                                                           : "";
      run_well(program + " --load " + model + use);
      std::filesystem::remove(model);
    }
  }
}

// ---- contents of files --------------------------------------------------------------------------------------------

TEST_CASE("A message quotes only a short part of a file") {
  const TemporaryFolder folder;
  const std::string long_line(1'000'000, 'x');
  check_message(run_example("text_classifier --data " + folder.write("line", "a b\n " + long_line + '\n')),
                "text_classifier", "line:2: expected a label, a space and a text, got ' xxx");

  const std::string data = folder.write("data", labelled(30'010, "label", 3'001)), model = folder.path("model");
  run_well("text_classifier --data " + data + " --width 8 --heads 1 --steps 1 --save " + model);
  const std::string loaded = "text_classifier --load " + model + " --test ";
  check_message(run_example(loaded + folder.write("other", "strange words\n")), "text_classifier",
                " and 2,991 more), got 'strange'");
  check_message(run_example(loaded + folder.write("long", long_line + " words\n")), "text_classifier",
                " and 2,991 more), got 'xxx");
  check_message(run_example("masking --seed " + std::string(100'000, '9')), "masking", "--seed: expected");
}

TEST_CASE("A report of many labels fits on a page") {
  const TemporaryFolder folder;
  const Run run = run_well("text_classifier --data " + folder.write("data", labelled(3'010, "label", 301)) +
                           " --width 8 --heads 1 --steps 1");
  CHECK(run.out.size() < 10'000);
  const std::string table = run.out_from("301 labels");
  CHECK(contains(table, "the most frequent errors"));
  CHECK(contains(run.out_from("the first test text of each"), "more labels"));
}

TEST_CASE("Control characters from files and options are escaped on the terminal") {
  const TemporaryFolder folder;
  const auto check = [](const Run& run, const std::string& shown) {
    CHECK(!has_control_bytes(run.out));
    CHECK(!has_control_bytes(run.err));
    CHECK(contains(run.out + run.err, shown));
  };
  const std::string red = "\x1b[31m",
                    labels = folder.write("labels", labelled(40,
                                                             red + "\xc2\x9b"
                                                                   "1m\x7f",
                                                             2)),
                    model = folder.path("model");
  check(run_example("text_classifier --data " + labels + smallest + "--classify \"$(printf 'a\\033[2J')\" --save " +
                    model),
        "\\x1b[31m\\x9b1m\\x7f0");
  check(run_example("text_classifier --load " + model + " --test " + folder.write("other", red + "x words\n")),
        "got '\\x1b[31mx'");
  check(run_example("text_classifier --data " + folder.write("line", "a b\n " + red + "\n")), "got ' \\x1b[31m'");
  check(run_example("text_classifier --data \"$(printf 'no\\033such')\""), "no\\x1bsuch");

  std::string names;
  for (int i = 0; i < 60; ++i) names += "kt"[i % 2] + std::string(1, "aeiou"[i % 5]) + "lmn"[i % 3] + "a\x1b\n";
  check(run_example("language_model --lines --data " + folder.write("names", names) + smallest + "--temperature 2"),
        "\\x1b");
  const std::string text = folder.write("text", std::string(600, '\x1b') + std::string(600, '\x9b'));
  check(run_example("language_model --encoding latin1 --data " + text + smallest + "--length 200"), "\\x9b");

  const std::string lists = folder.write("on\xe9", "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n") +
                            ' ' +
                            folder.write("other", "une\ndeux\ntrois\nquatre\ncinq\nsept\nhuit\nneuf\ndix\nonze\n");
  check(run_example("text_classifier --words 10 --languages " + lists + smallest + "--save " + model), "on\\xe9");
}

TEST_CASE("A file that is not text is refused in one line") {
  const TemporaryFolder folder;
  for (const std::string program : {"text_classifier", "language_model", "pronounce"}) {
    CAPTURE(program);
    check_message(run_example(program + " --data " + folder.path("")), program, "got a folder");
    check_message(run_example(program + " --data " + folder.write("file", "x") + "/below"), program, "Not a directory");
    check_message(run_example(program + " --data /proc/self/mem"), program, "mem: cannot be read: ");
    check_message(
        run_example(program + " --load " + folder.path("") + (program == "text_classifier" ? " --classify a" : "")),
        program, "expected a file, got something else");
    const std::string fifo = folder.path(program);
    check_message(run_shell("mkfifo " + fifo + "; : >" + fifo + " & $examples/" + program + " --data " + fifo), program,
                  "expected a text file, got an empty one");
    if (geteuid() == 0) continue;  // root may read everything
    const std::string secret = folder.write("secret", "x");
    std::filesystem::permissions(secret, std::filesystem::perms::none);
    check_message(run_example(program + " --data " + secret), program, "cannot be opened: Permission denied");
  }
}

// ---- files to write -----------------------------------------------------------------------------------------------

TEST_CASE("Outputs that are unwritable or also inputs are refused before the work") {
  const TemporaryFolder folder;
  const std::string words = labelled(40, "label", 2), data = folder.write("data.csv", words),
                    text = folder.write("text", letters(1000));
  std::filesystem::create_symlink("data.csv", folder.path("symlink"));
  std::filesystem::create_hard_link(data, folder.path("hardlink"));
  std::filesystem::create_symlink("none/model", folder.path("dangling"));
  const auto refuses = [](const std::string& command, const std::string& words) {
    CAPTURE(command);
    check_message(run_shell("timeout -s KILL 10 $examples/" + command + endless), command.substr(0, command.find(' ')),
                  words);
  };
  const std::string classifier = "text_classifier --data " + data, model = "language_model --data " + text,
                    a_file = "expected an output file, got ";
  for (const std::string& learner : {classifier, model, "pronounce --data " + folder.write("pairs", letter_pairs())}) {
    refuses(learner + " --save /dev/full", "/dev/full: " + a_file + "a device");
    refuses(learner + " --save " + folder.path(""), a_file + "a folder");
    refuses(learner + " --save " + folder.path("dangling"), "expected a path in a writable folder");
    refuses(learner + " --save " + folder.path("none/model"), "expected a path in a writable folder");
    refuses(learner + " --save " + folder.path("x.npy") + " --explain a --explain-to " + folder.path("x"),
            "x.npy: expected distinct output files, got this one twice");
  }
  const std::string read = "input file";
  for (const std::string name : {"data.csv", "symlink", "hardlink", "./data.csv"})
    refuses(classifier + " --save " + folder.path(name), read);
  refuses(classifier + " --explain a --explain-to " + folder.path("data"), read);
  refuses("text_classifier --train " + data + " --test " + text + " --save " + text, read);
  refuses("text_classifier --languages " + data + ' ' + text + " --save " + text, read);
  refuses("text_classifier --data /dev/stdin --save " + text + " <" + text, read);
  refuses(model + " --save " + text, read);
  refuses("language_model --language " + text + " --save " + text, read);
  CHECK(folder.read("data.csv") == words);
  CHECK(folder.read("text") == letters(1000));
  refuses("language_model --save x --data " + folder.path("none"), "none: cannot be opened");
  CHECK(!std::filesystem::exists("x"));

  const std::string saved = folder.path("saved.csv");
  run_well(classifier + smallest + "--save " + saved);
  const Run over = run_example("text_classifier --load " + saved + " --explain a --explain-to " + folder.path("saved"));
  check_message(over, "text_classifier", read);
}

TEST_CASE("An empty path, such as an unset variable, is refused") {
  const TemporaryFolder folder;
  const std::string data = " --data " + folder.write("data", labelled(40, "label", 2)) + endless,
                    text = " --data " + folder.write("text", letters(1000)) + endless,
                    message = ": expected a file path, got an empty one";
  const auto refuses = [&](const std::string& command, const std::string& words) {
    CAPTURE(command);
    check_message(run_shell("timeout -s KILL 10 $examples/" + command), command.substr(0, command.find(' ')), words);
  };
  for (const std::string option : {"--data", "--train", "--test", "--load"})
    refuses("text_classifier " + option + " ''" + endless, option + message);
  for (const std::string program : {"language_model ", "pronounce "})
    for (const std::string option : {"--data", "--load", "--resume"})
      refuses(program + option + " ''" + endless, option + message);
  refuses("text_classifier --save ''" + data, "--save" + message);
  for (const std::string option : {"--save", "--best", "--checkpoint", "--log", "--plot", "--page"})
    refuses("language_model " + option + " ''" + text, option + message);
  refuses("masking --page ''", "--page" + message);
  for (const std::string name : {"''", "/", "none/"})
    refuses("text_classifier --explain a --explain-to " + name + data, "--explain-to: expected a file name, got ");
}

// ---- signals ------------------------------------------------------------------------------------------------------

namespace {

/// Sends `signals` to a training run, in quick succession, this many seconds after it begins. Returns the program's
/// status.
Run interrupted(const std::string& command, const std::string& signals, double seconds = 1) {
  const TemporaryFolder folder;
  return run_shell("$examples/" + command + " >" + folder.path("out") + " & program=$!\n" + "until grep -qs " +
                   "'total' " + folder.path("out") + "; do sleep 0.05; done; sleep " + std::to_string(seconds) + "\n" +
                   "for signal in " + signals + "; do kill -$signal $program; sleep 0.05; done\n" +
                   "wait $program; status=$?; cat " + folder.path("out") + "; exit $status");
}

const std::string large_steps =  // each takes seconds
    "language_model --data random --width 2048 --context 300 --batch-size 24 --steps 1000";

}  // namespace

TEST_CASE("A second signal of any kind ends a program in the middle of a step") {
  // The first signal may be handled before the second arrives. Then another delay is tried, because each try reaches
  // the same part of its step after the same time.
  const auto ends_by_second = [](const std::string& signals, int first, int second) {
    for (int tries = 0; tries < 10; ++tries) {
      const int status = interrupted(large_steps, signals, 0.5 + 0.17 * tries).status;
      if (status == 128 + second) return true;
      CHECK(status == 128 + first);
    }
    return false;
  };
  CHECK(ends_by_second("TERM INT", 15, 2));
  CHECK(ends_by_second("INT TERM", 2, 15));
}
