#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "close.hpp"

namespace tg = tapegrad;
namespace fs = std::filesystem;

namespace {

// A folder of a test's own, removed with all that is in it.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "tapegrad-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  fs::path operator/(const char* name) const { return path_ / name; }
  std::size_t files() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), {})); }

 private:
  fs::path path_;
};

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

template <class Number> std::string raw(std::initializer_list<Number> numbers) {
  return {reinterpret_cast<const char*>(numbers.begin()), numbers.size() * sizeof(Number)};
}

std::string checkpoint(const std::string& header, const std::string& data) {
  return raw<std::uint64_t>({header.size()}) + header + data;
}

template <class T> struct Pair {
  tg::Linear<T> first, second;
  TAPEGRAD_FIELDS(first, second)
};

template <class T> Pair<T> make_pair(std::uint64_t seed) {
  tg::manual_seed(seed);
  return {tg::Linear<T>(2, 3), tg::Linear<T>(3, 1, {.bias = false})};
}

// A model of one parameter, w of shape (2), for files written by hand.
struct One {
  tg::Parameter<float> w{tg::Array<float>{1.0f, 2.0f}};
  TAPEGRAD_FIELDS(w)
};

// The message with which loading the bytes is refused. The model stays as it was, and its metadata is refused as well
// when the file is malformed in itself.
std::string refusal(const std::string& bytes) {
  const Folder folder;
  const fs::path path = folder / "a.safetensors";
  write_bytes(path, bytes);
  One model;
  std::string message = "none";
  try {
    tg::load(model, path);
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  CHECK(model.w.value() == tg::Array<float>{1.0f, 2.0f});
  const std::string front = "[load] " + path.string() + ": ";
  CHECK(message.starts_with(front));
  return message.substr(std::min(message.size(), front.size()));
}

std::string refusal(const std::string& header, const std::string& data) { return refusal(checkpoint(header, data)); }

const std::string kTwoFloats = raw({3.0f, 4.0f});

}  // namespace

TEST_CASE_TEMPLATE("A model comes back from a file exactly as it was saved", T, float, double) {
  const Folder folder;
  const Pair<T> saved = make_pair<T>(1);
  Pair<T> loaded = make_pair<T>(2);
  CHECK(loaded.first.weight.value() != saved.first.weight.value());
  tg::save(saved, folder / "a.safetensors");
  tg::load(loaded, folder / "a.safetensors");
  CHECK(loaded.first.weight.value() == saved.first.weight.value());
  CHECK(loaded.first.bias.value() == saved.first.bias.value());
  CHECK(loaded.second.weight.value() == saved.second.weight.value());
  CHECK(folder.files() == 1);
}

TEST_CASE("Loading converts between float and double") {
  const Folder folder;
  const Pair<float> single = make_pair<float>(1);
  Pair<double> wide = make_pair<double>(2);
  tg::save(single, folder / "single.safetensors");
  tg::load(wide, folder / "single.safetensors");
  check_close(wide.first.weight.value(), single.first.weight.value(), 0);

  wide.second.weight.mutable_value()(0, 0) = 1e-3;
  tg::save(wide, folder / "double.safetensors");
  Pair<float> narrow = make_pair<float>(3);
  tg::load(narrow, folder / "double.safetensors");
  CHECK(narrow.second.weight.value()(0, 0) == 1e-3f);
  check_close(narrow.first.bias.value(), single.first.bias.value(), 0);
}

TEST_CASE("Numbers are converted beyond the size of a buffer") {
  const Folder folder;
  const tg::Linear<float> single(100, 101);
  tg::Linear<double> wide(100, 101);
  tg::save(single, folder / "a.safetensors");
  tg::load(wide, folder / "a.safetensors");
  check_close(wide.weight.value(), single.weight.value(), 0);
}

TEST_CASE("Infinities and NaN come back as they are") {
  const Folder folder;
  One saved, loaded;
  saved.w.set_value(tg::Array<float>{-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()});
  tg::save(saved, folder / "a.safetensors");
  tg::load(loaded, folder / "a.safetensors");
  CHECK(loaded.w.value()(0) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(loaded.w.value()(1)));
}

