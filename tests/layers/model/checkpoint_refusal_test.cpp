#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint_bytes.hpp"
#include "sanitized.hpp"
#include "temporary_folder.hpp"

namespace tg = tapegrad;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMaxHeaderLength = 100'000'000;  // as in the format's own implementation

template <class F> double processor_seconds(F f) {
  const std::clock_t start = std::clock();
  f();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// The error message from loading a path or bytes, without its prefix. Checks that it is one short line, comes fast,
// needs no memory of the claimed size, and leaves the model unchanged.
template <class Source> std::string refusal_of(const Source& source, const std::string& name) {
  One model;
  std::string message = "none";
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  const double seconds = processor_seconds([&] {
    try {
      tg::load(model, source);
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
  });
  ::getrusage(RUSAGE_SELF, &after);
  const std::string front = "[load] " + name + ": ";
  CAPTURE(message);
  CHECK(message.starts_with(front));
  CHECK(message.find_first_of("\n\x1b") == std::string::npos);
  CHECK(message.size() < 300 + name.size());
  CHECK(seconds < 2);  // takes milliseconds
  CHECK(after.ru_maxrss - before.ru_maxrss < 32 * 1024);
  CHECK(model.w.value() == tg::Array<float>{1.0f, 2.0f});
  return message.substr(std::min(message.size(), front.size()));
}

// The same for these bytes, from a file and from memory.
std::string refusal(const std::string& bytes) {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.safetensors";
  write_bytes(path, bytes);
  const std::string message = refusal_of(path, path.string());
  CHECK(refusal_of(InMemory(bytes), "<bytes in memory>") == message);
  return message;
}

std::string refusal(const std::string& header, const std::string& data) { return refusal(checkpoint(header, data)); }

const std::string kTwoFloats = raw({3.0f, 4.0f});
const std::string kW = R"("w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";

// The same for a file with one tensor, w.
std::string refusal_of_w(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return refusal(R"({"w":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}",
                 kTwoFloats);
}

}  // namespace

TEST_CASE("Tensors that do not match the model are refused by name, with both shapes") {
  CHECK(refusal_of_w("F32", "[2,1]", "[0,8]") == "expected w of shape (2), got (2, 1)");
  CHECK(refusal(R"({"v":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", kTwoFloats) ==
        "expected w of shape (2), got no such tensor");
  CHECK(refusal("{" + kW + R"(,"x\u0007":{"dtype":"F32","shape":[0,3],"data_offsets":[8,8]}})", kTwoFloats) ==
        R"(expected only tensors of the model, got "x\u0007" of shape (0, 3))");
  CHECK(refusal("{}", "") == "expected w of shape (2), got no such tensor");
  const std::string empty = R"({"dtype":"I8","shape":[0],"data_offsets":[8,8]})";  // reports the first by name
  CHECK(refusal("{" + kW + ",\"z\":" + empty + ",\"x\":" + empty + ",\"y\":" + empty + "}", kTwoFloats) ==
        R"(expected only tensors of the model, got "x" of shape (0))");
}

TEST_CASE("A file replaced while it is read is read completely, in its old or new version") {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.safetensors";
  std::array<tg::Parameter<double>, 16> saved;
  const auto save = [&](double number) {
    for (auto& parameter : saved) parameter = tg::Parameter<double>(tg::Array<double>(tg::Shape{1 << 17}, number));
    tg::save(saved, path);
  };
  save(2);
  const auto arrays = tg::read_safetensors(path);
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (double number = 3; !done; ++number) save(number);
  });
  std::array<tg::Parameter<float>, 16> model;
  for (auto& parameter : model) parameter = tg::Parameter<float>(tg::Array<float>(tg::Shape{1 << 17}, 1.0f));
  for (int i = 0; i < 1000 && model[0].value()(0) < 5; ++i) {
    tg::load(model, path);
    for (const auto& parameter : model) {
      CHECK(parameter.value()(0) == model[0].value()(0));
      CHECK(parameter.value()((1 << 17) - 1) == model[0].value()(0));
    }
  }
  done = true;
  writer.join();
  CHECK(model[0].value()(0) >= 5);
  CHECK(arrays.at("15").as<double>()(0) == 2);
}

TEST_CASE("A file that is truncated anywhere, or has extra bytes at the end, is refused") {
  const std::string whole = checkpoint("{" + kW + "}", kTwoFloats);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK(refusal(whole.substr(0, length)) != "none");
  }
  CHECK(refusal("") == "expected a safetensors file of 8 bytes or more, got 0");
  CHECK(refusal("1234567") == "expected a safetensors file of 8 bytes or more, got 7");
  CHECK(refusal(whole + '\0') == "expected 8 bytes of data for the tensors, got 9");
}

