// Times the communication of two processes without training:
//
//     mpirun -n 2 --bind-to none build/release/tests/benchmark/parallel_latency
//
// Rank 0 prints the seconds for the sum of one number, and of 4 MB, a bucket of gradients. Both are medians.
#include <tapegrad/mpi.hpp>
#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <cstdio>
#include <vector>

#include "workloads.hpp"

namespace tg = tapegrad;

namespace {

template <class Work> double median_seconds(std::size_t rounds, Work work) {
  std::vector<double> times;
  for (std::size_t i = 0; i < rounds; ++i) times.push_back(benchmark::milliseconds(work));
  return benchmark::median(times) / 1000;
}

}  // namespace

int main(int argc, char** argv) {
  const tg::mpi::Session session(argc, argv);
  const tg::mpi::Group world;
  const double of_one = median_seconds(2000, [&] { world.sum(1.0); });
  tg::Array<float> bucket(tg::Shape{std::size_t{1} << 20}, 1.0f);
  const double of_bucket = median_seconds(200, [&] { bucket = world.sum(std::move(bucket)); });
  if (world.rank() == 0) std::printf("%.9f %.9f\n", of_one, of_bucket);
}
