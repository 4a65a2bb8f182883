#include "internal/layer_paths.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace tapegrad::detail {
namespace {

using Path = std::vector<std::string>;

Path parts_of(const std::string& text) {
  Path parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('.', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string joined(const Path& parts, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ".") + parts[i];
  return text;
}

bool is_number(const std::string& part) {
  return !part.empty() && std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::size_t common_parts(const Path& a, const Path& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::string between(const std::string& before, const std::string& after) {
  const Path from = parts_of(before);
  const std::size_t common = common_parts(from, parts_of(after));
  // Inside a layer, not between two layers of a list.
  if (common > 0 && !(common < from.size() && is_number(from[common]))) return joined(from, common);
  const auto number = std::find_if(from.begin() + static_cast<std::ptrdiff_t>(common), from.end(), is_number);
  return joined(from, number == from.end() ? common : static_cast<std::size_t>(number - from.begin()) + 1);
}

}  // namespace

std::string layer_of(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string common_layer(const std::string& a, const std::string& b) {
  const Path parts = parts_of(a);
  return joined(parts, common_parts(parts, parts_of(b)));
}

std::vector<std::string> layers_of(const std::vector<std::optional<std::string>>& of_parameters) {
  std::vector<std::string> after(of_parameters.size()), layers(of_parameters.size());
  std::string last;
  for (std::size_t i = of_parameters.size(); i-- > 0;) {
    after[i] = last;
    if (of_parameters[i]) last = *of_parameters[i];
  }
  last.clear();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i] = of_parameters[i] ? *of_parameters[i] : between(last, after[i]);
    if (of_parameters[i]) last = *of_parameters[i];
  }
  return layers;
}

}  // namespace tapegrad::detail
