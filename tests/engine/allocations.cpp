// Counts the allocations of training steps: after the first ones there are none. This is a separate program because it
// replaces malloc for all threads and libraries; operator new uses it as well. OpenBLAS's allocations, for products of
// some small sizes, are not counted.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <tapegrad/tapegrad.hpp>

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <limits>
#include <string_view>

namespace {

std::atomic<bool> counting{false};
std::atomic<std::size_t> allocations{0};

void count(const void* caller) {
  if (!counting.load(std::memory_order_relaxed)) return;
  Dl_info library;
  const bool known = dladdr(caller, &library) != 0 && library.dli_fname != nullptr;
  if (!known || std::string_view(library.dli_fname).find("blas") == std::string_view::npos) ++allocations;
}

}  // namespace

// The C library's own functions, under the names provided for replacements.
extern "C" {
void* __libc_malloc(std::size_t) noexcept;
void* __libc_calloc(std::size_t, std::size_t) noexcept;
void* __libc_realloc(void*, std::size_t) noexcept;
void* __libc_memalign(std::size_t, std::size_t) noexcept;

void* malloc(std::size_t size) noexcept {
  count(__builtin_return_address(0));
  return __libc_malloc(size);
}
void* calloc(std::size_t items, std::size_t size) noexcept {
  count(__builtin_return_address(0));
  return __libc_calloc(items, size);
}
void* realloc(void* block, std::size_t size) noexcept {
  count(__builtin_return_address(0));
  return __libc_realloc(block, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** block, std::size_t alignment, std::size_t size) noexcept {
  count(__builtin_return_address(0));
  *block = __libc_memalign(alignment, size);
  return *block != nullptr ? 0 : ENOMEM;
}
}

namespace {

namespace tg = tapegrad;

struct Classifier {
  tg::Embedding<> embedding{26, 32};
  tg::MultiHeadAttention<> attention{32, 4};
  tg::Dropout dropout{0.1};
  tg::Linear<> head{32, 3};
  TAPEGRAD_FIELDS(embedding, attention, dropout, head)

  tg::Tensor<float> loss(const tg::IntArray& ids, const tg::IntArray& labels) const {
    return tg::cross_entropy(head(dropout(tg::mean(attention(embedding(ids)), {1}))), labels);
  }
};

// A transformer block's operations and attention; the model predicts the ids themselves.
struct LanguageModel {
  tg::Embedding<> embedding{26, 32};
  tg::LayerNorm<> before_attention{32}, before_widening{32};
  tg::MultiHeadAttention<> attention{32, 4, {.dropout = 0.1}};
  tg::Linear<> widen{32, 64}, narrow{64, 32}, head{32, 26};
  TAPEGRAD_FIELDS(embedding, before_attention, before_widening, attention, widen, narrow, head)

  tg::Tensor<float> loss(const tg::IntArray& ids, const tg::IntArray&) const {
    auto x = embedding(ids);
    x = x + attention(before_attention(x), tg::AttentionMask::causal());
    x = x + narrow(tg::gelu(widen(before_widening(x))));
    return tg::cross_entropy(head(x), ids);
  }
};

// The fewest allocations in four steps in a row, of 40 steps. On a loaded machine a thread may get its first work, and
// memory for it, in a later step than the second.
template <class Model> std::size_t allocations_of_four_steps(std::size_t batch, std::size_t length) {
  Model model;
  tg::AdamW<float> optimizer(tg::parameters(model), {.lr = 0.01});
  tg::IntArray ids({batch, length}, 0), labels({batch}, 1);
  for (std::size_t i = 0; i < ids.size(); ++i) ids.data()[i] = static_cast<std::int64_t>(i * 7 % 26);
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (int step = 0; step < 40 && fewest > 0; ++step) {
    if (step % 4 == 0) allocations = 0;
    counting = true;
    {
      tg::Tape tape;
      optimizer.zero_grad();
      model.loss(ids, labels).backward();
      optimizer.step();
    }
    counting = false;
    if (step % 4 == 3) fewest = std::min(fewest, allocations.load());
  }
  return fewest;
}

}  // namespace

TEST_CASE("The counter sees aligned and unaligned operator new, and the pool's requests") {
  allocations = 0;
  counting = true;
  delete new int;
  tg::PoolAllocator<char> pool;
  constexpr std::size_t kNobodyAskedForBefore = 200001;  // too small for the pool to map it
  pool.deallocate(pool.allocate(kNobodyAskedForBefore), kNobodyAskedForBefore);
  counting = false;
  CHECK(allocations >= 2);
}

TEST_CASE("A steady training step allocates no system memory") {
  CHECK(allocations_of_four_steps<Classifier>(2, 5) == 0);
  CHECK(allocations_of_four_steps<Classifier>(16, 40) == 0);
  CHECK(allocations_of_four_steps<LanguageModel>(1, 4) == 0);
  CHECK(allocations_of_four_steps<LanguageModel>(16, 40) == 0);
}

TEST_CASE_TEMPLATE("An optimizer's step allocates no system memory after the first step", Optimizer, tg::SGD<float>,
                   tg::Adam<float>, tg::AdamW<float>, tg::Muon<float>) {
  typename Optimizer::Options options;
  if constexpr (requires { options.momentum; }) options.momentum = 0.9;
  tg::Linear<> model(120, 120, {.bias = false});
  Optimizer optimizer(tg::parameters(model), options);
  for (const auto& parameter : tg::parameters(model)) parameter->set_grad(parameter->value());
  optimizer.step();
  allocations = 0;
  counting = true;
  for (int step = 0; step < 3; ++step) optimizer.step();
  counting = false;
  CHECK(allocations == 0);
}