TEST_CASE("A file is laid out byte by byte as safetensors says") {
  const Folder folder;
  Pair<float> model{tg::Linear<float>(2, 1), tg::Linear<float>(1, 1, {.bias = false})};
  model.first.weight.set_value(tg::Array<float>{{1.0f, 2.0f}});
  model.first.bias.set_value(tg::Array<float>{3.0f});
  model.second.weight.set_value(tg::Array<float>(tg::Shape{1, 1}, 4.0f));
  tg::save(model, folder / "a.safetensors", {{"step", "7"}});
  std::string header = R"({"__metadata__":{"step":"7"},)"
                       R"("first.bias":{"data_offsets":[0,4],"dtype":"F32","shape":[1]},)"
                       R"("first.weight":{"data_offsets":[4,12],"dtype":"F32","shape":[1,2]},)"
                       R"("second.weight":{"data_offsets":[12,16],"dtype":"F32","shape":[1,1]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  CHECK(bytes_of(folder / "a.safetensors") == checkpoint(header, raw({3.0f, 1.0f, 2.0f, 4.0f})));
}

TEST_CASE("A file of another writer may have its tensors in any order, and scalars") {
  const Folder folder;
  struct Two {
    tg::Parameter<float> a{tg::Array<float>{0.0f}}, b{tg::Array<float>(tg::Shape{}, 0.0f)};
    TAPEGRAD_FIELDS(a, b)
  } model;
  write_bytes(folder / "a.safetensors", checkpoint(R"({"b":{"dtype":"F64","shape":[],"data_offsets":[0,8]}, )"
                                                   R"("a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                                                   raw({2.5}) + raw({1.5f})));
  tg::load(model, folder / "a.safetensors");
  CHECK(model.a.value()(0) == 1.5f);
  CHECK(model.b.item() == 2.5f);
}

TEST_CASE("Metadata comes back, in whatever language") {
  const Folder folder;
  const tg::Metadata metadata{{"vocabulary", "aä日\n\"\\"}, {"", "empty"}, {"nothing", ""}};
  tg::save(One(), folder / "a.safetensors", metadata);
  CHECK(tg::load_metadata(folder / "a.safetensors") == metadata);
  tg::save(One(), folder / "a.safetensors");
  CHECK(tg::load_metadata(folder / "a.safetensors").empty());
}

TEST_CASE("Metadata that is not UTF-8 is refused, and the old file stays") {
  const Folder folder;
  tg::save(One(), folder / "a.safetensors");
  const std::string before = bytes_of(folder / "a.safetensors");
  CHECK_THROWS_WITH_AS(tg::save(One(), folder / "a.safetensors", {{"name", "\xe9t\xe9"}}),
                       "[save] expected metadata that is UTF-8, given other bytes", std::invalid_argument);
  CHECK(bytes_of(folder / "a.safetensors") == before);
  CHECK(folder.files() == 1);
}

TEST_CASE("Loading keeps gradients, and what a tape has saved") {
  const Folder folder;
  One model;
  tg::save(model, folder / "a.safetensors");
  model.w.set_value(tg::Array<float>{5.0f, 6.0f});
  tg::Tape tape;
  const auto loss = tg::sum(model.w * model.w);
  tg::load(model, folder / "a.safetensors");
  loss.backward();
  CHECK(model.w.grad() == tg::Array<float>{10.0f, 12.0f});
  CHECK(model.w.value() == tg::Array<float>{1.0f, 2.0f});
}

