#include "pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace tapegrad {
namespace {

constexpr std::align_val_t kAlignment{64};

// Bytes that a thread keeps for later at most, or as many as it has in use; and so many it holds at most above the most
// that it ever had in use. A training step that repeats the one before fits into that: to give back what the next step
// takes again costs more than what it computes with it, since the system clears every page.
constexpr std::ptrdiff_t kIdleLimit = std::ptrdiff_t{256} << 20;

// Sizes are rounded up to classes: multiples of 64 bytes up to 512, then eight classes to a doubling, so that at most
// an eighth of a block is internal fragmentation.
constexpr std::size_t kSmallClasses = 9;  // 0, 64, ..., 512

constexpr std::size_t class_of(std::size_t bytes) {
  if (bytes <= 512) return (bytes + 63) / 64;
  const std::size_t doubling = std::bit_width(bytes - 1) - 1;      // 2^doubling < bytes <= 2^(doubling + 1)
  const std::size_t eighth = ((bytes - 1) >> (doubling - 3)) & 7;  // which eighth of that doubling
  return kSmallClasses + (doubling - 9) * 8 + eighth;
}

constexpr std::size_t size_of_class(std::size_t index) {
  if (index < kSmallClasses) return index == 0 ? 64 : index * 64;
  const std::size_t doubling = 9 + (index - kSmallClasses) / 8, eighth = (index - kSmallClasses) % 8;
  return (std::size_t{1} << doubling) + ((eighth + 1) << (doubling - 3));
}

constexpr std::ptrdiff_t bytes_of_class(std::size_t index) { return static_cast<std::ptrdiff_t>(size_of_class(index)); }

constexpr std::size_t kClasses = kSmallClasses + (63 - 9) * 8;

static_assert(size_of_class(class_of(1)) == 64 && size_of_class(class_of(512)) == 512);
static_assert(size_of_class(class_of(513)) == 576 && size_of_class(class_of(577)) == 640);
static_assert(size_of_class(class_of(1024)) == 1024 && size_of_class(class_of(1025)) == 1152);

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeepBlocks = false;  // let the sanitizer see every use after free, and beyond the last byte
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kKeepBlocks = false;
#else
constexpr bool kKeepBlocks = true;
#endif
#else
constexpr bool kKeepBlocks = true;
#endif

struct FreeBlock {
  FreeBlock* next;
};

// From so many bytes on a block is mapped: the C library would keep the pages of what lies between others in its heap.
constexpr std::size_t kMapped = kKeepBlocks ? std::size_t{1} << 20 : std::numeric_limits<std::size_t>::max();

// Large blocks lie in huge pages: one thread cleared 500 MB of them in 0.07 s where others took 0.29, and read
// them at 30 GB/s and not at 18.
constexpr std::size_t kHugePage = std::size_t{1} << 21;

void* system_allocate(std::size_t size) {
  if (size < kMapped) return ::operator new(size, kAlignment);
  void* const block = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) throw std::bad_alloc();
  if (size >= kHugePage) ::madvise(block, size, MADV_HUGEPAGE);  // where there are none, other pages do
  return block;
}

void system_free(void* block, std::size_t size) noexcept {
  if (size < kMapped)
    ::operator delete(block, kAlignment);
  else
    ::munmap(block, size);
}

// Objects with static storage may give blocks back after this thread's pool is gone: then they go to the system.
thread_local bool pool_is_gone = false;
thread_local std::ptrdiff_t blocks_in_use = 0;

struct Pool {
  std::array<FreeBlock*, kClasses> idle{};
  std::ptrdiff_t idle_bytes = 0, used_bytes = 0, most_used = 0;  // used: less those that other threads took

  ~Pool() {
    release_idle();
    pool_is_gone = true;
  }

  void release_idle() {
    for (std::size_t index = kClasses; index-- > 0;)
      while (idle[index] != nullptr) system_free(take(index), size_of_class(index));
  }

  void* take(std::size_t index) {
    FreeBlock* const block = idle[index];
    idle[index] = block->next;
    idle_bytes -= bytes_of_class(index);
    return block;
  }

  void keep(void* block, std::size_t index) {
    idle[index] = new (block) FreeBlock{idle[index]};
    idle_bytes += bytes_of_class(index);
  }

  void count_use(std::ptrdiff_t bytes) {
    used_bytes += bytes;
    most_used = std::max(most_used, used_bytes);
  }

  // Gives idle blocks back, the largest first, while with another block all would be more than there needs to be.
  void make_room(std::size_t index) {
    const std::ptrdiff_t used = used_bytes + bytes_of_class(index), enough = std::max(most_used, used) + kIdleLimit;
    for (std::size_t i = kClasses; i-- > 0 && used + idle_bytes > enough;)
      while (idle[i] != nullptr && used + idle_bytes > enough) system_free(take(i), size_of_class(i));
  }
};

thread_local Pool pool;

}  // namespace

namespace detail {

void* pool_allocate(std::size_t bytes) {
  const std::size_t index = class_of(bytes);
  void* block = nullptr;
  if (!kKeepBlocks || pool_is_gone) {
    block = system_allocate(kKeepBlocks ? size_of_class(index) : bytes);
  } else {
    const bool is_idle = pool.idle[index] != nullptr;
    if (!is_idle) pool.make_room(index);
    block = is_idle ? pool.take(index) : system_allocate(size_of_class(index));
    pool.count_use(bytes_of_class(index));
  }
  ++blocks_in_use;
  return block;
}

void pool_deallocate(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  --blocks_in_use;
  const std::size_t index = class_of(bytes);
  if (!kKeepBlocks || pool_is_gone) return system_free(block, size_of_class(index));
  pool.count_use(-bytes_of_class(index));
  if (pool.idle_bytes + bytes_of_class(index) > std::max(kIdleLimit, pool.used_bytes))
    return system_free(block, size_of_class(index));
  pool.keep(block, index);
}

void pool_release_idle() noexcept {
  if (!pool_is_gone) pool.release_idle();
}

}  // namespace detail

std::ptrdiff_t pool_blocks_in_use() noexcept { return blocks_in_use; }

}  // namespace tapegrad
