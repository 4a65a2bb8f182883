#include "low_rank.hpp"

#include <cmath>

#include "../engine/array/internal/error.hpp"
#include "../engine/kernels/gemm.hpp"

namespace tapegrad::detail {

template <class T>
void add_low_rank(Linear<T>& layer, std::size_t rank, double alpha, Generator& generator, bool change) {
  if (!change) {
    require(rank > 0, "add_low_rank", "expected a rank of at least 1, given 0");
    require(std::isfinite(alpha), "add_low_rank", "expected a finite alpha, given ", alpha);
    require_usage(!layer.lora_A, "add_low_rank",
                  "expected layers without a low-rank update, given one that has it for ", layer.weight);
    return;
  }
  const std::size_t out = layer.weight.shape()[0], in = layer.weight.shape()[1];
  const double bound = 1 / std::sqrt(static_cast<double>(in));  // He et al.'s with a = sqrt 5, as in the paper's code
  LowRankFactor<T> a{Parameter<T>(uniform<T>({rank, in}, -bound, bound, generator))};
  LowRankFactor<T> b{Parameter<T>(Array<T>(Shape{out, rank}, T(0)))};
  layer.lora_A = std::move(a);
  layer.lora_B = std::move(b);
  layer.lora_alpha = alpha;
}

template <class T> void merge_low_rank(Linear<T>& layer, bool change) {
  if (!layer.lora_A) return;
  for (const Parameter<T>* part : {&layer.weight, &layer.lora_A->weight, &layer.lora_B->weight})
    require_usage(!part->is_in_bfloat16(), "merge_low_rank",
                  "expected weights and updates that can be added, given one held in bfloat16: ", *part);
  if (!change) return;
  const Array<T>&a = layer.lora_A->weight.value(), &b = layer.lora_B->weight.value();
  const std::size_t rank = a.shape()[0], in = a.shape()[1], out = b.shape()[0];
  gemm<T>({b.data(), out, rank}, {a.data(), rank, in}, {layer.weight.mutable_value().data(), out, in},
          layer.low_rank_scale(), 1);
  layer.lora_A.reset();
  layer.lora_B.reset();
  layer.lora_alpha.reset();
}

#define INSTANTIATE(T)                                                                  \
  template void add_low_rank(Linear<T>&, std::size_t, double, Generator&, bool change); \
  template void merge_low_rank(Linear<T>&, bool change);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad::detail
