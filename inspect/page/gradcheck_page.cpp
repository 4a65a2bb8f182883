#include "gradcheck_page.hpp"

#include <atomic>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

#include "../../engine/array/internal/environment.hpp"
#include "page.hpp"

namespace tapegrad::testing {
namespace {

// "step.html", then "step-2.html", since several checks of a program may fail.
std::filesystem::path next_page(const std::filesystem::path& first) {
  static std::atomic<int> pages{0};
  const int number = ++pages;
  if (number == 1) return first;
  return first.parent_path() / (first.stem().string() + '-' + std::to_string(number) + first.extension().string());
}

// Returns a line for the report with the page's location, or the reason for its absence.
std::string page_of_failure(const std::filesystem::path& path, const GradcheckFailure& failure) {
  try {
    Page page({.title = "A gradient check that failed"});
    page.add(failure.tape, {.opened_at = failure.worst, .about = failure.report, .numeric = failure.numeric});
    page.save(path);
    return "page: " + path.string() + '\n';
  } catch (const std::exception& error) {
    return std::string("no page: ") + error.what() + '\n';
  }
}

}  // namespace

GradcheckOptions with_page(GradcheckOptions options) {
  const std::string_view path = detail::environment("TAPEGRAD_PAGE");
  if (path.empty() || options.on_failure) return options;
  options.on_failure = [first = std::filesystem::path(path)](const GradcheckFailure& failure) {
    return page_of_failure(next_page(first), failure);
  };
  return options;
}

}  // namespace tapegrad::testing