TEST_CASE("Saving over a file keeps its permissions") {
  const Folder folder;
  tg::save(One(), folder / "a.safetensors");
  fs::permissions(folder / "a.safetensors", fs::perms::owner_read | fs::perms::owner_write);
  tg::save(One(), folder / "a.safetensors");
  CHECK(fs::status(folder / "a.safetensors").permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("A file that cannot be written is refused by name") {
  const Folder folder;
  CHECK_THROWS_WITH_AS(tg::save(One(), folder / "missing/a.safetensors"),
                       doctest::Contains("missing/a.safetensors: No such file or directory"), std::runtime_error);
  CHECK_THROWS_WITH_AS(tg::save(One(), ""), "[save] expected the name of a file, given ", std::runtime_error);
  fs::create_directory(folder / "sub");
  CHECK_THROWS_WITH_AS(tg::save(One(), folder / "sub"), doctest::Contains("[save] expected the name of a file, given"),
                       std::runtime_error);
  // What is no regular file, such as a pipe or a device, stays what it is.
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_AS(tg::save(One(), folder / "pipe"), std::runtime_error);
  CHECK(fs::is_fifo(folder / "pipe"));
  CHECK(folder.files() == 2);
}

TEST_CASE("When the disk gives out, the old file stays whole and nothing is left behind") {
  const Folder folder;
  tg::save(One(), folder / "a.safetensors");
  const std::string before = bytes_of(folder / "a.safetensors");

  rlimit unlimited{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &unlimited) == 0);
  const rlimit small{4096, unlimited.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string message;
  try {
    tg::save(tg::Linear<>(100, 100), folder / "a.safetensors");
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &unlimited);
  std::signal(SIGXFSZ, old_handler);

  CHECK(message == "[save] cannot write " + (folder / "a.safetensors").string() + ": File too large");
  CHECK(bytes_of(folder / "a.safetensors") == before);
  CHECK(folder.files() == 1);
}

TEST_CASE("A file that cannot be read is refused by name") {
  const Folder folder;
  One model;
  CHECK_THROWS_WITH_AS(tg::load(model, folder / "a.safetensors"),
                       doctest::Contains("a.safetensors: cannot be opened: No such file or directory"),
                       std::runtime_error);
  fs::create_directory(folder / "sub");
  CHECK_THROWS_WITH_AS(tg::load(model, folder / "sub"), doctest::Contains("sub: expected a file, given something else"),
                       std::runtime_error);
  CHECK_THROWS_WITH_AS(tg::load_metadata(folder / "a.safetensors"), doctest::Contains("[load_metadata] "),
                       std::runtime_error);
  CHECK_THROWS_AS(tg::load_metadata("/dev/zero"), std::runtime_error);
}

TEST_CASE("Tensors that do not fit the model are refused by name, with both shapes") {
  CHECK(refusal(R"({"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})", kTwoFloats) ==
        "expected w of shape (2), given (2, 1)");
  CHECK(refusal(R"({"v":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", kTwoFloats) ==
        "expected w of shape (2), given no such tensor");
  CHECK(refusal(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                R"("x\u0007":{"dtype":"F32","shape":[0,3],"data_offsets":[8,8]}})",
                kTwoFloats) == R"(expected the model's parameters alone, given "x\u0007" of shape (0, 3))");
  CHECK(refusal("{}", "") == "expected w of shape (2), given no such tensor");
}

TEST_CASE("Nothing of a model changes when its last tensor does not fit") {
  const Folder folder;
  tg::save(make_pair<float>(1), folder / "a.safetensors");
  Pair<float> wider{tg::Linear<float>(2, 3), tg::Linear<float>(3, 2, {.bias = false})};
  const tg::Array<float> before = wider.first.weight.value();
  CHECK_THROWS_WITH_AS(tg::load(wider, folder / "a.safetensors"),
                       doctest::Contains("a.safetensors: expected second.weight of shape (2, 3), given (1, 3)"),
                       std::runtime_error);
  CHECK(wider.first.weight.value() == before);
}

TEST_CASE("A file cut off anywhere, or with anything behind its end, is refused") {
  const std::string whole = checkpoint(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", kTwoFloats);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK(refusal(whole.substr(0, length)) != "none");
  }
  CHECK(refusal("") == "expected a safetensors file, of 8 bytes or more, given 0");
  CHECK(refusal(whole + '\0') == "expected 8 bytes of data for the tensors, given 9");
}

TEST_CASE("A header longer than the file, or than a header can be, is refused without making room for it") {
  CHECK(refusal("not a checkpoint") ==
        "expected a safetensors file, its header shorter than its 16 bytes, given a header of 7521891404167278446");
  CHECK(refusal(raw<std::uint64_t>({~std::uint64_t{0}})) ==
        "expected a safetensors file, its header shorter than its 8 bytes, given a header of 18446744073709551615");

  const Folder folder;  // a file with a hole: long, but empty
  write_bytes(folder / "a.safetensors", raw<std::uint64_t>({std::uint64_t{1} << 27}));
  fs::resize_file(folder / "a.safetensors", std::uint64_t{1} << 28);
  CHECK_THROWS_WITH_AS(tg::load_metadata(folder / "a.safetensors"), doctest::Contains("given a header of 134217728"),
                       std::runtime_error);
}

TEST_CASE("A header that is not JSON is refused") {
  for (const std::string header :
       {"", "   ", "{", "{]", "{\"w\":", "w", "{} {}", "{\"\xff\": 1}", "{\"w\": 1e999}", "{'w': 1}", "\0"}) {
    CAPTURE(header);
    CHECK(refusal(header, "").starts_with("expected a header in JSON, given "));
  }
}

TEST_CASE("A header whose JSON is of other types than the format's is refused") {
  const auto tensor = [](const std::string& description) { return refusal("{\"w\":" + description + "}", kTwoFloats); };
  CHECK(refusal("[]", "") == "expected a header that is a JSON object, given []");
  CHECK(refusal("3", "") == "expected a header that is a JSON object, given 3");
  CHECK(tensor("3") == R"(expected "w" with dtype, shape and data_offsets, given 3)");
  CHECK(tensor("{}") == R"(expected "w" with dtype, shape and data_offsets, given {})");
  CHECK(tensor(R"({"dtype":"F32","shape":[2],"offsets":[0,8]})") ==
        R"(expected "w" with dtype, shape and data_offsets, given {"dtype":"F32","offsets":[0,8],"shape":[2]})");
  CHECK(tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1})").starts_with("expected \"w\" with"));
  for (const std::string dtype : {"\"BF16\"", "\"f32\"", "\"\"", "32", "null", "[\"F32\"]"}) {
    CAPTURE(dtype);
    CHECK(tensor(std::string(R"({"shape":[2],"data_offsets":[0,8],"dtype":)") + dtype + "}") ==
          std::string("expected \"w\" of dtype F32 or F64, given ") + dtype);
  }
  for (const std::string shape : {"2", "[-2]", "[2.0]", "[\"2\"]", "null", "{}", "[18446744073709551616]"}) {
    CAPTURE(shape);
    CHECK(tensor(std::string(R"({"dtype":"F32","data_offsets":[0,8],"shape":)") + shape + "}")
              .starts_with("expected \"w\" with a shape of whole numbers, given "));
  }
  for (const std::string offsets : {"8", "[]", "[8]", "[0,4,8]", "[-8,0]", "[0.0,8.0]", "[\"0\",\"8\"]", "null"}) {
    CAPTURE(offsets);
    CHECK(tensor(std::string(R"({"dtype":"F32","shape":[2],"data_offsets":)") + offsets + "}")
              .starts_with("expected \"w\" with two data_offsets, given "));
  }
  CHECK(refusal(R"({"__metadata__":[]})", "") == "expected __metadata__ that is a JSON object, given []");
  CHECK(refusal(R"({"__metadata__":{"step":7}})", "") == R"(expected __metadata__ that is text, given 7 for "step")");
}

