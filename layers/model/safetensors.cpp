#include "internal/safetensors.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../../engine/array/internal/error.hpp"
#include "../../engine/array/internal/layout.hpp"

namespace tapegrad::detail {
namespace {

using nlohmann::json;

constexpr const char* kMetadata = "__metadata__";
constexpr std::size_t kShortestTensor = 50;            // characters, about: "w":{"dtype":"F32","shape":[],...}
constexpr std::size_t kWidestNumber = sizeof(double);  // of what a tensor may be read as

template <class... Parts> void expect(bool holds, const Parts&... parts) {
  if (holds) return;
  std::ostringstream text;
  text << "expected ";
  (text << ... << parts);
  throw std::runtime_error(text.str());
}

constexpr std::size_t kMostShown = 100;  // characters of what the file says in a message

// What the file says, as it may stand in a message. Made only when a message is.
struct Shown {
  const json& value;
  friend std::ostream& operator<<(std::ostream& out, const Shown& shown) {
    const auto* string = shown.value.get_ptr<const std::string*>();
    if (string && string->size() > kMostShown)  // it may be as long as the file; in quotes it is cut once more
      return out << Shown{string->substr(0, kMostShown)};
    const std::string text = shown.value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
    return out << text.substr(0, kMostShown) << (text.size() > kMostShown ? "..." : "");
  }
};

struct Quoted {
  std::string_view text;
  friend std::ostream& operator<<(std::ostream& out, const Quoted& quoted) {
    return out << Shown{quoted.text.substr(0, kMostShown)};
  }
};

bool are_sizes(const json& list) {
  return list.is_array() && std::all_of(list.begin(), list.end(), [](auto& item) { return item.is_number_unsigned(); });
}

// "BOOL, U8, I8 ... or F64"
std::string list_dtypes() {
  std::string list;
  for (const DtypeInfo& info : kDtypes)
    list += (&info == std::begin(kDtypes)     ? ""
             : &info == std::end(kDtypes) - 1 ? " or "
                                              : ", ") +
            std::string(info.name);
  return list;
}

Dtype parse_dtype(const Quoted& name, const json& dtype) {
  const auto* given = dtype.get_ptr<const std::string*>();
  const auto* found = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                                   [&](const DtypeInfo& info) { return given && *given == info.name; });
  if (found == std::end(kDtypes)) expect(false, name, " of dtype ", list_dtypes(), ", given ", Shown{dtype});
  return static_cast<Dtype>(found - std::begin(kDtypes));
}

StoredTensor parse_tensor(const Quoted& name, const json& tensor) {
  const auto member = [&](const char* key) {
    const auto found = tensor.find(key);
    expect(tensor.size() == 3 && found != tensor.end(), name, " with dtype, shape and data_offsets, given ",
           Shown{tensor});
    return found;
  };
  const json &dtype = *member("dtype"), &shape = *member("shape"), &offsets = *member("data_offsets");
  expect(are_sizes(shape), name, " with a shape of whole numbers, given ", Shown{shape});
  expect(are_sizes(offsets) && offsets.size() == 2, name, " with two data_offsets, given ", Shown{offsets});

  StoredTensor stored{parse_dtype(name, dtype), {}, offsets[0], offsets[1]};
  for (const std::uint64_t extent : shape) stored.shape.push_back(extent);
  expect(addressable(stored.shape, kWidestNumber), name, " of a size that can be, given ", Shown{shape});
  const std::uint64_t bytes = element_count(stored.shape) * info_of(stored.dtype).size;
  expect(stored.begin <= stored.end && stored.end - stored.begin == bytes, name, " in ", bytes, " bytes for its shape ",
         to_string(stored.shape), ", given data_offsets ", Shown{offsets});
  return stored;
}

// Takes the parser's events, and holds the JSON of one tensor, or of one entry of the metadata, at a time: a header of
// any kind takes time and memory in proportion to its length.
class HeaderReader {
 public:
  explicit HeaderReader(SafetensorsHeader& header) : header_(header) {}

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(json::number_integer_t value) { return add(value); }
  bool number_unsigned(json::number_unsigned_t value) { return add(value); }
  bool number_float(json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(json::object()); }
  bool start_array(std::size_t) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t, const std::string&, const json::exception&) { return false; }

  bool key(std::string& name) {
    open_.back().key = std::move(name);
    return true;
  }