TEST_CASE("A header beyond the file or the format's limit is refused without allocating memory") {
  CHECK(refusal("not a checkpoint") ==
        "expected a safetensors file with a header shorter than the file's 16 bytes, got a header of "
        "7521891404167278446");
  for (const std::uint64_t length :
       {std::uint64_t{3}, std::uint64_t{1} << 60, ~std::uint64_t{0} - 7, ~std::uint64_t{0}})
    CHECK(refusal(raw({length}) + "{}") ==
          "expected a safetensors file with a header shorter than the file's 10 bytes, got a header of " +
              std::to_string(length));

  const TemporaryFolder folder;  // a sparse file: long but without data
  write_bytes(folder / "a.safetensors", raw<std::uint64_t>({kMaxHeaderLength + 1}));
  fs::resize_file(folder / "a.safetensors", 2 * kMaxHeaderLength);
  CHECK_THROWS_WITH_AS(tg::load_metadata(folder / "a.safetensors"),
                       doctest::Contains("a header of at most 100000000 bytes, got one of 100000001"),
                       std::runtime_error);
}

TEST_CASE("A header of the format's limit is not refused for its length") {
  std::string bytes = raw({kMaxHeaderLength}) + "not JSON";  // reading that much JSON takes seconds in these tests
  bytes.resize(sizeof kMaxHeaderLength + kMaxHeaderLength, ' ');
  CHECK_THROWS_WITH(tg::load_metadata(std::as_bytes(std::span(bytes))),
                    doctest::Contains("expected a header in JSON, got "));
}

TEST_CASE("A header that is not JSON is refused") {
  for (const std::string header :
       {"", "   ", "{", "{]", "{\"w\":", "w", "{} {}", "{\"\xff\": 1}", "{\"w\": 1e999}", "{'w': 1}", "\n\x1b"}) {
    CAPTURE(header);
    CHECK(refusal(header, "").starts_with("expected a header in JSON, got "));
  }
}

TEST_CASE("A header with unexpected JSON types is refused") {
  const auto tensor = [](const std::string& description) { return refusal("{\"w\":" + description + "}", kTwoFloats); };
  CHECK(refusal("[]", "") == "expected a header that is a JSON object, got []");
  CHECK(refusal("3", "") == "expected a header that is a JSON object, got 3");
  CHECK(tensor("3") == R"(expected "w" with dtype, shape and data_offsets, got 3)");
  CHECK(tensor("{}") == R"(expected "w" with dtype, shape and data_offsets, got {})");
  CHECK(tensor(R"({"dtype":"F32","shape":[2],"offsets":[0,8]})") ==
        R"(expected "w" with dtype, shape and data_offsets, got {"dtype":"F32","offsets":[0,8],"shape":[2]})");
  CHECK(tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1})").starts_with("expected \"w\" with"));
  for (const std::string dtype : {"\"F8_E4M3\"", "\"f32\"", "\"F32\\u0000\"", "\"\"", "32", "null", "[\"F32\"]"}) {
    CAPTURE(dtype);
    CHECK(tensor(std::string(R"({"shape":[2],"data_offsets":[0,8],"dtype":)") + dtype + "}") ==
          "expected \"w\" of dtype BOOL, U8, I8, U16, I16, F16, BF16, U32, I32, F32, U64, I64 or F64, got " + dtype);
  }
  for (const std::string shape : {"2", "[-2]", "[2.0]", "[\"2\"]", "null", "{}", "[18446744073709551616]"}) {
    CAPTURE(shape);
    CHECK(tensor(std::string(R"({"dtype":"F32","data_offsets":[0,8],"shape":)") + shape + "}")
              .starts_with("expected \"w\" with a shape of whole numbers, got "));
  }
  for (const std::string offsets : {"8", "[]", "[8]", "[0,4,8]", "[-8,0]", "[0.0,8.0]", "[\"0\",\"8\"]", "null"}) {
    CAPTURE(offsets);
    CHECK(tensor(std::string(R"({"dtype":"F32","shape":[2],"data_offsets":)") + offsets + "}")
              .starts_with("expected \"w\" with two data_offsets, got "));
  }
  CHECK(refusal(R"({"__metadata__":[]})", "") == "expected __metadata__ that is a JSON object, got []");
  CHECK(refusal(R"({"__metadata__":{"step":7}})", "") == R"(expected __metadata__ that is text, got 7 for "step")");
}

