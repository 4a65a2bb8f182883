#include "internal/safetensors.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <locale>
#include <sstream>
#include <utility>
#include <variant>
#include <vector>

#include "../../engine/array/internal/error.hpp"
#include "../../engine/array/internal/layout.hpp"

namespace tapegrad::detail {
namespace {

constexpr std::size_t kWidestNumber = sizeof(double);  // among readable types

template <class... Parts> void expect(bool holds, const Parts&... parts) {
  if (holds) return;
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text << "expected ";
  (text << ... << parts);
  throw HeaderError(text.str());
}

struct JsonValue;
struct JsonMember;
using List = std::vector<JsonValue>;
using Object = std::vector<JsonMember>;

// A parsed value. Destroying nlohmann's own values allocates memory and terminates the program without any.
struct JsonValue {
  struct Other {
    std::string text;  // null, a bool, or a number invalid as a size
  };
  std::variant<Other, std::uint64_t, std::string, List, Object> is;

  template <class Kind> const Kind* get() const { return std::get_if<Kind>(&is); }
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

std::string in_json(const std::string& text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
}

std::string in_json(const JsonValue& value) {
  if (const auto* other = value.get<JsonValue::Other>()) return other->text;
  if (const auto* size = value.get<std::uint64_t>()) return std::to_string(*size);
  if (const auto* string = value.get<std::string>()) return in_json(*string);
  std::string text;
  if (const auto* list = value.get<List>()) {
    for (const JsonValue& item : *list) text += (text.empty() ? "" : ",") + in_json(item);
    return '[' + text + ']';
  }
  for (const auto& [key, member] : *value.get<Object>())
    text += (text.empty() ? "" : ",") + in_json(key) + ':' + in_json(member);
  return '{' + text + '}';
}

constexpr std::size_t kMaxShown = 100;  // characters of the file in a message

// Formats the file's value for a message, only when needed.
struct Shown {
  const JsonValue& value;
  friend std::ostream& operator<<(std::ostream& out, const Shown& shown) {
    const auto* string = shown.value.get<std::string>();  // possibly as long as the file; quoting shortens it again
    const std::string text = string ? in_json(string->substr(0, kMaxShown)) : in_json(shown.value);
    return out << text.substr(0, kMaxShown) << (text.size() > kMaxShown ? "..." : "");
  }
};

struct Quoted {
  std::string_view text;
  friend std::ostream& operator<<(std::ostream& out, const Quoted& quoted) {
    return out << Shown{{std::string(quoted.text.substr(0, kMaxShown))}};
  }
};

bool are_sizes(const JsonValue& value) {
  const auto* list = value.get<List>();
  return list && std::ranges::all_of(*list, [](const JsonValue& item) { return item.get<std::uint64_t>() != nullptr; });
}

// "BOOL, U8, I8 ... or F64"
std::string list_dtypes() {
  std::string list;
  for (const DtypeInfo& info : kDtypes)
    list += (list.empty() ? "" : &info == std::end(kDtypes) - 1 ? " or " : ", ") + std::string(info.name);
  return list;
}

Dtype parse_dtype(const Quoted& name, const JsonValue& dtype) {
  const auto* given = dtype.get<std::string>();
  const auto* found = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                                   [&](const DtypeInfo& info) { return given && *given == info.name; });
  if (found == std::end(kDtypes)) expect(false, name, " of dtype ", list_dtypes(), ", got ", Shown{dtype});
  return static_cast<Dtype>(found - std::begin(kDtypes));
}

StoredTensor parse_tensor(const Quoted& name, const JsonValue& tensor) {
  const auto member = [&](const char* key) -> const JsonValue& {
    const auto* members = tensor.get<Object>();
    const JsonValue* found = nullptr;
    if (members && members->size() == 3)
      for (const auto& [member_name, value] : *members)
        if (member_name == key) found = &value;
    expect(found != nullptr, name, " with dtype, shape and data_offsets, got ", Shown{tensor});
    return *found;
  };
  const JsonValue &dtype = member("dtype"), &shape = member("shape"), &offsets = member("data_offsets");
  expect(are_sizes(shape), name, " with a shape of whole numbers, got ", Shown{shape});
  expect(are_sizes(offsets) && offsets.get<List>()->size() == 2, name, " with two data_offsets, got ", Shown{offsets});

  const auto size = [](const JsonValue& number) { return *number.get<std::uint64_t>(); };
  StoredTensor stored{
      parse_dtype(name, dtype), {}, size(offsets.get<List>()->front()), size(offsets.get<List>()->back())};
  for (const JsonValue& extent : *shape.get<List>()) stored.shape.push_back(size(extent));
  expect(addressable(stored.shape, kWidestNumber), name, " of an addressable size, got ", Shown{shape});
  const std::uint64_t bytes = element_count(stored.shape) * info_of(stored.dtype).size;
  expect(stored.begin <= stored.end && stored.end - stored.begin == bytes, name, " in ", bytes, " bytes for its shape ",
         to_string(stored.shape), ", got data_offsets ", Shown{offsets});
  return stored;
}

// Handles the parser's events. Holds the JSON of one tensor or metadata entry at a time, so time and memory are
// proportional to the header's length.
class HeaderReader {
 public:
  explicit HeaderReader(SafetensorsHeader& header) : header_(header) {}

  bool null() { return add_other(nullptr); }
  bool boolean(bool value) { return add_other(value); }
  bool number_integer(std::int64_t value) { return add_other(value); }
  bool number_unsigned(std::uint64_t value) { return add({value}); }
  bool number_float(double value, const std::string&) { return add_other(value); }
  bool string(std::string& value) { return add({std::move(value)}); }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open({Object()}); }
  bool start_array(std::size_t) { return open({List()}); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) { return false; }

