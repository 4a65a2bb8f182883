// Reads arrays of every type from safetensors files, on disk and in memory.
#include <tapegrad/layers/model/internal/tensor_file.hpp>
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "checkpoint_bytes.hpp"
#include "refused.hpp"
#include "temporary_folder.hpp"

namespace tg = tapegrad;

namespace {

constexpr std::string_view kMemory = "<bytes in memory>: ";

// A file with one tensor, w, a row of all numbers in the data.
std::string file_of(const std::string& dtype, std::size_t size, const std::string& data) {
  return checkpoint(R"({"w":{"dtype":")" + dtype + R"(","shape":[)" + std::to_string(data.size() / size) +
                        R"(],"data_offsets":[0,)" + std::to_string(data.size()) + "]}}",
                    data);
}

template <class Number> std::string file_of(const std::string& dtype, std::initializer_list<Number> numbers) {
  return file_of(dtype, sizeof(Number), raw(numbers));
}

tg::StoredArray w_of(const std::string& bytes) { return tg::read_safetensors(InMemory(bytes)).at("w"); }

// The file reader's result, without conversion of integers.
template <class T> tg::Array<T> read_exactly(const std::string& bytes) {
  const InMemory memory(bytes);
  tg::detail::TensorFile file("load", memory);
  return file.read<T>("w", file.tensors().at("w"));
}

template <class T> void check_type(const char* name, const char* torch_name, std::initializer_list<T> numbers) {
  CAPTURE(name);
  const std::string bytes = file_of(name, numbers);
  const tg::StoredArray stored = w_of(bytes);
  const tg::Array<T> expected = tg::array<T>(std::vector<T>(numbers));
  CHECK(stored.dtype() == torch_name);
  CHECK(stored.shape() == tg::Shape{numbers.size()});
  CHECK((stored.as<T>() == expected));  // doctest prints arrays of few types
  CHECK((read_exactly<T>(bytes) == expected));
  CHECK(std::string(tg::detail::info_of(tg::detail::dtype_of<T>()).name) == name);

  tg::detail::SafetensorsHeader header;  // written and read again
  header.tensors["w"] = {tg::detail::dtype_of<T>(), expected.shape(), 0, expected.size() * sizeof(T)};
  CHECK(w_of(checkpoint(header.format(), raw(numbers))).dtype() == torch_name);
}

template <class T> constexpr T kHighest = std::numeric_limits<T>::max();
template <class T> constexpr T kLowest = std::numeric_limits<T>::min();

static_assert(!std::is_reference_v<decltype(std::declval<tg::StoredArray>().shape())>);
static_assert(std::is_reference_v<decltype(std::declval<const tg::StoredArray&>().shape())>);

}  // namespace

TEST_CASE("Numbers of every type are read correctly") {
  check_type<bool>("BOOL", "bool", {true, false, true});
  check_type<std::uint8_t>("U8", "uint8", {0, 128, kHighest<std::uint8_t>});
  check_type<std::int8_t>("I8", "int8", {-1, kLowest<std::int8_t>, kHighest<std::int8_t>});
  check_type<std::uint16_t>("U16", "uint16", {0, 1 << 15, kHighest<std::uint16_t>});
  check_type<std::int16_t>("I16", "int16", {-1, kLowest<std::int16_t>, kHighest<std::int16_t>});
  check_type<std::uint32_t>("U32", "uint32", {0, 1u << 31, kHighest<std::uint32_t>});
  check_type<std::int32_t>("I32", "int32", {-1, kLowest<std::int32_t>, kHighest<std::int32_t>});
  check_type<std::uint64_t>("U64", "uint64", {0, std::uint64_t{1} << 63, kHighest<std::uint64_t>});
  check_type<std::int64_t>("I64", "int64", {-1, kLowest<std::int64_t>, kHighest<std::int64_t>});
  check_type<long long>("I64", "int64", {-1, kLowest<long long>, kHighest<long long>});
  check_type<float>("F32", "float32", {1.5f, -0.0f, 1e-45f, std::numeric_limits<float>::infinity()});
  check_type<double>("F64", "float64", {1.5, -0.0, 5e-324, -std::numeric_limits<double>::infinity()});
}

