#include "pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace tapegrad {
namespace {

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
constexpr bool kKeepBlocks = false;  // makes the sanitizer report use after free and access beyond the last byte
#else
constexpr bool kKeepBlocks = true;
#endif

// A thread has at most this many idle bytes, or as many as it uses; in total at most this above its peak in use, in
// whole blocks. A repeated training step fits: the system would clear all pages returned and allocated again.
constexpr std::ptrdiff_t kIdleLimit = std::ptrdiff_t{256} << 20;

// Larger blocks are mapped: the C library would keep pages that lie between others in its heap. A mapped block also
// serves requests down to half its size, because batches of texts differ in length. The line before it holds its class.
constexpr std::size_t kMapped = kKeepBlocks ? std::size_t{1} << 18 : std::numeric_limits<std::size_t>::max();
constexpr std::size_t kLine = 64;
constexpr std::align_val_t kAlignment{kLine};

// Larger blocks use huge pages, which one thread clears four times as fast and reads at 30 GB/s instead of 18.
constexpr std::size_t kHugePage = std::size_t{1} << 21;

// Sizes are multiples of 64 bytes up to 512, then eighths of a doubling, which wastes at most an eighth of a new block.
constexpr std::size_t class_of(std::size_t bytes) {
  const std::size_t last_unit = (std::max<std::size_t>(bytes, 1) - 1) / 64;
  const auto shift = std::max<std::size_t>(std::bit_width(last_unit), 4) - 4;
  return 8 * shift + (last_unit >> shift);
}

constexpr std::ptrdiff_t size_of_class(std::size_t index) {
  const std::size_t shift = std::max<std::size_t>(index / 8, 1) - 1;
  return static_cast<std::ptrdiff_t>(64 * (index - 8 * shift + 1) << shift);
}

constexpr std::size_t kClassesPerDoubling = 8, kClasses = class_of(std::size_t{1} << 63) + 1;

static_assert(size_of_class(class_of(0)) == 64 && size_of_class(class_of(512)) == 512);
static_assert(size_of_class(class_of(513)) == 576 && size_of_class(class_of(577)) == 640);
static_assert(size_of_class(class_of(1024)) == 1024 && size_of_class(class_of(1025)) == 1152);

void* system_allocate(std::size_t size) {
  if (size <= kMapped) return ::operator new(size, kAlignment);
  void* const line = ::mmap(nullptr, kLine + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (line == MAP_FAILED) throw std::bad_alloc();
  if (size >= kHugePage) ::madvise(line, kLine + size, MADV_HUGEPAGE);  // on failure the pages are small
  new (line) std::size_t{class_of(size)};
  return static_cast<std::byte*>(line) + kLine;
}

void* line_before(void* block) { return static_cast<std::byte*>(block) - kLine; }

void system_free(void* block, std::size_t size) noexcept {
  if (size <= kMapped)
    ::operator delete(block, kAlignment);
  else
    ::munmap(line_before(block), kLine + size);
}

bool is_mapped(std::size_t index) { return static_cast<std::size_t>(size_of_class(index)) > kMapped; }

// The class of a block that was allocated for a request of class `index`.
std::size_t class_of_block(void* block, std::size_t index) noexcept {
  return is_mapped(index) ? *static_cast<std::size_t*>(line_before(block)) : index;
}

// Static objects may free blocks after this thread's pool is destroyed: these blocks return to the system.
thread_local bool pool_is_destroyed = false;
thread_local std::ptrdiff_t blocks_in_use = 0;

struct Pool {
  struct FreeBlock {
    FreeBlock* next;
  };
  std::array<FreeBlock*, kClasses> idle{};
  std::ptrdiff_t idle_bytes = 0, used_bytes = 0, most_used = 0;  // this thread's allocations less its deallocations

  ~Pool() {
    trim(0);
    pool_is_destroyed = true;
  }

  // A block of class `index`, or of a larger one if it is mapped.
  void* allocate(std::size_t index) {
    const std::size_t found = first_idle(index);
    const bool is_idle = idle[found] != nullptr;
    const std::ptrdiff_t size = size_of_class(found), used = used_bytes + size;
    if (!is_idle) trim(std::max(most_used, used) + kIdleLimit - used);
    void* const block = is_idle ? take(found) : system_allocate(size);
    used_bytes = used;
    most_used = std::max(most_used, used);
    return block;
  }

  void deallocate(void* block, std::size_t index) {
    const std::ptrdiff_t size = size_of_class(index);
    used_bytes -= size;
    if (idle_bytes + size > std::max(kIdleLimit, used_bytes)) return system_free(block, size);
    idle[index] = new (block) FreeBlock{idle[index]};
    idle_bytes += size;
  }

  // The class of the smallest idle block that may serve a request of class `index`, or `index` if there is none.
  std::size_t first_idle(std::size_t index) const {
    const std::size_t last = is_mapped(index) ? std::min(index + kClassesPerDoubling, kClasses - 1) : index;
    for (std::size_t larger = index; larger <= last; ++larger)
      if (idle[larger] != nullptr) return larger;
    return index;
  }

  void* take(std::size_t index) {
    FreeBlock* const block = idle[index];
    idle[index] = block->next;
    idle_bytes -= size_of_class(index);
    return block;
  }

  // Frees idle blocks, the largest first, until at most `limit` bytes are idle.
  void trim(std::ptrdiff_t limit) {
    for (std::size_t index = kClasses; index-- > 0 && idle_bytes > limit;)
      while (idle[index] != nullptr && idle_bytes > limit) system_free(take(index), size_of_class(index));
  }
};

thread_local Pool pool;

bool keeps_blocks() { return kKeepBlocks && !pool_is_destroyed; }

}  // namespace

namespace detail {

void* pool_allocate(std::size_t bytes) {
  const std::size_t index = class_of(bytes), size = kKeepBlocks ? size_of_class(index) : bytes;
  void* const block = keeps_blocks() ? pool.allocate(index) : system_allocate(size);
  ++blocks_in_use;
  return block;
}

void pool_deallocate(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  --blocks_in_use;
  const std::size_t index = class_of_block(block, class_of(bytes));
  keeps_blocks() ? pool.deallocate(block, index) : system_free(block, size_of_class(index));
}

void pool_release_idle() noexcept {
  if (!pool_is_destroyed) pool.trim(0);
}

}  // namespace detail

std::ptrdiff_t pool_blocks_in_use() noexcept { return blocks_in_use; }

}  // namespace tapegrad