TEST_CASE("Names given twice, deep nesting and long nonsense are refused") {
  const std::string w = R"("w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  CHECK(refusal("{" + w + "," + w + "}", kTwoFloats) == R"(expected each name once, given "w" twice)");
  CHECK(refusal(R"({"w":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}})", kTwoFloats) ==
        R"(expected each name once, given "shape" twice)");
  CHECK(refusal(R"({"__metadata__":{"a":"","a":""}})", "") == R"(expected each name once, given "a" twice)");
  CHECK(refusal(R"({"__metadata__":{},"__metadata__":{}})", "") ==
        R"(expected each name once, given "__metadata__" twice)");
  const std::size_t depth = 1'000'000;
  CHECK(refusal(R"({"w":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})", kTwoFloats) ==
        "expected a header of tensors, given JSON that nests deeper");
  CHECK(refusal(std::string(depth, '['), "") == "expected a header of tensors, given JSON that nests deeper");
  CHECK(refusal("{\"w\":\"" + std::string(depth, 'x') + "\"}", "").size() < 200);
}

TEST_CASE("Shapes and places that cannot be are refused") {
  const auto tensor = [](const char* shape, const char* offsets) {
    return refusal(std::string(R"({"w":{"dtype":"F32","shape":)") + shape + R"(,"data_offsets":)" + offsets + "}}",
                   kTwoFloats);
  };
  CHECK(tensor("[4611686018427387904]", "[0,8]") ==
        R"(expected "w" of a size that can be, given [4611686018427387904])");  // 4 bytes each: 2^64
  CHECK(tensor("[4294967296,4294967296]", "[0,0]") ==
        R"(expected "w" of a size that can be, given [4294967296,4294967296])");
  CHECK(tensor("[2]", "[0,4]") == R"(expected "w" in 8 bytes for its shape (2), given data_offsets [0,4])");
  CHECK(tensor("[2]", "[8,0]") == R"(expected "w" in 8 bytes for its shape (2), given data_offsets [8,0])");
  CHECK(tensor("[1000000000000]", "[0,4000000000000]") ==
        "expected 4000000000000 bytes of data for the tensors, given 8");
  CHECK(tensor("[2]", "[18446744073709551608,0]").starts_with("expected \"w\" in 8 bytes"));
}

