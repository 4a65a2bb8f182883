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

// Max idle bytes of a thread: this, or its bytes in use if more. Idle and used bytes together stay within this above
// the peak in use, so a repeated training step reuses its blocks. The system would clear returned pages.
constexpr std::ptrdiff_t kIdleLimit = std::ptrdiff_t{256} << 20;

// Larger blocks are mapped: the C library would keep pages that lie between others in its heap. Idle ones are merged
// with their neighbors and cut to size, because gradients need other sizes than the activations before them.
constexpr std::ptrdiff_t kSmall = std::ptrdiff_t{1} << 18;
constexpr std::ptrdiff_t kMapped = kKeepBlocks ? kSmall : std::numeric_limits<std::ptrdiff_t>::max();
constexpr std::ptrdiff_t kPage = std::ptrdiff_t{1} << 16;  // a multiple of every processor's
constexpr std::align_val_t kAlignment{64};

// Larger blocks use huge pages, which one thread clears four times as fast and reads at 30 GB/s instead of 18.
constexpr std::ptrdiff_t kHugePage = std::ptrdiff_t{1} << 21;

// Smaller blocks have sizes that are multiples of 64 bytes up to 512, then eighths of a doubling, which wastes at most
// an eighth.
constexpr std::size_t class_of(std::ptrdiff_t bytes) {
  const auto last_unit = static_cast<std::size_t>((std::max<std::ptrdiff_t>(bytes, 1) - 1) / 64);
  const auto shift = std::max<std::size_t>(std::bit_width(last_unit), 4) - 4;
  return 8 * shift + (last_unit >> shift);
}

constexpr std::ptrdiff_t size_of_class(std::size_t index) {
  const std::size_t shift = std::max<std::size_t>(index / 8, 1) - 1;
  return static_cast<std::ptrdiff_t>(64 * (index - 8 * shift + 1) << shift);
}

constexpr std::size_t kClasses = class_of(kSmall) + 1;

static_assert(size_of_class(class_of(0)) == 64 && size_of_class(class_of(512)) == 512);
static_assert(size_of_class(class_of(513)) == 576 && size_of_class(class_of(577)) == 640);
static_assert(size_of_class(class_of(1024)) == 1024 && size_of_class(class_of(1025)) == 1152);

constexpr std::ptrdiff_t in_pages(std::ptrdiff_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// The size of the block for a request.
std::ptrdiff_t block_size(std::size_t requested) {
  const auto bytes = static_cast<std::ptrdiff_t>(requested);
  if (!kKeepBlocks) return bytes;
  return bytes > kMapped ? in_pages(bytes) : size_of_class(class_of(bytes));
}

void* system_allocate(std::ptrdiff_t size) {
  const auto bytes = static_cast<std::size_t>(size);
  if (size <= kMapped) return ::operator new(bytes, kAlignment);
  void* const block = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) throw std::bad_alloc();
  if (size >= kHugePage) ::madvise(block, bytes, MADV_HUGEPAGE);  // on failure the pages are small
  return block;
}

void unmap(void* block, std::ptrdiff_t size) noexcept { ::munmap(block, static_cast<std::size_t>(size)); }

void system_free(void* block, std::ptrdiff_t size) noexcept {
  size > kMapped ? unmap(block, size) : ::operator delete(block, kAlignment);
}

// The idle mapped blocks in the order of their addresses. Each begins with its link, and no two are adjacent.
class MappedBlocks {
 public:
  bool empty() const { return first_ == nullptr; }

  void add(void* block, std::ptrdiff_t size) {
    Link** at = &first_;
    while (*at != nullptr && end_of(*at) < block) at = &(*at)->next;
    if (*at != nullptr && end_of(*at) == block)
      (*at)->size += size;
    else
      *at = new (block) Link{*at, size};
    Link* const merged = *at;
    if (merged->next == nullptr || end_of(merged) != merged->next) return;
    merged->size += merged->next->size;
    merged->next = merged->next->next;
  }

