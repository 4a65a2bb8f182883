#include "internal/copies.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <ostream>

namespace tapegrad::detail {
namespace {

using Paths = std::pair<std::string, std::string>;  // original and copy

// "blocks.0" and "blocks.1" for "blocks.0.norm.weight" and "blocks.1.norm.weight".
Paths without_common_end(Paths paths) {
  auto& [a, b] = paths;
  for (;;) {
    const std::size_t in_a = a.rfind('.'), in_b = b.rfind('.');
    if (in_a == a.npos || in_b == b.npos || a.substr(in_a) != b.substr(in_b)) return paths;
    a.resize(in_a);
    b.resize(in_b);
  }
}

bool is_whole(const std::string& part, std::size_t count, const HeldArrays& parameters) {
  const auto inside = [&](const auto& parameter) { return parameter.first.starts_with(part + '.'); };
  return count == static_cast<std::size_t>(std::count_if(parameters.begin(), parameters.end(), inside));
}

}  // namespace

void print_copies(std::ostream& out, const HeldArrays& parameters) {
  std::map<const void*, std::string> originals;
  std::map<Paths, std::vector<Paths>> parts;  // parameters by their possibly copied structs
  for (const auto& [path, array] : parameters) {
    const auto [original, is_new] = originals.try_emplace(array, path);
    if (is_new) continue;
    const Paths paths{original->second, path};
    parts[without_common_end(paths)].push_back(paths);
  }
  std::map<std::string, std::vector<std::string>> copies;
  for (const auto& [part, inside] : parts)
    for (const auto& [original, copy] : is_whole(part.second, inside.size(), parameters) ? std::vector{part} : inside)
      copies[original].push_back(copy);
  for (const auto& [original, its_copies] : copies) {
    out << "note: " << its_copies.front();
    if (its_copies.size() > 1) out << " and " << its_copies.size() - 1 << " more";
    out << (its_copies.size() > 1 ? " start" : " starts") << " with the same numbers as " << original;
    if (std::ranges::count(parameters, original, &HeldArrays::value_type::first) > 0)
      out << ", and does not stay tied to it: an assignment copies; tg::linear(x, " << original
          << ") uses one for both\n";
    else
      out << ", as a copy does: std::vector<Block>(n, Block(d)) copies one, emplace_back(d) makes each anew\n";
  }
}

}  // namespace tapegrad::detail
