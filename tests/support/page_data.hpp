/// The data of a page, read back from its file.
#pragma once

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>

inline nlohmann::json page_data(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

namespace page {

/// The node of a step with this name.
inline const nlohmann::json& named(const nlohmann::json& step, const std::string& name) {
  for (const nlohmann::json& node : step["nodes"])
    if (node["name"] == name) return node;
  FAIL("no node of " << step["label"] << " is called " << name);
  return step;
}

}  // namespace page