TEST_CASE("Arrays are read in the order of their names, from disk and from memory, with their shapes") {
  const std::string bytes = checkpoint(R"({"b.w":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                                       R"("a":{"dtype":"F32","shape":[0,3],"data_offsets":[8,8]},)"
                                       R"("b.mean":{"dtype":"F32","shape":[2,1],"data_offsets":[8,16]},)"
                                       R"("__metadata__":{"step":"7"}})",
                                       raw<std::int64_t>({-7}) + raw({1.0f, 2.0f}));
  const TemporaryFolder folder;
  const InMemory memory(bytes);
  for (const auto& arrays :
       {tg::read_safetensors(folder.write("a.safetensors", bytes)), tg::read_safetensors(memory)}) {
    REQUIRE(arrays.size() == 3);
    CHECK(arrays.begin()->first == "a");
    CHECK(arrays.rbegin()->first == "b.w");
    CHECK(arrays.contains("b.mean"));
    CHECK(arrays.at("a").as<double>().shape() == tg::Shape{0, 3});
    CHECK(arrays.at("b.w").shape().empty());
    CHECK(arrays.at("b.w").as<int>()() == -7);
    CHECK(arrays.at("b.mean").as<float>() == tg::array<float>({{1}, {2}}));
  }
  CHECK(tg::load_metadata(memory) == tg::Metadata{{"step", "7"}});
}

TEST_CASE("All 65,536 float16 and bfloat16 numbers have the value of their sign, exponent and fraction") {
  std::vector<std::uint16_t> bits(65536);
  std::iota(bits.begin(), bits.end(), std::uint16_t{0});
  const std::string data(reinterpret_cast<const char*>(bits.data()), 2 * bits.size());
  const auto check = [&](const char* dtype, int fraction_bits, int bias) {
    const std::string file = file_of(dtype, 2, data);
    const tg::StoredArray stored = w_of(file);
    CHECK(stored.dtype() == (*dtype == 'F' ? "float16" : "bfloat16"));
    const tg::Array<float> read = stored.as<float>(), exact = read_exactly<float>(file);
    const tg::Array<double> wide = stored.as<double>(), exact_wide = read_exactly<double>(file);
    int wrong = 0;
    for (const std::uint16_t x : bits) {
      const int exponents = 1 << (15 - fraction_bits), exponent = x >> fraction_bits & (exponents - 1);
      const int fraction = x & ((1 << fraction_bits) - 1), one = 1 << fraction_bits;
      double value = exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                                   : std::ldexp(one + fraction, exponent - bias - fraction_bits);
      if (exponent == exponents - 1) value = fraction == 0 ? HUGE_VAL : std::nan("");
      if (x >> 15) value = -value;
      const auto is_value = [&](double given) {
        return (std::isnan(value) ? std::isnan(given) : given == value) && std::signbit(given) == bool(x >> 15);
      };
      wrong += !is_value(read(x)) || !is_value(exact(x)) || !is_value(wide(x)) || !is_value(exact_wide(x));
    }
    CHECK(wrong == 0);
  };
  check("F16", 10, 15);
  check("BF16", 7, 127);
}

TEST_CASE("Floating-point types convert to each other, and values out of range become infinite") {
  const double huge = 1e300, inf = std::numeric_limits<double>::infinity();
  const std::string file = file_of("F64", {0.1, huge, -huge, 1e-300, 1e-40, -inf, std::nan("")});
  for (const tg::Array<float>& read : {w_of(file).as<float>(), read_exactly<float>(file)}) {
    CHECK(read(0) == 0.1f);
    CHECK(read(1) == std::numeric_limits<float>::infinity());
    CHECK(read(2) == -std::numeric_limits<float>::infinity());
    CHECK(read(3) == 0);
    CHECK(read(4) == 1e-40f);  // subnormal
    CHECK(read(5) == -std::numeric_limits<float>::infinity());
    CHECK(std::isnan(read(6)));
  }
  CHECK(w_of(file_of("F32", {0.1f, 1e-45f})).as<double>() == tg::Array<double>{double(0.1f), double(1e-45f)});
}

