// Times the matrix products of a training step at the rate that OpenBLAS reaches with all its threads on products of
// the step's size: what is left of a step when everything else costs nothing.
#include <cblas.h>

#include "workloads.hpp"

using benchmark::Workload;

namespace {

// The three products of a linear layer: y = x W^T, dx = dy W, dW = dy^T x.
double run(const Workload& w) {
  const auto rows = static_cast<int>(w.rows()), width = static_cast<int>(w.width);
  std::vector<float> x(w.rows() * w.width, 0.5f), y(x.size()), weight(w.width * w.width, 1.0f / float(w.width)),
      dweight(weight.size());
  const double ms = benchmark::median_ms([&] {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, width, width, 1, x.data(), width, weight.data(), width,
                0, y.data(), width);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, width, width, 1, y.data(), width, weight.data(), width,
                0, x.data(), width);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, width, width, rows, 1, y.data(), width, x.data(), width, 0,
                dweight.data(), width);
  });
  const double flops = 3 * 2.0 * double(w.rows()) * double(w.width) * double(w.width);
  return ms * w.product_flops() / flops;
}

}  // namespace

int main(int argc, char** argv) { return benchmark::run_one(argc, argv, run); }