TEST_CASE("Tensors that overlap or leave holes are refused") {
  const auto two = [](const char* first, const char* second) {
    return refusal(std::string(R"({"v":{"dtype":"F32","shape":[1],"data_offsets":)") + first +
                       R"(},"w":{"dtype":"F32","shape":[2],"data_offsets":)" + second + "}}",
                   raw({1.0f, 2.0f, 3.0f}));
  };
  CHECK(two("[0,4]", "[4,12]") == "expected the model's parameters alone, given \"v\" of shape (1)");
  CHECK(two("[0,4]", "[0,8]") == R"(expected "w" to begin at byte 4 of the data, given 0)");
  CHECK(two("[4,8]", "[0,8]") == R"(expected "v" to begin at byte 8 of the data, given 4)");
  CHECK(two("[0,4]", "[5,13]") == R"(expected "w" to begin at byte 4 of the data, given 5)");
  CHECK(two("[4,8]", "[8,16]") == R"(expected "v" to begin at byte 0 of the data, given 4)");
  CHECK(two("[8,12]", "[12,20]") == R"(expected "v" to begin at byte 0 of the data, given 8)");
}

TEST_CASE("A shape of fewer or more numbers than its bytes hold is refused") {
  const auto tensor = [](const char* dtype, const char* shape, const char* offsets) {
    return refusal(
        std::string(R"({"w":{"dtype":")") + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}",
        kTwoFloats);
  };
  CHECK(tensor("F32", "[1]", "[0,8]") == R"(expected "w" in 4 bytes for its shape (1), given data_offsets [0,8])");
  CHECK(tensor("F32", "[]", "[0,8]") == R"(expected "w" in 4 bytes for its shape (), given data_offsets [0,8])");
  CHECK(tensor("F32", "[0,2]", "[0,8]") == R"(expected "w" in 0 bytes for its shape (0, 2), given data_offsets [0,8])");
  CHECK(tensor("F32", "[3]", "[0,8]") == R"(expected "w" in 12 bytes for its shape (3), given data_offsets [0,8])");
  CHECK(tensor("F64", "[2]", "[0,8]") == R"(expected "w" in 16 bytes for its shape (2), given data_offsets [0,8])");
}