TEST_CASE("A model loads half precision, from disk and from memory, beyond the conversion buffer's size") {
  std::vector<std::uint16_t> bits(40'000, 0x3c00);  // 1
  bits.back() = 0x4000;                             // 2
  const std::string file = file_of("F16", 2, {reinterpret_cast<const char*>(bits.data()), 2 * bits.size()});
  One from_disk{tg::Parameter<float>(tg::Array<float>(tg::Shape{bits.size()}, 0.0f))}, from_memory = from_disk;
  const TemporaryFolder folder;
  tg::load(from_disk, folder.write("a.safetensors", file));
  tg::load(from_memory, InMemory(file));
  CHECK(from_disk.w.value()(39'998) == 1);
  CHECK(from_disk.w.value()(39'999) == 2);
  CHECK(from_disk.w.value() == from_memory.w.value());
}

TEST_CASE("Arrays outlive the file or bytes they are read from") {
  const TemporaryFolder folder;
  const auto path = folder.write("a.safetensors", file_of<float>("F32", {1.5f, -2.0f}));
  const auto from_disk = tg::read_safetensors(path);
  std::filesystem::remove(path);
  folder.write("a.safetensors", file_of<float>("F32", {7.0f, 7.0f}));  // another file with the same name
  CHECK(from_disk.at("w").as<float>() == tg::Array<float>{1.5f, -2.0f});
  tg::StoredArray from_memory = [] {
    std::string bytes = file_of<float>("F32", {1.5f, -2.0f});
    const InMemory memory(bytes);
    return tg::read_safetensors(memory).at("w");
  }();
  CHECK(from_memory.as<float>() == tg::Array<float>{1.5f, -2.0f});
}

TEST_CASE("Several threads read a large tensor") {
  std::vector<float> numbers(200'003);
  std::iota(numbers.begin(), numbers.end(), 1.0f);
  const std::string data(reinterpret_cast<const char*>(numbers.data()), 4 * numbers.size());
  const std::string file = file_of("F32", 4, data);
  const tg::Array<float> read = w_of(file).as<float>();
  const tg::Array<double> wide = w_of(file).as<double>();
  CHECK(std::equal(numbers.begin(), numbers.end(), read.begin()));
  CHECK(std::equal(numbers.begin(), numbers.end(), wide.begin()));
}

TEST_CASE("Integers convert to other integer types if each number fits") {
  const tg::StoredArray small = w_of(file_of<std::int64_t>("I64", {-128, 0, 127}));
  CHECK((small.as<std::int8_t>() == tg::Array<std::int8_t>{-128, 0, 127}));
  CHECK((small.as<int>() == tg::Array<int>{-128, 0, 127}));
  CHECK(error_message([&] { small.as<std::uint8_t>(); }) ==
        R"([read_safetensors] expected "w" of numbers from 0 to 255, got -128)");
  CHECK(w_of(file_of<std::uint8_t>("U8", {200})).as<std::int64_t>()(0) == 200);
  CHECK(error_message([] {
          w_of(file_of<std::uint8_t>("U8", {1, 200})).as<std::int8_t>();
        }) == R"([read_safetensors] expected "w" of numbers from -128 to 127, got 200)");
  const tg::StoredArray large = w_of(file_of<std::uint64_t>("U64", {1, std::uint64_t{1} << 63}));
  CHECK(error_message([&] { large.as<std::int64_t>(); }) ==
        "[read_safetensors] expected \"w\" of numbers from -9223372036854775808 to 9223372036854775807, "
        "got 9223372036854775808");
  CHECK_THROWS_AS(small.as<std::uint8_t>(), std::invalid_argument);
}

TEST_CASE("Integers, floating-point numbers and bools do not convert to each other") {
  const tg::StoredArray half = w_of(file_of<std::uint16_t>("BF16", {0x3f80})), integer = w_of(file_of<int>("I32", {1})),
                        boolean = w_of(file_of("BOOL", {true}));
  CHECK(error_message([&] { half.as<int>(); }) ==
        R"([read_safetensors] expected "w" of numbers that convert to int32, got bfloat16)");
  CHECK(error_message([&] { integer.as<double>(); }) ==
        R"([read_safetensors] expected "w" of numbers that convert to float64, got int32)");
  CHECK_THROWS_AS(half.as<bool>(), std::invalid_argument);
  CHECK_THROWS_AS(integer.as<bool>(), std::invalid_argument);
  CHECK_THROWS_AS(boolean.as<float>(), std::invalid_argument);
  CHECK_THROWS_AS(boolean.as<std::uint8_t>(), std::invalid_argument);

  const std::string front = "[load] " + std::string(kMemory) + "expected \"w\" of dtype ";
  const std::string file = file_of<int>("I32", {1});
  CHECK(error_message([&] { read_exactly<float>(file); }) == front + "F32, got I32");
  CHECK(error_message([&] { read_exactly<std::int64_t>(file); }) == front + "I64, got I32");
  CHECK(error_message([&] { read_exactly<std::uint32_t>(file); }) == front + "U32, got I32");
  CHECK(error_message([&] { read_exactly<bool>(file); }) == front + "BOOL, got I32");
  CHECK(error_message([] { read_exactly<int>(file_of("F32", {1.0f})); }) == front + "I32, got F32");
  CHECK(error_message([] { read_exactly<std::uint8_t>(file_of("BOOL", {true})); }) == front + "U8, got BOOL");
}

TEST_CASE("A bool other than 0 and 1 is refused with the file's name") {
  const std::string file = file_of<std::uint8_t>("BOOL", {1, 0, 2});
  const std::string message = R"(expected "w" with bools of 0 or 1, got 2)";
  CHECK(error_message([&] { w_of(file); }) == "[read_safetensors] " + std::string(kMemory) + message);
  CHECK(error_message([&] { read_exactly<bool>(file); }) == "[load] " + std::string(kMemory) + message);
  CHECK_THROWS_AS(w_of(file), std::runtime_error);
}

TEST_CASE("Every reader refuses paths that are not files") {
  CHECK(error_message([] { tg::read_safetensors(std::span<const std::byte>()); }) ==
        "[read_safetensors] <bytes in memory>: expected a safetensors file of 8 bytes or more, got 0");
  CHECK(error_message([] { tg::load_metadata(InMemory("1234567")); }) ==
        "[load_metadata] <bytes in memory>: expected a safetensors file of 8 bytes or more, got 7");
  CHECK(error_message([] { tg::read_safetensors(InMemory(raw<std::uint64_t>({1}))); }).ends_with("got a header of 1"));
  CHECK(error_message([] { tg::read_safetensors(std::filesystem::path("/nowhere.safetensors")); }) ==
        "[read_safetensors] /nowhere.safetensors: cannot be opened: No such file or directory");
  const TemporaryFolder folder;
  One model;
  CHECK(error_message([&] { tg::load(model, folder / "a"); }) ==
        "[load] " + folder.path("a") + ": cannot be opened: No such file or directory");
  CHECK(error_message([&] { tg::load_metadata("/dev/zero"); }) ==
        "[load_metadata] /dev/zero: expected a regular file, got a folder, pipe or device");
  CHECK(tg::read_safetensors(InMemory(checkpoint("{}", ""))).empty());
}

TEST_CASE("Names with control characters are quoted in messages") {
  const std::string file = checkpoint(R"({"\u001b":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", "\2");
  CHECK(error_message([&] {
          tg::read_safetensors(InMemory(file));
        }).ends_with(R"(expected "\u001b" with bools of 0 or 1, got 2)"));
}