  // Memory of the smallest block with so many bytes, or null if there is none.
  void* take(std::ptrdiff_t size) {
    Link** best = nullptr;
    for (Link** at = &first_; *at != nullptr; at = &(*at)->next)
      if ((*at)->size >= size && (best == nullptr || (*at)->size < (*best)->size)) best = at;
    return best == nullptr ? nullptr : cut(best, size);
  }

  // Returns up to so many bytes to the system, and their number to the caller.
  std::ptrdiff_t free(std::ptrdiff_t size) {
    size = std::min(size, first_->size);
    unmap(cut(&first_, size), size);
    return size;
  }

 private:
  struct Link {
    Link* next;
    std::ptrdiff_t size;
  };

  static void* end_of(Link* link) { return reinterpret_cast<std::byte*>(link) + link->size; }

  // The end of a block, so that its link stays.
  static void* cut(Link** at, std::ptrdiff_t size) {
    Link* const block = *at;
    block->size -= size;
    if (block->size == 0) *at = block->next;
    return end_of(block);
  }

  Link* first_ = nullptr;
};

// Static objects may free blocks after this thread's pool is destroyed: these blocks return to the system.
thread_local bool pool_is_destroyed = false;
thread_local std::ptrdiff_t blocks_in_use = 0;

struct Pool {
  struct FreeBlock {
    FreeBlock* next;
  };
  std::array<FreeBlock*, kClasses> idle{};
  MappedBlocks mapped;
  std::ptrdiff_t idle_bytes = 0, used_bytes = 0, max_used = 0;  // this thread's allocations less its deallocations

  ~Pool() {
    trim(0);
    pool_is_destroyed = true;
  }

  void* allocate(std::ptrdiff_t size) {
    const std::ptrdiff_t used = used_bytes + size;
    void* block = size > kMapped ? mapped.take(size) : take(class_of(size));
    if (block != nullptr) {
      idle_bytes -= size;
    } else {
      trim(std::max(max_used, used) + kIdleLimit - used);
      block = system_allocate(size);
    }
    used_bytes = used;
    max_used = std::max(max_used, used);
    return block;
  }

  void deallocate(void* block, std::ptrdiff_t size) {
    used_bytes -= size;
    if (idle_bytes + size > std::max(kIdleLimit, used_bytes)) return system_free(block, size);
    idle_bytes += size;
    if (size > kMapped) return mapped.add(block, size);
    FreeBlock*& first = idle[class_of(size)];
    first = new (block) FreeBlock{first};
  }

  // An idle block of a class, or null if there is none.
  void* take(std::size_t index) {
    FreeBlock* const block = idle[index];
    if (block != nullptr) idle[index] = block->next;
    return block;
  }

  // Frees idle blocks, the largest first, until at most `limit` bytes are idle.
  void trim(std::ptrdiff_t limit) {
    while (idle_bytes > limit && !mapped.empty()) idle_bytes -= mapped.free(in_pages(idle_bytes - limit));
    for (std::size_t index = kClasses; index-- > 0;)
      for (; idle_bytes > limit && idle[index] != nullptr; idle_bytes -= size_of_class(index))
        system_free(take(index), size_of_class(index));
  }
};

thread_local Pool pool;

bool keeps_blocks() { return kKeepBlocks && !pool_is_destroyed; }

}  // namespace

namespace detail {

void* pool_allocate(std::size_t bytes) {
  const std::ptrdiff_t size = block_size(bytes);
  void* const block = keeps_blocks() ? pool.allocate(size) : system_allocate(size);
  ++blocks_in_use;
  return block;
}

void pool_deallocate(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  --blocks_in_use;
  const std::ptrdiff_t size = block_size(bytes);
  keeps_blocks() ? pool.deallocate(block, size) : system_free(block, size);
}

void pool_release_idle() noexcept {
  if (!pool_is_destroyed) pool.trim(0);
}

}  // namespace detail

std::ptrdiff_t pool_blocks_in_use() noexcept { return blocks_in_use; }

}  // namespace tapegrad