  bool key(std::string& name) {
    open_.back().key = std::move(name);
    return true;
  }

 private:
  struct Open {
    JsonValue value;  // an object or list, without parts already moved to the header
    std::string key;  // the key of the object's next value

    bool is_object() const { return value.get<Object>() != nullptr; }
  };

  static constexpr std::size_t kMaxHeld = 1000;        // values and characters; a tensor has about fifty
  static constexpr std::size_t kMaxNames = 2'000'000;  // short names take ten times their size in the file

  bool open(JsonValue empty) {
    expect(open_.size() < 3, "a header of tensors, got JSON that nests deeper");
    open_.push_back({std::move(empty), {}});
    return true;
  }

  bool close() {
    JsonValue value = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(value));
  }

  bool add_other(const nlohmann::json& value) { return add({JsonValue::Other{value.dump()}}); }

  // Stores a complete value.
  bool add(JsonValue value) {
    if (open_.empty()) {
      expect(value.get<Object>() != nullptr, "a header that is a JSON object, got ", Shown{value});
    } else if (open_.size() == 1 && open_[0].is_object()) {
      add_member(std::move(open_[0].key), value);
    } else if (open_.size() == 2 && open_[0].key == kMetadata && open_[1].is_object()) {
      add_metadata(std::move(open_[1].key), value);
    } else {
      hold(std::move(value));
    }
    return true;
  }

  void add_member(std::string name, const JsonValue& value) {
    held_ = 0;
    if (name == kMetadata) {
      expect(value.get<Object>() != nullptr, kMetadata, " that is a JSON object, got ", Shown{value});
      expect(!std::exchange(has_metadata_, true), "each name once, got ", Quoted{name}, " twice");
      return;
    }
    StoredTensor tensor = parse_tensor(Quoted{name}, value);
    insert(header_.tensors, std::move(name), std::move(tensor));
  }

  void add_metadata(std::string name, JsonValue& value) {
    held_ = 0;
    auto* text = std::get_if<std::string>(&value.is);
    expect(text != nullptr, kMetadata, " that is text, got ", Shown{value}, " for ", Quoted{name});
    insert(header_.metadata, std::move(name), std::move(*text));
  }

  template <class Map> void insert(Map& map, std::string name, typename Map::mapped_type value) {
    expect(++names_ <= kMaxNames, "at most ", kMaxNames, " names, got more");
    const auto [place, is_new] = map.try_emplace(std::move(name), std::move(value));
    expect(is_new, "each name once, got ", Quoted{place->first}, " twice");  // the second would hide the first
  }

  void hold(JsonValue value) {
    auto& [outer, key] = open_.back();
    const auto* text = value.get<std::string>();
    held_ += 1 + key.size() + (text ? text->size() : 0);
    expect(held_ <= kMaxHeld, "a header entry of at most ", kMaxHeld, " characters, got a longer one");
    if (auto* list = std::get_if<List>(&outer.is)) return list->push_back(std::move(value));
    auto& members = std::get<Object>(outer.is);
    const auto place = std::ranges::lower_bound(members, key, {}, &JsonMember::key);
    expect(place == members.end() || place->key != key, "each name once, got ", Quoted{key}, " twice");
    members.insert(place, {key, std::move(value)});
  }

  SafetensorsHeader& header_;
  std::vector<Open> open_;
  std::size_t held_ = 0, names_ = 0;
  bool has_metadata_ = false;
};

void check_layout(const StoredTensors& tensors, std::uint64_t data_size) {
  using Range = std::pair<std::uint64_t, std::uint64_t>;
  std::vector<std::pair<Range, const std::string*>> in_order;  // its sort does not access the tensors again
  in_order.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) in_order.push_back({{tensor.begin, tensor.end}, &name});
  std::ranges::sort(in_order, {}, [](const auto& range_and_name) { return range_and_name.first; });
  std::uint64_t place = 0;
  for (const auto& [range, name] : in_order) {
    expect(range.first == place, Quoted{*name}, " to begin at byte ", place, " of the data, got ", range.first);
    place = range.second;
  }
  expect(place == data_size, place, " bytes of data for the tensors, got ", data_size);
}

}  // namespace

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << Quoted{text};
  return out.str();
}

SafetensorsHeader SafetensorsHeader::parse(std::string_view json, std::uint64_t data_size) {
  SafetensorsHeader header;
  HeaderReader reader(header);
  const bool is_json = nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  if (!is_json) expect(false, "a header in JSON, got ", Quoted{json});
  check_layout(header.tensors, data_size);
  return header;
}

std::string SafetensorsHeader::format() const {
  const auto in_utf8 = [](const std::string& text) {
    try {
      return nlohmann::json(text).dump();
    } catch (const nlohmann::json::type_error&) {
      fail<std::invalid_argument>("save", "expected names and texts in UTF-8, got ", Quoted{text});
    }
  };
  std::map<std::string, std::string> members;  // sorted by name
  if (!metadata.empty()) {
    std::string& texts = members[kMetadata];
    for (const auto& [name, text] : metadata)
      texts += (texts.empty() ? '{' : ',') + in_utf8(name) + ':' + in_utf8(text);
    texts += '}';
  }
  for (const auto& [name, tensor] : tensors) {
    std::string shape;
    for (const std::size_t extent : tensor.shape) shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    members[name] = R"({"data_offsets":[)" + std::to_string(tensor.begin) + ',' + std::to_string(tensor.end) +
                    R"(],"dtype":")" + info_of(tensor.dtype).name + R"(","shape":[)" + shape + "]}";
  }
  std::string text;
  for (const auto& [name, member] : members) text += (text.empty() ? '{' : ',') + in_utf8(name) + ':' + member;
  text += text.empty() ? "{}" : "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace tapegrad::detail
