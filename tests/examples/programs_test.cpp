// The examples' common behavior with the terminal, signals and user files.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "run_example.hpp"

namespace fs = std::filesystem;

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

TEST_CASE("Exhausted memory ends a program with one line, after writing the files of --save if it made a step") {
  const TemporaryFolder folder;
  std::string lines;  // every tenth is held out
  for (int i = 0; i < 100; ++i) lines += std::string(i % 10 == 9 ? 4000 : 5, static_cast<char>('a' + i % 26)) + '\n';
  const std::string limit = "export OPENBLAS_NUM_THREADS=1 TAPEGRAD_NUM_THREADS=2; ulimit -v ";
  const std::string training =
      "; $examples/language_model --lines --layers 1 --width 256 --heads 1 --context 4000 "
      "--batch-size 8 --steps 4 --eval-every 2 --data " +
      folder.write("lines", lines) + " --save " + folder.path("model");
  for (const std::string kilobytes : {"150000", "200000", "500000"}) {
    check_message(run_shell(limit + kilobytes + training), "language_model", "not enough memory for these sizes");
    CHECK(fs::exists(folder / "model") == (kilobytes == "500000"));
  }
}

// ---- contents of files --------------------------------------------------------------------------------------------

TEST_CASE("A message quotes only a short part of a file") {
  const TemporaryFolder folder;
  const std::string long_line(1'000'000, 'x');
  check_message(run_example("text_classifier --data " + folder.write("line", "a b\n " + long_line + '\n')),
                "text_classifier", "line:2: expected a label, a space and a text, got ' xxx");

  const std::string data = folder.write("data", labelled(12'020, "label", 1'202)), model = folder.path("model");
  run_well("text_classifier --data " + data + " --width 8 --heads 1 --steps 1 --save " + model);
  const std::string loaded = "text_classifier --load " + model + " --test ";
  check_message(run_example(loaded + folder.write("other", "strange words\n")), "text_classifier",
                " and 1,192 more), got 'strange'");
  check_message(run_example(loaded + folder.write("long", long_line + " words\n")), "text_classifier",
                " and 1,192 more), got 'xxx");
  check_message(run_example("masking --seed " + std::string(100'000, '9')), "masking", "--seed: expected");
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
    check_message(run_example(program + " --data " + folder.path("")), program, "got a folder");
    check_message(run_example(program + " --data " + folder.write("file", "x") + "/below"), program, "Not a directory");
    check_message(run_example(program + " --data /proc/self/mem"), program, "mem: cannot be read: ");
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

TEST_CASE("A signal before the end of the first step leaves a saved model unchanged") {
  const TemporaryFolder folder;
  const std::string text = folder.write("text", repeated("A text.\n", 6000)), model = folder.write("model", "old");
  const Run run =
      interrupted("language_model --data " + text + " --depth 12 --batch-size 100 --save " + model, "INT", 0);
  CHECK(contains(run.out, "interrupted before the end of the first step"));
  CHECK((run.status == 130 && folder.read("model") == "old"));
}

// ---- full disks, read-only files and folders, readers that exit, and signals ----------------------------------------

namespace {

// Programs that write files, as shell commands. $data holds labeled lines, $text a text, $pairs words and targets.
const std::string sizes = " --width 8 --heads 1 --batch-size 8 ",
                  classifier = "$examples/text_classifier --data $data" + sizes,
                  writer = "$examples/language_model --data $text --layers 1 --context 16" + sizes,
                  speaker = "$examples/pronounce --data $pairs --layers 1" + sizes, few = "--steps 50 ";

/// A folder with training data in which commands run.
class Workplace : public TemporaryFolder {
 public:
  Workplace() {
    write("data", labelled(40, "label", 2));
    write("text", letters(1620));
    write("pairs", letter_pairs());
  }

  /// Runs a script; `as` is a command prefix for the shell.
  Run run(const std::string& script, const std::string& as = "") const {
    write("script", "examples='" TAPEGRAD_EXAMPLES "'; data=" + path("data") + "; text=" + path("text") +
                        "; pairs=" + path("pairs") + "; here=" + path("") + "\n" + script + '\n');
    return run_shell(as + " timeout -s KILL 60 sh " + path("script"));
  }

  /// The names of a folder's entries.
  std::vector<std::string> names_in(const std::string& folder) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path(folder))) names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }
};

std::string program_of(const std::string& command) {
  const std::size_t begin = command.find('/') + 1;
  return command.substr(begin, command.find(' ', begin) - begin);
}

// The command prefix for a private mount namespace; empty if the system does not permit one.
std::string with_own_mounts(const Workplace& place) {
  for (const std::string own : {"unshare -m", "unshare -rm"})
    if (place.run("mount -t tmpfs -o size=1m none $here", own).status == 0) return own;
  return "";
}

}  // namespace

// ---- disks and folders --------------------------------------------------------------------------------------------

TEST_CASE("On a full disk the programs leave existing files unchanged and name the file they cannot write") {
  const Workplace place;
  const std::string own_mounts = with_own_mounts(place);
  if (own_mounts.empty()) {
    MESSAGE("not tried: nobody may mount a small file system here");
    return;
  }
  fs::create_directory(place / "disk");

  struct Case {
    std::string command, file;  // the file that cannot be written
  };
  std::vector<Case> cases{{classifier + few + "--save disk/out", "disk/out"},
                          {classifier + few + "--page disk/out a", "disk/out"},
                          {classifier + few + "--explain a --explain-to disk/out", "disk/out.csv"},
                          {writer + few + "--save disk/out", "disk/out"},
                          {writer + few + "--checkpoint disk/out", "disk/out"},
                          {writer + few + "--checkpoint disk/out --checkpoint-every 5", "disk/out"},
                          {writer + few + "--eval-every 10 --best disk/out", "disk/out"},
                          {writer + few + "--log disk/log", "disk/log"},
                          {speaker + few + "--save disk/out", "disk/out"},
                          {speaker + few + "--page disk/out a", "disk/out"},
                          {speaker + few + "--explain a --explain-to disk/out", "disk/out.csv"},
                          {speaker + few + "--checkpoint disk/out --checkpoint-every 5", "disk/out"}};
  for (const std::string& tutorial : kTutorials)
    cases.push_back({"$examples/" + tutorial + " --page disk/out", "disk/out"});
  for (const Case& tried : cases) {
    const std::string &command = tried.command, &file = tried.file;
    fs::remove_all(place / "after");
    Run run = place.run(
        "cd $here && mount -t tmpfs -o size=1m none disk || exit 99\n"
        "for name in out out.csv out.npy; do echo old >disk/$name; done\n"
        "cat /dev/zero >disk/zeros 2>/dev/null\n" +
            command + "\nstatus=$?\nrm disk/zeros; cp -a disk after; exit $status",
        own_mounts);
    check_message(run, program_of(command), file + ": ");
    CHECK(contains(run.err, "No space left on device"));
    std::vector<std::string> names = place.names_in("after");
    std::erase(names, "log");  // has as many rows as fit
    CHECK(names == std::vector<std::string>{"out", "out.csv", "out.npy"});
    for (const std::string& name : names) CHECK(place.read("after/" + name) == "old\n");
  }
}

TEST_CASE("If one output of a run cannot be written, the others are") {
  const Workplace place;
  // Limits files to 32 KB; the log exceeds this after some hundred steps.
  const Run run =
      place.run("cd $here; ulimit -f 64; " + writer + "--steps 100000 --log log --save model --checkpoint run");
  check_message(run, "language_model", "log: cannot be written: File too large");
  CHECK(place.run("$examples/language_model --length 1 --load ${here}model").status == 0);
  CHECK(place.run("$examples/language_model --length 1 --load ${here}run").status == 0);
  CHECK(place.names_in("") == std::vector<std::string>{"data", "log", "model", "pairs", "run", "script", "text"});
}

TEST_CASE("A run that cannot start, or diverges, leaves existing models unchanged") {
  const Workplace place;
  place.write("model", "old");
  place.write("log", "no log");
  check_message(place.run("cd $here; " + writer + few + "--log log --save model"), "language_model",
                "log: expected a training log");
  CHECK(place.read("model") == "old");
  for (const std::string steps : {"--steps 2", "--steps 1000"})  // after 2 steps only the weights are not finite
    check_message(place.run("cd $here; " + classifier + steps + " --save model --lr 1000000"), "text_classifier",
                  "; use a lower learning rate");
  CHECK(place.read("model") == "old");
  // Limits files to 4 KB; the step's page is larger.
  check_message(
      place.run("cd $here; ulimit -f 8; " + classifier + "--steps 1000 --save model --lr 1000000 --page page a"),
      "text_classifier", "; use a lower learning rate");
  CHECK(place.read("model") == "old");
  CHECK(place.names_in("") == std::vector<std::string>{"data", "log", "model", "pairs", "script", "text"});
}

TEST_CASE("Unwritable files and folders are refused, before or after the work") {
  const Workplace place;
  // Root may write everywhere, so commands run as another user.
  const std::string other = geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups" : "";
  fs::permissions(place / ".", fs::perms::all);
  for (const std::string folder : {"closed", "open"}) {
    fs::create_directory(place / folder);
    place.write(folder + "/model", "old");
  }
  if (geteuid() == 0) REQUIRE(place.run("cd $here && chown -R 65534:65534 open closed").status == 0);
  if (place
          .run("chmod 755 ${here}open && chmod 555 ${here}closed && chmod 444 ${here}open/model && "
               "$examples/schedules >/dev/null",
               other)
          .status != 0) {
    MESSAGE("not tried: no other user, or none that can run the examples here");
    return;
  }

  for (const std::string& command : {classifier + endless + "--save ", writer + endless + "--checkpoint ",
                                     speaker + endless + "--save ", std::string("$examples/masking --page ")}) {
    const std::string program = program_of(command);
    check_message(place.run(command + "${here}closed/model", other), program, "expected a path in a writable folder");
    check_message(place.run(command + "${here}open/model", other), program, "expected a writable file");
  }
  // Loses write permission during a run: the folder, or the file alone.
  for (const std::string closing : {"chmod 555 open", "chmod 444 open/model"}) {
    const Run run =
        place.run("cd $here; chmod 755 open; chmod 644 open/model; rm -f open/out\n" + classifier + endless +
                      "--save open/model >open/out & program=$!\n"
                      "until grep -qs '^step' open/out; do sleep 0.05; done\n" +
                      closing + "\nkill -TERM $program; wait $program",
                  other);
    check_message(run, "text_classifier", "open/model: Permission denied");
    CHECK(place.read("open/model") == "old");
    CHECK(place.names_in("open") == std::vector<std::string>{"model", "out"});
  }
  CHECK(place.names_in("closed") == std::vector<std::string>{"model"});
  CHECK(place.run("chmod 755 ${here}open ${here}closed", other).status == 0);  // so that it can be removed
}

// ---- readers ------------------------------------------------------------------------------------------------------

TEST_CASE("A program whose reader closes the pipe ends as shells expect, and its files are complete") {
  const Workplace place;
  REQUIRE(place.run(writer + few + "--save ${here}model").status == 0);
  const Run writing = place.run(
      "{ $examples/language_model --load ${here}model --length 1000000000; echo $? >${here}status"
      "; } | head -1");
  CHECK(writing.err == "");
  CHECK(place.read("status") == "141\n");  // 128 + SIGPIPE
  check_message(place.run("$examples/language_model --load ${here}model --length 1000000000 >/dev/full"),
                "language_model", "standard output: cannot be written");

  // A pipe whose reader has ended before the program starts: its output would fit into the pipe.
  const Run tutorial = place.run(
      "mkfifo ${here}pipe; : <${here}pipe & exec 3>${here}pipe; wait $!\n"
      "$examples/masking --page ${here}page >&3; echo $? >${here}status");
  CHECK(tutorial.err.starts_with("masking: standard output: cannot be written"));
  CHECK(place.read("status") == "1\n");
  CHECK(place.read("page").ends_with("</html>\n"));
}

// ---- signals and files ---------------------------------------------------------------------------------------------

namespace {

struct Signal {
  std::string name;
  int status;
};
const Signal signals[] = {{"HUP", 128 + 1}, {"INT", 128 + 2}, {"TERM", 128 + 15}};

// Sends a signal after the program prints a line with this beginning. Shells make background jobs ignore SIGINT; env(1)
// undoes this.
std::string signalled(const std::string& command, const std::string& words, const std::string& signal) {
  return "cd $here; rm -f out\nenv --default-signal=INT,HUP,TERM " + command + " >out & program=$!\n" +
         "until grep -aqs '^" + words + "' out; do sleep 0.02; done\nkill -" + signal + " $program; wait $program";
}

}  // namespace

TEST_CASE("Any termination signal stops training after its step, and requested outputs are saved") {
  const Workplace place;
  const std::map<std::string, std::pair<std::string, std::string>> results{
      // what training prints, and a use
      {"text_classifier", {"test accuracy", "--classify a"}},
      {"language_model", {"test perplexity", "--length 1"}},
      {"pronounce", {"test sources", "--pronounce a"}}};
  for (const Signal& signal : signals)
    for (const std::string& command : {classifier + endless + "--save model", writer + endless + "--save model",
                                       writer + endless + "--checkpoint model --log log",
                                       speaker + endless + "--save model", speaker + endless + "--checkpoint model"}) {
      const Run run = place.run(signalled(command, "step", signal.name));
      CHECK(run.err == "");
      CHECK(run.status == signal.status);
      const std::string program = program_of(command), out = place.read("out");
      CHECK(contains(out, "interrupted"));
      const auto& [result, use] = results.at(program);
      CHECK(contains(out, result));
      CHECK(place.run("$examples/" + program + " --load ${here}model " + use).status == 0);
      const std::vector<std::string> names = place.names_in("");
      CHECK(std::ranges::none_of(names, [](const std::string& name) { return name.starts_with('.'); }));
      fs::remove(place / "model");
      fs::remove(place / "log");
    }
}

TEST_CASE("Any termination signal ends a program at once while it generates a text") {
  const Workplace place;
  REQUIRE(place.run(writer + few + "--save ${here}model").status == 0);
  for (const Signal& signal : signals) {
    const Run run = place.run(
        signalled("$examples/language_model --load model --length 1000000000", "generated text", signal.name));
    CHECK(run.status == signal.status);
    CHECK(run.err.find('\n') >= run.err.size() - 1);  // the shell may print how it ended
  }
}
