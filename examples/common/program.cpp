#include "program.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <exception>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "text.hpp"

namespace examples {

int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body) {
  std::string message;
  try {
    app.parse(argc, argv);
    return body();
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return 0;
  } catch (const CLI::ParseError& error) {
    message = std::string(error.what()) + " (--help lists the options)";
  } catch (const std::bad_alloc&) {
    message = "expected enough memory for these sizes, which there is not";
  } catch (const std::exception& error) {
    message = error.what();
  }
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::cerr << app.get_name() << ": " << message << std::endl;
  return 1;
}

namespace {

template <class Number> CLI::Validator within(const char* kind, Number least, Number most) {
  std::ostringstream expected;
  expected << kind;
  if (most == std::numeric_limits<Number>::max())
    expected << " of at least " << least;
  else
    expected << " from " << least << " to " << most;

  const auto check = [=, text = expected.str()](const std::string& given) -> std::string {
    Number value{};
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
    const bool parsed = error == std::errc() && end == given.data() + given.size();
    if (parsed && value >= least && value <= most) return "";  // NaN is neither
    return "expected " + text + ", given '" + given + "'";
  };
  return CLI::Validator(check, "");
}

}  // namespace

CLI::Validator whole_number(std::size_t least, std::size_t most) { return within("a whole number", least, most); }
CLI::Validator number(double least, double most) { return within("a number", least, most); }

CLI::Validator some_text() {
  const auto check = [](const std::string& given) -> std::string {
    try {
      return decode(given).empty() ? "expected a text, given an empty one" : "";
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
  };
  return CLI::Validator(check, "");
}

void refuse_beside(const CLI::App& app, const std::string& option, const std::vector<std::string>& others,
                   const std::string& expected) {
  for (const std::string& other : others)
    if (app.count(option) > 0 && app.count(other) > 0) throw CLI::ValidationError(other, expected);
}

void check_heads(std::size_t heads, std::size_t width) {
  if (width % heads != 0)
    throw CLI::ValidationError("--heads", "expected a number that divides the width " + std::to_string(width) +
                                              ", given " + std::to_string(heads));
}

void require_writable(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path().empty() ? "." : path.parent_path();
  if (std::filesystem::is_directory(path))
    throw std::runtime_error(path.string() + ": expected the path of a file to write, given a folder");
  if (access(parent.c_str(), W_OK | X_OK) != 0)
    throw std::runtime_error(path.string() + ": expected a path in a folder that can be written to");
}

}  // namespace examples
