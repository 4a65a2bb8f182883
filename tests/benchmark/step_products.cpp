// Times the matrix products of a training step at OpenBLAS's rate, with all its threads, on products of the step's
// size.
#include <cblas.h>

#include "workloads.hpp"

using benchmark::Workload;

namespace {

// The three products of a linear layer: y = x W^T, dx = dy W, dW = dy^T x.
benchmark::Times run(const Workload& w) {
  const auto rows = static_cast<int>(w.rows()), width = static_cast<int>(w.width);
  std::vector<float> x(w.rows() * w.width, 0.5f), y(x.size()), weight(w.width * w.width, 1.0f / float(w.width)),
      dweight(weight.size());
  const benchmark::Times times = benchmark::time_steps(w.seconds, [&] {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, width, width, 1, x.data(), width, weight.data(), width,
                0, y.data(), width);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, width, width, 1, y.data(), width, weight.data(), width,
                0, x.data(), width);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, width, width, rows, 1, y.data(), width, x.data(), width, 0,
                dweight.data(), width);
  });
  const double flops = 3 * 2.0 * double(w.rows()) * double(w.width) * double(w.width);
  const double step = w.product_flops() / flops;
  return {times.median * step, times.mean * step, times.processors * step};
}

}  // namespace

int main(int argc, char** argv) { return benchmark::run_one(argc, argv, run); }
