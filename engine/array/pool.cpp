#include "pool.hpp"

#include <array>
#include <bit>

namespace tapegrad {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr std::size_t kIdleLimit = std::size_t{256} << 20;  // bytes a thread keeps for later at most

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

constexpr std::size_t kClasses = kSmallClasses + (63 - 9) * 8;

static_assert(size_of_class(class_of(1)) == 64 && size_of_class(class_of(512)) == 512);
static_assert(size_of_class(class_of(513)) == 576 && size_of_class(class_of(577)) == 640);
static_assert(size_of_class(class_of(1024)) == 1024 && size_of_class(class_of(1025)) == 1152);

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeepBlocks = false;  // let the sanitizer see every use after free
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

void* system_allocate(std::size_t size) { return ::operator new(size, kAlignment); }
void system_free(void* block) noexcept { ::operator delete(block, kAlignment); }

// Objects with static storage may give blocks back after this thread's pool is gone: then they go to the system.
thread_local bool pool_is_gone = false;
thread_local std::ptrdiff_t blocks_in_use = 0;

struct Pool {
  std::array<FreeBlock*, kClasses> idle{};
  std::size_t idle_bytes = 0;

  ~Pool() {
    for (FreeBlock* block : idle)
      while (block != nullptr) {
        FreeBlock* next = block->next;
        system_free(block);
        block = next;
      }
    pool_is_gone = true;
  }
};

thread_local Pool pool;

}  // namespace

namespace detail {

void* pool_allocate(std::size_t bytes) {
  const std::size_t index = class_of(bytes), size = size_of_class(index);
  void* block = nullptr;
  if (kKeepBlocks && !pool_is_gone && pool.idle[index] != nullptr) {
    FreeBlock* first = pool.idle[index];
    pool.idle[index] = first->next;
    pool.idle_bytes -= size;
    block = first;
  } else {
    block = system_allocate(size);
  }
  ++blocks_in_use;
  return block;
}

void pool_deallocate(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  --blocks_in_use;
  const std::size_t index = class_of(bytes), size = size_of_class(index);
  if (!kKeepBlocks || pool_is_gone || pool.idle_bytes + size > kIdleLimit) return system_free(block);
  pool.idle[index] = new (block) FreeBlock{pool.idle[index]};
  pool.idle_bytes += size;
}

}  // namespace detail

std::ptrdiff_t pool_blocks_in_use() noexcept { return blocks_in_use; }

}  // namespace tapegrad
