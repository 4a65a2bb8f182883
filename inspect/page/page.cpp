#include "page.hpp"

#include <embedded/page_template.hpp>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "../../engine/array/internal/error.hpp"
#include "../../engine/tape/internal/recording.hpp"
#include "../../layers/model/internal/atomic_file.hpp"
#include "internal/step.hpp"

namespace tapegrad {
namespace {

std::string title_text(const std::string& title) {
  using detail::replaced;
  return replaced(title, {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}, {'\'', "&#39;"}});
}

// Fills the template's {{names}} in one pass, without rescanning inserted text.
std::string filled(std::string_view page, std::initializer_list<std::pair<std::string_view, std::string_view>> texts) {
  std::string out;
  while (!page.empty()) {
    const std::size_t place = page.find("{{");
    out += page.substr(0, place);
    if (place == page.npos) break;
    page.remove_prefix(place);
    const auto named = std::ranges::find_if(texts, [&](const auto& text) { return page.starts_with(text.first); });
    const std::string_view name = named == texts.end() ? page.substr(0, 2) : named->first;
    out += named == texts.end() ? name : named->second;
    page.remove_prefix(name.size());
  }
  return out;
}

}  // namespace

void save_page(const Tape& tape, const std::filesystem::path& path, const PageOptions& options) {
  Page page(options);
  page.add(tape);
  page.save(path);
}

void Page::add(const Tape& tape, PageStep step) {
  const detail::Recording& recording = *tape.recording();
  detail::require_usage(recording.options().keep_values, "save_page",
                        "expected a Tape({.keep_values = true}), got one that keeps no values");
  steps_.push_back({tape.recording(), std::move(step)});
}

void Page::save(const std::filesystem::path& path) const {
  detail::require_usage(!steps_.empty(), "save_page",
                        "expected a page with at least one step, got none; call add() first");
  const detail::Json data = detail::page_json(steps_, options_);
  const std::string title = title_text(options_.title);
  const auto bytes = embedded::page_template();
  const std::string_view page(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  detail::replace_file("save_page", path, filled(page, {{"{{title}}", title}, {"{{data}}", data.text()}}));
}

}  // namespace tapegrad
