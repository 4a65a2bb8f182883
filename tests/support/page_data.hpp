/// The data of a page, read back from its file.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>

inline nlohmann::json page_data(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}
