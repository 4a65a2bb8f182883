#include "internal/safetensors.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "../../engine/array/internal/error.hpp"

namespace tapegrad::detail {
namespace {

using nlohmann::json;

constexpr const char* kMetadata = "__metadata__";

template <class... Parts> void expect(bool holds, const Parts&... parts) {
  if (holds) return;
  std::ostringstream text;
  text << "expected ";
  (text << ... << parts);
  throw std::runtime_error(text.str());
}

// What the file says, as it may stand in a message. Made only when a message is.
struct Shown {
  const json& value;
  friend std::ostream& operator<<(std::ostream& out, const Shown& shown) {
    const std::string text = shown.value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
    return out << text.substr(0, 100) << (text.size() > 100 ? "..." : "");
  }
};

json parse_json(const std::string& text) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open: a name given twice would hide a tensor
  const auto check = [&](int depth, json::parse_event_t event, const json& parsed) {
    using Event = json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start)
      expect(depth <= 2, "a header of tensors, given JSON that nests deeper");
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key)
      expect(keys.back().insert(parsed.get<std::string>()).second, "each name once, given ", Shown{parsed}, " twice");
    return true;
  };
  try {
    return json::parse(text, check);
  } catch (const json::exception&) {
    expect(false, "a header in JSON, given ", Shown{text});
    throw;
  }
}

bool are_sizes(const json& list) {
  return list.is_array() && std::all_of(list.begin(), list.end(), [](auto& item) { return item.is_number_unsigned(); });
}

Dtype parse_dtype(const Shown& name, const json& dtype) {
  if (dtype == "F32") return Dtype::F32;
  expect(dtype == "F64", name, " of dtype F32 or F64, given ", Shown{dtype});
  return Dtype::F64;
}

StoredTensor parse_tensor(const Shown& name, const json& tensor) {
  expect(tensor.is_object() && tensor.size() == 3 && tensor.contains("dtype") && tensor.contains("shape") &&
             tensor.contains("data_offsets"),
         name, " with dtype, shape and data_offsets, given ", Shown{tensor});
  const json &shape = tensor["shape"], &offsets = tensor["data_offsets"];
  expect(are_sizes(shape), name, " with a shape of whole numbers, given ", Shown{shape});
  expect(are_sizes(offsets) && offsets.size() == 2, name, " with two data_offsets, given ", Shown{offsets});

  StoredTensor stored{parse_dtype(name, tensor["dtype"]), {}, offsets[0], offsets[1]};
  std::uint64_t bytes = stored.dtype == Dtype::F32 ? sizeof(float) : sizeof(double);
  for (const std::uint64_t extent : shape) {
    expect(!__builtin_mul_overflow(bytes, extent, &bytes), name, " of a size that can be, given ", Shown{shape});
    stored.shape.push_back(extent);
  }
  expect(stored.begin <= stored.end && stored.end - stored.begin == bytes, name, " in ", bytes, " bytes for its shape ",
         to_string(stored.shape), ", given data_offsets ", Shown{offsets});
  return stored;
}

void check_layout(const std::map<std::string, StoredTensor>& tensors, std::uint64_t data_size) {
  std::vector<std::pair<StoredTensor, std::string>> in_order;
  in_order.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) in_order.emplace_back(tensor, name);
  std::sort(in_order.begin(), in_order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.begin, a.first.end) < std::pair(b.first.begin, b.first.end);
  });
  std::uint64_t place = 0;
  for (const auto& [tensor, name] : in_order) {
    expect(tensor.begin == place, quoted(name), " to begin at byte ", place, " of the data, given ", tensor.begin);
    place = tensor.end;
  }
  expect(place == data_size, place, " bytes of data for the tensors, given ", data_size);
}

}  // namespace

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << Shown{text};
  return out.str();
}

SafetensorsHeader SafetensorsHeader::parse(const std::string& text, std::uint64_t data_size) {
  const json parsed = parse_json(text);
  expect(parsed.is_object(), "a header that is a JSON object, given ", Shown{parsed});
  SafetensorsHeader header;
  for (const auto& [name, value] : parsed.items()) {
    if (name != kMetadata) {
      header.tensors.emplace(name, parse_tensor(Shown{name}, value));
      continue;
    }
    expect(value.is_object(), kMetadata, " that is a JSON object, given ", Shown{value});
    for (const auto& [key, entry] : value.items()) {
      expect(entry.is_string(), kMetadata, " that is text, given ", Shown{entry}, " for ", Shown{key});
      header.metadata.emplace(key, entry);
    }
  }
  check_layout(header.tensors, data_size);
  return header;
}

std::string SafetensorsHeader::format() const {
  json out = json::object();
  if (!metadata.empty()) out[kMetadata] = metadata;
  for (const auto& [name, tensor] : tensors)
    out[name] = {{"dtype", tensor.dtype == Dtype::F32 ? "F32" : "F64"},
                 {"shape", std::vector<std::size_t>(tensor.shape.begin(), tensor.shape.end())},
                 {"data_offsets", {tensor.begin, tensor.end}}};
  std::string text;
  try {
    text = out.dump();
  } catch (const json::type_error&) {
    fail<std::invalid_argument>("save", "expected metadata that is UTF-8, given other bytes");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace tapegrad::detail
