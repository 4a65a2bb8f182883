// Prints the rates of training steps' matrix products, on one thread and by its own clock: for the CBLAS linked or
// given by LD_PRELOAD, or for oneDNN if compiled with ONEDNN.
#ifdef ONEDNN
#include <dnnl.h>
#else
#include <cblas.h>
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

namespace {

// c = a b, (m, k) times (k, n); a or b may be stored as its transpose.
struct Product {
  const char* what;
  int m, n, k;
  bool a_transposed, b_transposed;
};

// The shares of one of two threads.
constexpr Product kProducts[] = {
    {"GPT of characters: a projection", 384, 128, 128, false, true},
    {"  fc1", 384, 512, 128, false, true},
    {"  its input's gradient", 384, 128, 512, false, false},
    {"  its weight's gradient", 512, 128, 384, true, false},
    {"  attention's scores", 64, 64, 32, false, true},
    {"  the same, the keys copied", 64, 64, 32, false, false},
    {"  attention's weights by values", 64, 32, 64, false, false},
    {"GPT-2: a projection", 128, 768, 768, false, true},
    {"  the head", 128, 50257, 768, false, true},
    {"  its input's gradient", 128, 768, 50257, false, false},
    {"  its weight's gradient", 25128, 768, 256, true, false},
    {"language model: a projection", 1600, 512, 512, false, true},
    {"  its weight's gradient", 512, 512, 1600, true, false},
    {"  attention's scores, one head", 64, 100, 512, false, true},
    {"  weights by values, one head", 64, 512, 100, false, false},
};

void multiply(const Product& p, const float* a, const float* b, float* c) {
  const int lda = p.a_transposed ? p.m : p.k, ldb = p.b_transposed ? p.k : p.n;
#ifdef ONEDNN
  dnnl_sgemm(p.a_transposed ? 'T' : 'N', p.b_transposed ? 'T' : 'N', p.m, p.n, p.k, 1, a, lda, b, ldb, 0, c, p.n);
#else
  cblas_sgemm(CblasRowMajor, p.a_transposed ? CblasTrans : CblasNoTrans, p.b_transposed ? CblasTrans : CblasNoTrans,
              p.m, p.n, p.k, 1, a, lda, b, ldb, 0, c, p.n);
#endif
}

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

// The best rate within half a second.
double gflops(const Product& p) {
  std::vector<float> a(std::size_t(p.m) * std::size_t(p.k), 0.5F), b(std::size_t(p.k) * std::size_t(p.n), 0.25F),
      c(std::size_t(p.m) * std::size_t(p.n));
  const double flops = 2.0 * p.m * p.n * p.k;
  const int repeats = std::max(1, int(2e7 / flops));
  double best = 1e9;
  for (double total = 0; total < 0.5;) {
    const double start = thread_seconds();
    for (int i = 0; i < repeats; ++i) multiply(p, a.data(), b.data(), c.data());
    const double seconds = thread_seconds() - start;
    best = std::min(best, seconds / repeats);
    total += seconds;
  }
  return flops / best / 1e9;
}

}  // namespace

int main() {
  for (const char* variable : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}) {
    const char* const value = std::getenv(variable);
    if (value == nullptr || value[0] != '1')
      return std::fprintf(stderr, "expected OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1\n"), 1;
  }
  std::printf("%-34s %6s %6s %6s  GFLOP/s\n", "", "m", "n", "k");
  for (const Product& p : kProducts) std::printf("%-34s %6d %6d %6d  %7.1f\n", p.what, p.m, p.n, p.k, gflops(p));
}