TEST_CASE("Duplicate names, deep nesting and long garbage are refused") {
  CHECK(refusal("{" + kW + "," + kW + "}", kTwoFloats) == R"(expected each name once, got "w" twice)");
  for (const std::string twice : {R"("dtype":"F32")", R"("shape":[2])", R"("data_offsets":[0,8])"})
    CHECK(refusal("{" + kW.substr(0, kW.size() - 1) + "," + twice + "}}", kTwoFloats) ==
          "expected each name once, got " + twice.substr(0, twice.find(':')) + " twice");
  CHECK(refusal(R"({"__metadata__":{"a":"","a":""}})", "") == R"(expected each name once, got "a" twice)");
  CHECK(refusal(R"({"__metadata__":{},"__metadata__":{}})", "") ==
        R"(expected each name once, got "__metadata__" twice)");
  const std::size_t depth = 1'000'000;
  const std::string nests = "expected a header of tensors, got JSON that nests deeper";
  CHECK(refusal_of_w("F32", "[[2]]", "[0,8]") == nests);
  const auto objects = [](std::string front) {
    for (int i = 0; i < 10'000; ++i) front += "{\"w\":";
    return front;
  };
  for (const std::string& header : {std::string(depth, '['), objects(""), objects("{\"__metadata__\":")})
    CHECK(refusal(header, "") == nests);
  CHECK(refusal("{\"w\":\"" + std::string(depth, 'x') + "\"}", "").size() < 200);
}

TEST_CASE("Impossible shapes and offsets are refused") {
  const std::vector<std::array<std::string, 3>> too_large{
      {"F32", "[4611686018427387904]", "[0,8]"},  // times 4 bytes: 2^64
      {"F32", "[4294967296,4294967296]", "[0,0]"},
      {"F32", "[4294967296,4294967296,0]", "[0,0]"},
      {"F32", "[0,4294967296,4294967296]", "[0,0]"},
      {"F32", "[4611686018427387905]", "[0,4]"},  // times 4 bytes: more than 2^64
      {"F32", "[7,7905747460161236407]", "[0,4]"},
      {"U8", "[18446744073709551615]", "[0,8]"},
      {"BOOL", "[2305843009213693952]", "[0,8]"},
      {"BF16", "[4611686018427387905,2]", "[0,4]"},
      {"I64", "[2305843009213693953]", "[0,8]"}};
  for (const auto& [dtype, shape, offsets] : too_large)
    CHECK(refusal_of_w(dtype, shape, offsets) == "expected \"w\" of an addressable size, got " + shape);
  CHECK(refusal_of_w("F32", "[1000000000000]", "[0,4000000000000]") ==
        "expected 4000000000000 bytes of data for the tensors, got 8");
  CHECK(refusal_of_w("I8", "[1000000000000000]", "[0,1000000000000000]") ==
        "expected 1000000000000000 bytes of data for the tensors, got 8");
  CHECK(refusal_of_w("F32", "[0]", "[1000000000000,1000000000000]") ==
        R"(expected "w" to begin at byte 0 of the data, got 1000000000000)");
  CHECK(refusal_of_w("F32", "[2]", "[18446744073709551608,0]").starts_with("expected \"w\" in 8 bytes"));
  CHECK(refusal_of_w("I32", "[2]", "[0,8]") == "expected w of dtype F32, got I32");
}

TEST_CASE("Tensors with overlaps or gaps are refused") {
  const auto two = [](const char* first, const char* second) {
    return refusal(std::string(R"({"v":{"dtype":"F32","shape":[1],"data_offsets":)") + first +
                       R"(},"w":{"dtype":"F32","shape":[2],"data_offsets":)" + second + "}}",
                   raw({1.0f, 2.0f, 3.0f}));
  };
  CHECK(two("[0,4]", "[4,12]") == "expected only tensors of the model, got \"v\" of shape (1)");
  CHECK(two("[0,4]", "[0,8]") == R"(expected "w" to begin at byte 4 of the data, got 0)");
  CHECK(two("[4,8]", "[0,8]") == R"(expected "v" to begin at byte 8 of the data, got 4)");
  CHECK(two("[0,4]", "[5,13]") == R"(expected "w" to begin at byte 4 of the data, got 5)");
  CHECK(two("[4,8]", "[8,16]") == R"(expected "v" to begin at byte 0 of the data, got 4)");
  CHECK(two("[8,12]", "[12,20]") == R"(expected "v" to begin at byte 0 of the data, got 8)");
}

TEST_CASE("A shape that does not match its number of bytes is refused, for numbers of every width") {
  const auto check = [](const char* dtype, const std::string& shape, const std::string& bytes, const char* offsets) {
    std::string printed = "(" + shape + ")";
    if (const auto comma = printed.find(','); comma != printed.npos) printed.insert(comma + 1, " ");
    CHECK(refusal_of_w(dtype, "[" + shape + "]", offsets) ==
          "expected \"w\" in " + bytes + " bytes for its shape " + printed + ", got data_offsets " + offsets);
  };
  check("F32", "1", "4", "[0,8]");
  check("F32", "", "4", "[0,8]");
  check("F32", "0,2", "0", "[0,8]");
  check("F32", "3", "12", "[0,8]");
  check("F32", "2", "8", "[8,0]");
  check("F64", "2", "16", "[0,8]");
  check("U64", "2", "16", "[0,8]");
  check("F16", "2", "4", "[0,8]");
}

TEST_CASE("Empty tensors may be anywhere, in any order of names") {
  const auto load = [](const char* a, const char* b, const char* c) {
    const auto tensor = [](const std::string& name, const char* shape, const char* offsets) {
      return '"' + name + R"(":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
    };
    const std::string header = tensor("a", "[2]", a) + "," + tensor("b", "[0]", b) + "," + tensor("c", "[1]", c);
    const InMemory file(checkpoint("{" + header + "}", raw({1.0f, 2.0f, 3.0f})));
    return tg::read_safetensors(file).at("a").as<float>()(0);
  };
  CHECK(load("[0,8]", "[0,0]", "[8,12]") == 1.0f);  // where another tensor begins
  CHECK(load("[4,12]", "[4,4]", "[0,4]") == 2.0f);
  CHECK(load("[0,8]", "[8,8]", "[8,12]") == 1.0f);
  CHECK(load("[0,8]", "[12,12]", "[8,12]") == 1.0f);
  CHECK_THROWS_WITH_AS(load("[0,8]", "[4,4]", "[8,12]"),
                       doctest::Contains(R"(expected "b" to begin at byte 8 of the data, got 4)"), std::runtime_error);
  CHECK_THROWS_AS(load("[0,8]", "[16,16]", "[8,12]"), std::runtime_error);
}

TEST_CASE("The time to read a header is linear in its length") {
  const TemporaryFolder folder;
  const auto seconds = [&](const std::string& header) {
    write_bytes(folder / "a.safetensors", checkpoint(header, ""));
    return processor_seconds([&] {
      try {
        tg::load_metadata(folder / "a.safetensors");
      } catch (const std::runtime_error&) {
      }
    });
  };
  // A tenth of a second each; quadratic time would take a minute and half a minute.
  constexpr int kMany = kSanitized ? 10'000 : 100'000;
  std::string tensors = "{\"__metadata__\":{}", objects = "{\"a\":[{}";
  for (int i = 0; i < kMany; ++i)
    tensors += ",\"layers." + std::to_string(i) + R"(.bias":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  for (int i = 0; i < 3 * kMany; ++i) objects += ",{}";
  CHECK(seconds(objects + "]}") < 10);
  CHECK(seconds(tensors + "}") < 10);
}

TEST_CASE("Long text from a header is shortened in the error and not stored") {
  const auto many = [](const std::string& front, const std::string& item, const std::string& end) {
    std::string header = front;
    for (int i = 0; i < 10'000; ++i) header += (i == 0 ? "" : ",") + item;
    return refusal(header + end, kTwoFloats);
  };
  const std::string message = "expected a header entry of at most 1000 characters, got a longer one";
  CHECK(many("[", "1", "]") == message);
  CHECK(many("{\"", R"(\n\u001b)", "\":1}").starts_with(R"(expected "\n\u001b,\n)"));
  CHECK(many("{\"w\":[", "{}", "]}") == message);
  CHECK(many(R"({"w":{"dtype":"F32","data_offsets":[0,8],"shape":[)", "1", "]}}") == message);
  CHECK(many(R"({"__metadata__":{"a":[)", "\"b\"", "]}}") == message);
  const std::string text(1'000'000, 'x');
  CHECK(refusal("{\"w\":{\"dtype\":\"" + text + "\"}}", "") == message);
  CHECK(refusal("{\"w\":{\"" + text + "\":1}}", "") == message);
  CHECK(refusal("{\"" + text + "\":1}", "") ==
        "expected \"" + text.substr(0, 99) + "... with dtype, shape and data_offsets, got 1");
}

TEST_CASE("A path that is not a file is refused without reading it") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const fs::path& path : {folder / "pipe", folder / ".", fs::path("/dev/zero")})
    CHECK(refusal_of(path, path.string()) == "expected a regular file, got a folder, pipe or device");
}