TEST_CASE("Empty tensors lie between others, wherever their names are in the order") {
  const Folder folder;
  struct Three {
    tg::Parameter<float> a, b, c;
    TAPEGRAD_FIELDS(a, b, c)
  };
  const auto load = [&](const char* a, const char* b, const char* c) {
    Three model{tg::Parameter<float>(tg::Array<float>{0.0f, 0.0f}),
                tg::Parameter<float>(tg::Array<float>(tg::Shape{0})), tg::Parameter<float>(tg::Array<float>{0.0f})};
    const auto tensor = [](const char* shape, const char* offsets) {
      return std::string(R"({"dtype":"F32","shape":)") + shape + R"(,"data_offsets":)" + offsets + "}";
    };
    write_bytes(folder / "a.safetensors", checkpoint("{\"a\":" + tensor("[2]", a) + ",\"b\":" + tensor("[0]", b) +
                                                         ",\"c\":" + tensor("[1]", c) + "}",
                                                     raw({1.0f, 2.0f, 3.0f})));
    tg::load(model, folder / "a.safetensors");
    return model.a.value()(0);
  };
  CHECK(load("[0,8]", "[0,0]", "[8,12]") == 1.0f);  // where another begins
  CHECK(load("[4,12]", "[4,4]", "[0,4]") == 2.0f);
  CHECK(load("[0,8]", "[8,8]", "[8,12]") == 1.0f);
  CHECK(load("[0,8]", "[12,12]", "[8,12]") == 1.0f);
  CHECK_THROWS_WITH_AS(load("[0,8]", "[4,4]", "[8,12]"),
                       doctest::Contains(R"(expected "b" to begin at byte 8 of the data, given 4)"),
                       std::runtime_error);
  CHECK_THROWS_AS(load("[0,8]", "[16,16]", "[8,12]"), std::runtime_error);
}

TEST_CASE("A header takes time in proportion to its length") {
  const Folder folder;
  const auto seconds = [&](const std::string& header) {
    write_bytes(folder / "a.safetensors", checkpoint(header, ""));
    const std::clock_t start = std::clock();
    try {
      tg::load_metadata(folder / "a.safetensors");
    } catch (const std::runtime_error&) {
    }
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  // A tenth of a second each; where the time grows with the square of the number, a minute and half a minute.
  std::string tensors = "{\"__metadata__\":{}", objects = "{\"a\":[{}";
  for (int i = 0; i < 100'000; ++i)
    tensors += ",\"layers." + std::to_string(i) + R"(.bias":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  for (int i = 0; i < 300'000; ++i) objects += ",{}";
  CHECK(seconds(objects + "]}") < 10);
  CHECK(seconds(tensors + "}") < 10);
}

TEST_CASE("What a header says at length is refused in few words, and not kept") {
  const auto many = [](const std::string& front, const std::string& item, const std::string& end) {
    std::string header = front;
    for (int i = 0; i < 10'000; ++i) header += (i == 0 ? "" : ",") + item;
    return refusal(header + end, kTwoFloats);
  };
  const std::string message = "expected a header of tensors, given one described in more than 1000 characters";
  CHECK(many("[", "1", "]") == message);
  CHECK(many("{\"w\":[", "{}", "]}") == message);
  CHECK(many(R"({"w":{"dtype":"F32","data_offsets":[0,8],"shape":[)", "1", "]}}") == message);
  CHECK(many(R"({"__metadata__":{"a":[)", "\"b\"", "]}}") == message);
  const std::string text(1'000'000, 'x');
  CHECK(refusal("{\"w\":{\"dtype\":\"" + text + "\"}}", "") == message);
  CHECK(refusal("{\"w\":{\"" + text + "\":1}}", "") == message);
  CHECK(refusal("{\"" + text + "\":1}", "") ==
        "expected \"" + text.substr(0, 99) + "... with dtype, shape and data_offsets, given 1");
}

TEST_CASE("A file with any of its bits flipped is loaded whole or refused whole") {
  const Folder folder;
  const fs::path path = folder / "a.safetensors";
  const std::string whole = checkpoint(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", kTwoFloats);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    write_bytes(path, bytes);
    One model;
    bool loaded = true;
    try {
      tg::load(model, path);
    } catch (const std::runtime_error&) {
      loaded = false;
    }
    const auto& w = model.w.value();
    const bool as_in_file = std::memcmp(w.data(), bytes.data() + bytes.size() - 8, 8) == 0;
    const bool as_before = w == tg::Array<float>{1.0f, 2.0f};
    CAPTURE(bit);
    CHECK((loaded ? as_in_file : as_before));
  }
}
