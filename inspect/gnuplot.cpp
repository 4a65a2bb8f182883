#include "gnuplot.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "../engine/array/internal/error.hpp"
#include "../layers/model/internal/atomic_file.hpp"

namespace tapegrad {
namespace {

// Runs the script and returns gnuplot's output.
std::string run_gnuplot(const char* operation, const std::string& script) {
  // Unnamed files instead of pipes, so neither side waits for the other.
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;
  const auto fail_with = [&](int error, const char* action) {
    detail::fail<std::runtime_error>(operation, "cannot ", action, ": ", std::generic_category().message(error));
  };
  const auto temporary = [&] {
    File file(std::tmpfile());
    if (!file) fail_with(errno, "create a temporary file");
    return file;
  };
  const auto content = [](const File& file) {
    std::string text;
    std::rewind(file.get());
    for (int c; (c = std::fgetc(file.get())) != EOF;) text += static_cast<char>(c);
    return text;
  };
  const File in = temporary(), out = temporary(), errors = temporary();
  if (std::fwrite(script.data(), 1, script.size(), in.get()) != script.size() || std::fflush(in.get()) != 0)
    fail_with(errno, "write a temporary file");
  std::rewind(in.get());

  posix_spawn_file_actions_t streams;
  posix_spawn_file_actions_init(&streams);
  posix_spawn_file_actions_adddup2(&streams, fileno(in.get()), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&streams, fileno(out.get()), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&streams, fileno(errors.get()), STDERR_FILENO);
  char program[] = "gnuplot";
  char defaults[] = "-d";  // ignores ~/.gnuplot
  char* arguments[] = {program, defaults, nullptr};
  pid_t process = 0;
  const int error = ::posix_spawnp(&process, program, &streams, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&streams);
  if (error == ENOENT)
    detail::fail<std::runtime_error>(
        operation, "expected gnuplot in PATH, got none; on Debian and Ubuntu: apt-get install gnuplot-nox");
  if (error != 0) fail_with(error, "run gnuplot");
  int status = 0;
  while (::waitpid(process, &status, 0) < 0)
    if (errno != EINTR) fail_with(errno, "wait for gnuplot");

  std::string picture = content(out);
  if (status != 0 || picture.empty())
    detail::fail<std::runtime_error>(operation, "gnuplot could not draw the picture: ", content(errors));
  return picture;
}

}  // namespace

void save_plot(const std::string& script, const std::filesystem::path& path, const char* operation) {
  detail::replace_file(operation, path, run_gnuplot(operation, script));
}

}  // namespace tapegrad
