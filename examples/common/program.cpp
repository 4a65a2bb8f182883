#include "program.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <set>
#include <sstream>
#include <stdexcept>
#include <streambuf>
#include <system_error>

#include "ranks.hpp"
#include "text.hpp"

namespace fs = std::filesystem;

namespace examples {

namespace {

constexpr const char* no_memory = "not enough memory for these sizes";

/// Opens missing standard streams on /dev/null, where writes fail. Otherwise the next opened file would get their
/// descriptor and receive the printed output.
void hold_standard_streams() {
  int descriptor;
  do descriptor = open("/dev/null", O_RDONLY);
  while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor >= 0) close(descriptor);
}

/// Flushes standard output. Throws std::runtime_error if this or an earlier write failed.
void finish_output() {
  std::cout.flush();
  if (std::cout) return;
  errno = 0;  // the stream does not store the reason; try again to get it
  std::cout.clear();
  std::cout << std::endl;
  throw std::runtime_error("standard output: cannot be written" +
                           (errno == 0 ? std::string() : std::string(": ") + std::strerror(errno)));
}

int run(CLI::App& app, int argc, char** argv, const std::function<int()>& body) {
  try {
    app.parse(argc, argv);
    return body();
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return 0;
  }
}

/// During its lifetime only the first rank prints to standard output.
class FirstRankPrints {
 public:
  FirstRankPrints() {
    if (!is_first_rank()) std::cout.rdbuf(&null_buffer_);
  }
  ~FirstRankPrints() { std::cout.rdbuf(out_); }
  FirstRankPrints(const FirstRankPrints&) = delete;
  FirstRankPrints& operator=(const FirstRankPrints&) = delete;

 private:
  struct NullBuffer : std::streambuf {
    int_type overflow(int_type c) override { return traits_type::not_eof(c); }
    std::streamsize xsputn(const char*, std::streamsize count) override { return count; }
  } null_buffer_;
  std::streambuf* out_ = std::cout.rdbuf();
};

/// The exit status, and the message of an error.
struct Outcome {
  int status = 1;
  std::string message{};
};

Outcome try_to_run(CLI::App& app, int argc, char** argv, const std::function<int()>& body) {
  std::string message;
  try {
    const int status = run(app, argc, argv, body);
    finish_output();
    return {status};
  } catch (const CLI::ParseError& error) {
    message = std::string(error.what()) + " (--help lists the options)";
  } catch (const std::bad_alloc&) {
    message = no_memory;
  } catch (const std::exception& error) {
    message = error.what();
  }
  return {1, one_line(message)};
}

std::string out_of_memory;  // error message, allocated in advance

/// Handles running out of memory where exceptions cannot propagate, e.g. in the destructor of nlohmann::json.
[[noreturn]] void end_without_unwinding() {
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
    if (write(STDERR_FILENO, out_of_memory.data(), out_of_memory.size()) > 0) _exit(1);
  } catch (...) {
  }
  std::abort();
}

}  // namespace

int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body) {
  hold_standard_streams();
  out_of_memory = app.get_name() + ": " + no_memory + '\n';
  std::set_terminate(end_without_unwinding);
  std::signal(SIGXFSZ, SIG_IGN);  // at the file size limit (ulimit -f), writing fails as on a full disk
  try {
    Outcome outcome;
    {
      const tapegrad::mpi::Session session(argc, argv);
      const FirstRankPrints first_rank_prints;
      outcome = try_to_run(app, argc, argv, body);
      if (!outcome.message.empty()) {
        std::cout.flush();
        session.fail(app.get_name(), outcome.message);
      }
    }
    if (outcome.message == no_memory) _exit(outcome.status);  // OpenBLAS's threads may wait for memory forever
    return outcome.status;
  } catch (const std::exception& error) {  // from the MPI session
    std::cerr << app.get_name() << ": " << error.what() << std::endl;
    return 1;
  }
}

namespace {

template <class Number> CLI::Validator within(const char* kind, Number min, Number max) {
  std::ostringstream expected;
  expected << kind;
  if (max == std::numeric_limits<Number>::max())
    expected << " of at least " << min;
  else
    expected << " from " << min << " to " << max;

  const auto check = [=, text = expected.str()](const std::string& given) -> std::string {
    Number value{};
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
    const bool parsed = error == std::errc() && end == given.data() + given.size();
    if (parsed && value >= min && value <= max) return "";  // false for NaN
    return "expected " + text + ", got " + in_quotes(given);
  };
  return CLI::Validator(check, "");
}

}  // namespace