 private:
  struct Open {
    json value;       // an object or a list, without what has been put into the header
    std::string key;  // of the object's next value
  };

  static constexpr std::size_t kMostHeld = 1000;        // values and characters, where a tensor takes fifty
  static constexpr std::size_t kMostNames = 2'000'000;  // shorter ones take ten times their place in the file

  bool open(json empty) {
    expect(open_.size() < 3, "a header of tensors, given JSON that nests deeper");
    open_.push_back({std::move(empty), {}});
    return true;
  }

  bool close() {
    json value = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(value));
  }

  // Puts a value that is complete where it belongs.
  bool add(json value) {
    if (open_.empty()) {
      expect(value.is_object(), "a header that is a JSON object, given ", Shown{value});
    } else if (open_.size() == 1 && open_[0].value.is_object()) {
      add_member(std::move(open_[0].key), value);
    } else if (open_.size() == 2 && open_[0].key == kMetadata && open_[1].value.is_object()) {
      add_metadata(std::move(open_[1].key), value);
    } else {
      hold(std::move(value));
    }
    return true;
  }

  void add_member(std::string name, json& value) {
    held_ = 0;
    if (name == kMetadata) {
      expect(value.is_object(), kMetadata, " that is a JSON object, given ", Shown{value});
      expect(!std::exchange(has_metadata_, true), "each name once, given ", Quoted{name}, " twice");
      return;
    }
    StoredTensor tensor = parse_tensor(Quoted{name}, value);
    insert(header_.tensors, std::move(name), std::move(tensor));
  }

  void add_metadata(std::string name, json& value) {
    held_ = 0;
    expect(value.is_string(), kMetadata, " that is text, given ", Shown{value}, " for ", Quoted{name});
    insert(header_.metadata, std::move(name), std::move(value.get_ref<std::string&>()));
  }

  template <class Map> void insert(Map& map, std::string name, typename Map::mapped_type value) {
    expect(++names_ <= kMostNames, "at most ", kMostNames, " names, given more");
    const auto [place, is_new] = map.try_emplace(std::move(name), std::move(value));
    expect(is_new, "each name once, given ", Quoted{place->first}, " twice");  // it would hide the first
  }

  void hold(json value) {
    auto& [outer, key] = open_.back();
    held_ += 1 + key.size() + (value.is_string() ? value.get_ref<const std::string&>().size() : 0);
    expect(held_ <= kMostHeld, "a header of tensors, given one described in more than ", kMostHeld, " characters");
    if (outer.is_array()) {
      outer.push_back(std::move(value));
    } else {
      const bool is_new = outer.emplace(key, std::move(value)).second;
      expect(is_new, "each name once, given ", Quoted{key}, " twice");
    }
  }

  SafetensorsHeader& header_;
  std::vector<Open> open_;
  std::size_t held_ = 0, names_ = 0;
  bool has_metadata_ = false;
};

void check_layout(const StoredTensors& tensors, std::uint64_t data_size) {
  struct Extent {
    std::uint64_t begin, end;
    const std::string* name;
  };
  std::vector<Extent> in_order;  // sorted without a look at the tensors, which lie scattered
  in_order.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) in_order.push_back({tensor.begin, tensor.end, &name});
  std::sort(in_order.begin(), in_order.end(),
            [](const Extent& a, const Extent& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::uint64_t place = 0;
  for (const auto& [begin, end, name] : in_order) {
    expect(begin == place, Quoted{*name}, " to begin at byte ", place, " of the data, given ", begin);
    place = end;
  }
  expect(place == data_size, place, " bytes of data for the tensors, given ", data_size);
}

}  // namespace

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << Quoted{text};
  return out.str();
}

SafetensorsHeader SafetensorsHeader::parse(std::string_view text, std::uint64_t data_size) {
  SafetensorsHeader header;
  header.tensors.reserve(text.size() / kShortestTensor);  // growing would go through all of them again and again
  HeaderReader reader(header);
  expect(json::sax_parse(text, &reader), "a header in JSON, given ", Quoted{text});
  check_layout(header.tensors, data_size);
  return header;
}

std::string SafetensorsHeader::format() const {
  json out = json::object();
  if (!metadata.empty()) out[kMetadata] = metadata;
  for (const auto& [name, tensor] : tensors)
    out[name] = {{"dtype", info_of(tensor.dtype).name},
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
