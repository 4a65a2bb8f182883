#include "low_rank.hpp"

#include <cmath>

#include "../engine/array/internal/error.hpp"
#include "../engine/kernels/gemm.hpp"
#include "../engine/ops/ops.hpp"
#include "linear.hpp"

namespace tapegrad {

template <class T> Tensor<T> LowRank<T>::operator()(const Tensor<T>& x) const {
  return linear(linear(x, A), B) * scale();
}

template <class T>
void detail::add_low_rank(Linear<T>& layer, std::size_t rank, double alpha, Generator& generator, bool change) {
  if (!change) {
    detail::require(rank > 0, "add_low_rank", "expected a rank of at least 1, got 0");
    detail::require(std::isfinite(alpha), "add_low_rank", "expected a finite alpha, got ", alpha);
    detail::require(layer.weight.dimension() == 2, "add_low_rank", "expected weights (out_features, in_features), got ",
                    layer.weight);
    detail::require_usage(!layer.low_rank, "add_low_rank", "expected layers without a low-rank update, got one on ",
                          layer.weight, "; call merge_low_rank first");
    return;
  }
  const std::size_t out = layer.weight.shape()[0], in = layer.weight.shape()[1];
  const double bound = 1 / std::sqrt(static_cast<double>(in));  // kaiming_uniform_(a=√5), as in the authors' code
  layer.low_rank = LowRank<T>{.A = Parameter<T>(uniform<T>({rank, in}, -bound, bound, generator)),
                              .B = Parameter<T>(Array<T>(Shape{out, rank}, T(0))),
                              .alpha = alpha};
}

template <class T> void detail::merge_low_rank(Linear<T>& layer, bool change) {
  if (!layer.low_rank) return;
  detail::require_usage(!layer.weight.is_in_bfloat16(), "merge_low_rank", "expected weights of float or double, got ",
                        layer.weight,
                        " held in bfloat16; merge before tg::hold_in_bfloat16, or load the weights again");
  const Array<T>&a = layer.low_rank->A.value(), &b = layer.low_rank->B.value();
  const Shape& weight = layer.weight.shape();
  detail::require(weight.size() == 2 && a.dimension() == 2 && a.shape()[1] == weight[1] &&
                      b.shape() == Shape{weight[0], a.shape()[0]},
                  "merge_low_rank",
                  "expected lora_A (rank, in_features) and lora_B (out_features, rank) for a weight "
                  "(out_features, in_features), got ",
                  layer.low_rank->A, " and ", layer.low_rank->B, " for ", layer.weight);
  if (!change) return;
  const std::size_t rank = a.shape()[0], in = a.shape()[1], out = b.shape()[0];
  detail::gemm<T>({b.data(), out, rank}, {a.data(), rank, in}, {layer.weight.mutable_value().data(), out, in},
                  layer.low_rank->scale(), 1);
  layer.low_rank.reset();
}

#define INSTANTIATE(T)                                                                          \
  template struct LowRank<T>;                                                                   \
  template void detail::add_low_rank(Linear<T>&, std::size_t, double, Generator&, bool change); \
  template void detail::merge_low_rank(Linear<T>&, bool change);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace tapegrad