CLI::Validator whole_number(std::size_t min, std::size_t max) { return within("a whole number", min, max); }
CLI::Validator number(double min, double max) { return within("a number", min, max); }

CLI::Validator any_text() {
  const auto check = [](const std::string& given) -> std::string {
    try {
      decode(given);
      return "";
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
  };
  return CLI::Validator(check, "");
}

CLI::Validator some_text() {
  const auto check = [](const std::string& given) {
    return given.empty() ? "expected a nonempty text" : any_text()(given);
  };
  return CLI::Validator(check, "");
}

CLI::Validator some_path() {
  const auto check = [](const std::string& given) {
    return given.empty() ? "expected a file path, got an empty one" : "";
  };
  return CLI::Validator(check, "");
}

CLI::Validator some_name() {
  const auto check = [](const std::string& given) -> std::string {
    return fs::path(given).has_filename() ? "" : "expected a file name, got " + in_quotes(given);
  };
  return CLI::Validator(check, "");
}

void refuse_with(const CLI::App& app, const std::string& option, const std::vector<std::string>& others,
                 const std::string& expected) {
  for (const std::string& other : others)
    if (app.count(option) > 0 && app.count(other) > 0) throw CLI::ValidationError(other, expected);
}

void check_heads(std::size_t heads, std::size_t width) {
  if (width % heads != 0)
    throw CLI::ValidationError(
        "--heads", "expected a divisor of the width " + std::to_string(width) + ", got " + std::to_string(heads));
}

namespace {

/// Resolves symbolic links in a path, including links to files that do not exist yet.
fs::path resolved(fs::path path) {
  std::error_code error;
  if (!path.has_filename()) path = path.parent_path();  // folder/
  for (int links = 0; links < 40 && fs::is_symlink(path, error); ++links)
    path = path.parent_path() / fs::read_symlink(path, error);
  const fs::path from_root = fs::absolute(path, error), real = fs::weakly_canonical(from_root, error);
  return error ? from_root.lexically_normal() : real;  // fallback if a folder of the path is unreadable
}

void require_writable(const std::string& path) {
  const auto refuse = [&](const std::string& expected) { throw std::runtime_error(path + ": expected " + expected); };
  std::error_code none;
  const fs::file_status status = fs::status(path, none);
  if (fs::is_directory(status)) refuse("an output file, got a folder");
  if (fs::exists(status) && !fs::is_regular_file(status)) refuse("an output file, got a device, pipe or socket");
  if (fs::exists(status) && access(path.c_str(), W_OK) != 0) refuse("a writable file");
  if (access(resolved(path).parent_path().c_str(), W_OK | X_OK) != 0) refuse("a path in a writable folder");
}

}  // namespace

void prepare_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& folders) {
  const auto is_given = [](const std::string& file) { return !file.empty(); };
  if (std::ranges::any_of(outputs, is_given) || std::ranges::any_of(folders, is_given)) std::signal(SIGPIPE, SIG_IGN);
  std::set<fs::path> seen, folders_and_parents;  // the folders and their parents
  for (const std::string& folder : folders) {
    if (folder.empty()) continue;
    fs::path path = resolved(folder);
    if (!seen.insert(path).second)
      throw std::runtime_error(folder + ": expected distinct output folders, got this one twice");
    for (; folders_and_parents.insert(path).second; path = path.parent_path()) continue;
  }
  for (const std::string& output : outputs) {
    if (output.empty()) continue;
    require_writable(output);
    const std::string expected = output + ": expected an output file, got ";
    if (folders_and_parents.contains(resolved(output))) throw std::runtime_error(expected + "an output folder");
    if (!seen.insert(resolved(output)).second)
      throw std::runtime_error(output + ": expected distinct output files, got this one twice");
    std::error_code none;
    for (const std::string& input : inputs)
      if (fs::equivalent(output, input, none))
        throw std::runtime_error(expected +
                                 (input == output ? "an input file" : "another name of the input file " + input));
  }
}

}  // namespace examples
