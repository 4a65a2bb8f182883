// An operation of one's own: sparsemax (Martins and Astudillo 2016), a softmax with exact zeros.
#include <tapegrad/tapegrad.hpp>
#include <tapegrad/testing.hpp>

#include <xtensor/xmath.hpp>
#include <xtensor/xview.hpp>

#include <algorithm>
#include <functional>
#include <vector>

#include "check.hpp"

namespace tg = tapegrad;

// Each row's projection onto the probabilities. x: (B, N) -> (B, N)
template <class T> tg::Tensor<T> sparsemax(const tg::Tensor<T>& x) {
  tg::Array<T> y = x.value();
  for (std::size_t b = 0; b < y.shape(0); ++b) {
    std::vector<T> sorted(&y(b, 0), &y(b, 0) + y.shape(1));
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    T sum = 0, threshold = 0;
    for (std::size_t k = 0; k < sorted.size(); ++k) {
      sum += sorted[k];
      if (1 + static_cast<T>(k + 1) * sorted[k] > sum) threshold = (sum - 1) / static_cast<T>(k + 1);
    }
    for (std::size_t n = 0; n < y.shape(1); ++n) y(b, n) = std::max(y(b, n) - threshold, T(0));
  }
  // Over the support S of a row, the places above 0: dx = dy - mean of dy over S; elsewhere dx = 0.
  return tg::record({"sparsemax", "y = sparsemax(x); dx = [y > 0] ⊙ (dy − mean of dy where y > 0)"}, std::move(y), {x},
                    [](const auto& dy, auto& dx, const auto& y) {
                      const tg::Array<T> support = xt::cast<T>(y > T(0));
                      const tg::Array<T> mean =
                          xt::sum(support * dy, {1}, xt::keep_dims) / xt::sum(support, {1}, xt::keep_dims);  // (B, 1)
                      dx[0] += support * (dy - mean);
                    });
}

int main() {
  tg::Parameter<double> x(tg::Array<double>{{1.0, 0.8, 0.1, -2.0}, {0.0, 3.0, 0.5, 2.7}});
  check_close(sparsemax(x).value(), tg::Array<double>{{0.6, 0.4, 0.0, 0.0}, {0.0, 0.65, 0.0, 0.35}}, 1e-12);
  const auto checked = tg::testing::gradcheck([&] { return sparsemax(x); }, {{"x", x}});
  check(checked.ok);
  check(!tg::testing::gradcheck(
             [&] {
               return tg::record("wrong", sparsemax(x).value(), {x}, [](const auto& dy, auto& dx) { dx[0] += dy; });
             },
             {{"x", x}})
             .ok);
}
