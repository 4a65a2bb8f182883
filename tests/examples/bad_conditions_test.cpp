// Full disks, read-only files and folders, readers that exit, and signals: existing files survive, written files are
// complete, no temporary file remains, and the program reports the cause in one line.

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "run_example.hpp"

namespace fs = std::filesystem;

namespace {

// Programs that write files, as shell commands. $data holds labeled lines, $text a text, $pairs words and targets.
const std::string sizes = " --width 8 --heads 1 --batch-size 8 ",
                  classifier = "$examples/text_classifier --data $data" + sizes,
                  writer = "$examples/language_model --data $text --layers 1 --context 16" + sizes,
                  speaker = "$examples/pronounce --data $pairs --layers 1" + sizes, few = "--steps 50 ",
                  forever = "--steps 100000000 ";

/// A folder with training data in which commands run.
class Workplace : public TemporaryFolder {
 public:
  Workplace() {
    std::string data, text, pairs;
    for (int i = 0; i < 40; ++i) data += "label" + std::to_string(i % 2) + " a text of words\n";
    for (int i = 0; i < 60; ++i) text += "over all the hills\nis rest.\n";
    for (char c = 'a'; c <= 'z'; ++c) pairs += std::string(2, c) + "\t" + c + '\n';
    write("data", data);
    write("text", text);
    write("pairs", pairs);
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
    CAPTURE(command);
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
  check_message(place.run("cd $here; " + classifier + "--steps 1000 --save model --lr 1000000"), "text_classifier",
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

  for (const std::string& command : {classifier + forever + "--save ", writer + forever + "--checkpoint ",
                                     speaker + forever + "--save ", std::string("$examples/masking --page ")}) {
    CAPTURE(command);
    const std::string program = program_of(command);
    check_message(place.run(command + "${here}closed/model", other), program, "expected a path in a writable folder");
    check_message(place.run(command + "${here}open/model", other), program, "expected a writable file");
  }
  // Loses write permission during a run: the folder, or the file alone.
  for (const std::string closing : {"chmod 555 open", "chmod 444 open/model"}) {
    CAPTURE(closing);
    const Run run =
        place.run("cd $here; chmod 755 open; chmod 644 open/model; rm -f open/out\n" + classifier + forever +
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

// ---- signals ------------------------------------------------------------------------------------------------------

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
    for (const std::string& command : {classifier + forever + "--save model", writer + forever + "--save model",
                                       writer + forever + "--checkpoint model --log log",
                                       speaker + forever + "--save model", speaker + forever + "--checkpoint model"}) {
      CAPTURE(signal.name);
      CAPTURE(command);
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
    CAPTURE(signal.name);
    const Run run = place.run(
        signalled("$examples/language_model --load model --length 1000000000", "generated text", signal.name));
    CHECK(run.status == signal.status);
    CHECK(run.err.find('\n') >= run.err.size() - 1);  // the shell may print how it ended
  }
}
