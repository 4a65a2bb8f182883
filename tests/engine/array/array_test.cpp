#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <xtensor/xview.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <list>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "sanitized.hpp"

namespace tg = tapegrad;
using Array = tg::Array<double>;
using doctest::Contains;

namespace {

bool aligned(const void* block) { return reinterpret_cast<std::uintptr_t>(block) % 64 == 0; }

// Under AddressSanitizer every block comes from the system.
const auto skip_where_none_is_kept = doctest::skip(kAddressSanitized);

// The pool caches at most 256 MB. New blocks of this size come from the kernel filled with zeros, so only a reused
// block still holds its old contents.
constexpr std::size_t kQuarterOfThePool = std::size_t{64} << 20;

// Blocks marked just before they are freed.
class Blocks {
 public:
  explicit Blocks(int count, std::size_t size = kQuarterOfThePool) : size_(size) {
    for (int i = 0; i < count; ++i) blocks_.push_back(static_cast<unsigned char*>(tg::detail::pool_allocate(size_)));
  }
  ~Blocks() {
    for (unsigned char* block : blocks_) {
      block[kPlace] = kMark;
      tg::detail::pool_deallocate(block, size_);
    }
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  std::ptrdiff_t marked() const {
    return std::count_if(blocks_.begin(), blocks_.end(), [](unsigned char* block) { return block[kPlace] == kMark; });
  }

 private:
  static constexpr std::size_t kPlace = kQuarterOfThePool / 2;
  static constexpr unsigned char kMark = 77;
  std::size_t size_;
  std::vector<unsigned char*> blocks_;
};

std::ptrdiff_t take_marked(int count) { return Blocks(count).marked(); }

// Freed at program exit, after the main thread's pool is gone; this must not fail.
const Array array_of_the_whole_program{1.0, 2.0, 3.0};

}  // namespace

// ---- the pool -----------------------------------------------------------------------------------------------------

TEST_CASE("Blocks of any size are writable from the first byte to the last") {
  struct Block {
    void* bytes;
    std::size_t size;
  };
  std::vector<Block> blocks;
  const auto take = [&blocks](std::size_t size) {
    blocks.push_back({tg::detail::pool_allocate(size), size});
    CHECK(aligned(blocks.back().bytes));
    std::memset(blocks.back().bytes, static_cast<int>(size % 251), size);
  };
  for (std::size_t size = 0; size <= 1300; ++size) take(size);
  for (std::size_t size = 2048; size <= (std::size_t(1) << 22); size *= 2)
    for (const std::size_t at : {size - 1, size, size + 1, size + size / 8, size + size / 8 + 1}) take(at);
  for (const auto& [bytes, size] : blocks) {  // blocks do not overlap: each still holds its own bytes
    const auto* first = static_cast<const unsigned char*>(bytes);
    CHECK(std::all_of(first, first + size, [expected = size % 251](unsigned char byte) { return byte == expected; }));
  }
  for (const auto& [bytes, size] : blocks) tg::detail::pool_deallocate(bytes, size);
}

TEST_CASE("A block counts as in use from allocation to deallocation") {
  const std::ptrdiff_t before = tg::pool_blocks_in_use();
  const auto taken = [before] { return tg::pool_blocks_in_use() - before; };
  {
    Array a(tg::Shape{10}, 1.0);
    CHECK(taken() == 1);
    Array b = a;
    CHECK(taken() == 2);
    const Array c = std::move(a);
    CHECK(taken() <= 3);  // a moved-from array may hold a block for its one element
    b = c;
  }
  CHECK(taken() == 0);
  {
    const tg::Value<double> value = tg::make_value<double>(tg::Shape{10}, 1.0);
    CHECK(taken() == 2);  // the elements, and the array with its reference count
    const tg::Value<double> sharer = value;
    CHECK(taken() == 2);
  }
  CHECK(taken() == 0);
  tg::detail::pool_deallocate(nullptr, 100);
  CHECK(taken() == 0);
}

TEST_CASE("A step with the same sizes as the previous one reuses its blocks" * skip_where_none_is_kept) {
  const auto addresses = [] {
    std::vector<const void*> blocks;
    std::list<Array> arrays;
    for (const std::size_t size : {1, 7, 100, 100, 3000, 50'000})
      blocks.push_back(arrays.emplace_back(tg::Shape{size}).data());
    std::sort(blocks.begin(), blocks.end());
    return blocks;
  };
  const auto first = addresses();
  CHECK(addresses() == first);
}

// New threads start with empty pools.
TEST_CASE("Freed blocks are kept for reuse, whatever their total size" * skip_where_none_is_kept) {
  std::thread([] {
    for (int i = 0; i < 8; ++i) CHECK(take_marked(1) == (i == 0 ? 0 : 1));
    tg::detail::pool_release_idle();
    CHECK(take_marked(1) == 0);
  }).join();
}

TEST_CASE("A thread keeps as many idle bytes as it had in use at once, plus at most 256 MB" * skip_where_none_is_kept) {
  std::thread([] {
    const Blocks used(5);
    CHECK(take_marked(5) == 0);
    CHECK(take_marked(5) == 5);  // 320 MB in use, 320 MB idle: both were in use together
    CHECK(Blocks(1, kQuarterOfThePool * 6).marked() == 0);
    CHECK(take_marked(5) == 4);  // with them, 1,024 MB would be 320 more than were ever in use
    CHECK(take_marked(7) == 5);
    CHECK(take_marked(7) == 6);  // the last block was freed with 320 MB in use and 384 MB idle
  }).join();
}

TEST_CASE("A thread keeps 256 MB of idle blocks and frees the others" * skip_where_none_is_kept) {
  std::thread([] {
    CHECK(take_marked(6) == 0);
    CHECK(take_marked(6) == 4);
  }).join();
}

TEST_CASE("Idle blocks are cut to size, and merged in any order of being freed" * skip_where_none_is_kept) {
  std::thread([] {
    const std::size_t part = kQuarterOfThePool, whole = 4 * part;
    tg::detail::pool_deallocate(tg::detail::pool_allocate(whole), whole);
    std::array<std::size_t, 4> order{0, 1, 2, 3};
    do {
      CAPTURE(tg::Shape(order.begin(), order.end()));
      std::array<unsigned char*, 4> parts;
      for (unsigned char*& block : parts) {
        block = static_cast<unsigned char*>(tg::detail::pool_allocate(part));
        block[part - 1] = 7;
      }
      for (const std::size_t i : order) tg::detail::pool_deallocate(parts[i], part);
      auto* const merged = static_cast<unsigned char*>(tg::detail::pool_allocate(whole));
      for (std::size_t end = part; end <= whole; end += part) CHECK(merged[end - 1] == 7);
      for (std::size_t end = part; end <= whole; end += part) merged[end - 1] = 0;
      tg::detail::pool_deallocate(merged, whole);
    } while (std::next_permutation(order.begin(), order.end()));
    tg::detail::pool_release_idle();
    CHECK(take_marked(1) == 0);
  }).join();
}

TEST_CASE("Large blocks of changing sizes do not overlap") {
  struct Block {
    unsigned char* bytes;
    std::size_t size;
    unsigned char mark;
  };
  std::vector<Block> blocks;
  const auto free = [&](std::size_t i) {
    const auto [bytes, size, mark] = blocks[i];
    CHECK((bytes[0] == mark && bytes[size / 2] == mark && bytes[size - 1] == mark));
    tg::detail::pool_deallocate(bytes, size);
    blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i));
  };
  for (std::uint64_t step = 0; step < 4000; ++step) {
    const std::uint64_t random = tg::random_bits(1, step);
    if (blocks.size() > 20 || (random % 3 == 0 && !blocks.empty())) {
      free(random / 3 % blocks.size());
      continue;
    }
    const std::size_t size = (std::size_t{1} << 18) + random / 3 % (std::size_t{1} << 22);
    auto* const bytes = static_cast<unsigned char*>(tg::detail::pool_allocate(size));
    const auto mark = static_cast<unsigned char>(step % 251);
    bytes[0] = bytes[size / 2] = bytes[size - 1] = mark;
    blocks.push_back({bytes, size, mark});
  }
  while (!blocks.empty()) free(0);
}

TEST_CASE("The smallest idle block is cut, and what is left of it is freed, however small" * skip_where_none_is_kept) {
  std::thread([] {
    const std::size_t page = std::size_t{1} << 16, sizes[]{20 * page, 20 * page, 6 * page};
    tg::detail::pool_deallocate(tg::detail::pool_allocate(46 * page), 46 * page);
    std::byte* blocks[3];  // parts of this one, from its end
    for (int i = 0; i < 3; ++i) blocks[i] = static_cast<std::byte*>(tg::detail::pool_allocate(sizes[i]));
    for (const int i : {0, 2}) tg::detail::pool_deallocate(blocks[i], sizes[i]);  // the second keeps them apart
    void* const cut = tg::detail::pool_allocate(5 * page);
    CHECK(cut == blocks[2] + page);
    tg::detail::pool_release_idle();
    tg::detail::pool_deallocate(cut, 5 * page);
    tg::detail::pool_deallocate(blocks[1], sizes[1]);
  }).join();
}

TEST_CASE("Blocks of the largest size that is not mapped, and of its neighbors, return to where they came from" *
          skip_where_none_is_kept) {
  std::thread([] {
    const auto resident_pages = [] {
      std::size_t mapped = 0, resident = 0;
      std::ifstream("/proc/self/statm") >> mapped >> resident;
      return resident;
    };
    const std::size_t before = resident_pages();
    for (const std::size_t size : {(1 << 18) - 1, 1 << 18, (1 << 18) + 1})
      for (int i = 0; i < 1000; ++i) {
        void* const block = tg::detail::pool_allocate(size);
        std::memset(block, 7, size);
        tg::detail::pool_deallocate(block, size);
        tg::detail::pool_release_idle();
      }
    CHECK(resident_pages() < before + 10'000);
  }).join();
}

TEST_CASE("Any thread may free any thread's block, and a thread's idle blocks are freed when it ends") {
  std::optional<Array> made;
  std::ptrdiff_t blocks_of_other = 0;
  std::thread([&] {
    const Array kept(tg::Shape{1000}, 1.0);
    made.emplace(tg::Shape{1000}, 2.0);
    blocks_of_other = tg::pool_blocks_in_use();
  }).join();
  CHECK(blocks_of_other == 2);
  CHECK((*made)(999) == 2.0);
  const std::ptrdiff_t before = tg::pool_blocks_in_use();
  made.reset();
  CHECK(tg::pool_blocks_in_use() == before - 1);

  Array from_here(tg::Shape{1000}, 3.0);
  std::thread([array = std::move(from_here)] { CHECK(tg::pool_blocks_in_use() == 0); }).join();
}

// Run by ctest's pool_listener and expected to fail: see PoolListener in main.cpp.
TEST_CASE("A test case that keeps a block fails" * doctest::skip()) {
  static tg::Array<float> kept;
  kept = tg::Array<float>(tg::Shape{3});
}

TEST_CASE("Requests beyond the address space are refused") {
  tg::PoolAllocator<double> allocator;
  CHECK_THROWS_AS(allocator.allocate(std::numeric_limits<std::size_t>::max()), std::bad_alloc);
  for (const std::size_t part : {1, 2, 3})
    CHECK_THROWS_AS(allocator.allocate(std::numeric_limits<std::size_t>::max() / sizeof(double) / part),
                    std::bad_alloc);
}

TEST_CASE("The pool's allocator serves standard containers") {
  std::vector<int, tg::PoolAllocator<int>> numbers;
  for (int i = 0; i < 10'000; ++i) numbers.push_back(i);
  CHECK(numbers.back() == 9'999);
  std::list<std::string, tg::PoolAllocator<std::string>> words{"one", "two"};
  words.splice(words.end(), std::list<std::string, tg::PoolAllocator<std::string>>{"three"});
  CHECK(words.size() == 3);
}

// ---- arrays -------------------------------------------------------------------------------------------------------

TEST_CASE("Every array's elements are aligned to 64 bytes") {
  std::vector<Array> doubles;
  std::vector<tg::Array<float>> floats;
  std::vector<tg::BoolArray> bools;
  std::vector<tg::IntArray> integers;
  for (std::size_t size = 0; size < 70; ++size) {
    CHECK(aligned(doubles.emplace_back(tg::Shape{size}).data()));
    CHECK(aligned(floats.emplace_back(tg::Shape{size, 3}).data()));
    CHECK(aligned(bools.emplace_back(tg::Shape{size}).data()));
    CHECK(aligned(integers.emplace_back(tg::Shape{2, size}).data()));
  }
  CHECK(aligned(Array(2.0 * doubles[5] + 1.0).data()));
  CHECK(aligned(Array(tg::Shape{}).data()));
  CHECK(aligned(array_of_the_whole_program.data()));
}

TEST_CASE("An array converts from any xtensor expression") {
  const xt::xarray<double> x{{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}};
  const Array expected{{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}};
  const auto convert = [](const Array& a) { return a; };  // as an argument
  CHECK(convert(x) == expected);
  CHECK(convert(x * 2.0 - x) == expected);
  CHECK(convert(xt::xarray<int>(x)) == expected);
  CHECK(convert(xt::xarray<double, xt::layout_type::column_major>(x)) == expected);
  CHECK(convert(xt::view(x, xt::all(), xt::range(1, 3))) == Array{{2.0, 3.0}, {5.0, 6.0}});
  CHECK(convert(xt::transpose(x)) == Array{{1.0, 4.0}, {2.0, 5.0}, {3.0, 6.0}});
  CHECK(convert(xt::ones<double>({2})) == Array{1.0, 1.0});
  CHECK(tg::BoolArray(x > 2.5) == tg::BoolArray{{false, false, true}, {true, true, true}});
  CHECK(tg::IntArray(xt::cast<std::int64_t>(x))(1, 2) == 6);
}

// ---- shapes -------------------------------------------------------------------------------------------------------

TEST_CASE("Shapes print as in messages, and count as many elements as the product of their extents") {
  CHECK(tg::to_string(tg::Shape{2, 3}) == "(2, 3)");
  CHECK(tg::to_string(tg::Shape{7}) == "(7)");
  CHECK(tg::to_string(tg::Shape{}) == "()");
  CHECK(tg::to_string(tg::IntList{-1, 3}) == "(-1, 3)");
  static_assert(!std::is_convertible_v<bool, tg::IntList> && !std::is_convertible_v<double, tg::IntList>);
  static_assert(!std::is_convertible_v<std::vector<double>, tg::IntList>);
  CHECK(tg::element_count(tg::Shape{2, 3, 4}) == 24);
  CHECK(tg::element_count(tg::Shape{}) == 1);
  CHECK(tg::element_count(tg::Shape{5, 0, 2}) == 0);
}

TEST_CASE("An integer list is made from braces, one integer, a shape or a container, of mixed types") {
  const auto text = [](const tg::IntList& list) { return tg::to_string(list); };  // as an argument
  const std::size_t unsigned_extent = 4;
  const short small = 2;
  CHECK(text({}) == "()");
  CHECK(text({2, -1}) == "(2, -1)");
  CHECK(text({unsigned_extent, small, -1, 7L}) == "(4, 2, -1, 7)");
  CHECK(text(-3) == "(-3)");
  CHECK(text({-3}) == "(-3)");
  CHECK(text(unsigned_extent) == "(4)");
  CHECK(text(tg::Shape{1, 2, 3}) == "(1, 2, 3)");
  CHECK(text(std::vector<int>{5, -6}) == "(5, -6)");
  CHECK(text(std::list<std::size_t>{1, 2, 3, 4, 5, 6, 7}) == "(1, 2, 3, 4, 5, 6, 7)");
  CHECK(text(Array(tg::Shape{2, 3}).shape()) == "(2, 3)");
}

// ---- doctest's messages --------------------------------------------------------------------------------------------

// doctest uses whichever StringMaker of a type the linker finds first, in the whole program.
TEST_CASE("Files without testing.hpp print arrays and shapes in doctest's messages like files with it") {
  CHECK(std::string(doctest::StringMaker<Array>::convert(Array{{1.0, 2.5}}).c_str()) == "(1, 2) {{ 1. ,  2.5}}");
  CHECK(std::string(doctest::StringMaker<tg::Shape>::convert(tg::Shape{2, 3}).c_str()) == "(2, 3)");
}
