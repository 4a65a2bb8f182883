// Times the communication of two processes without training:
//
//     mpirun -n 2 --bind-to none build/release/tests/benchmark/parallel_latency
//
// Rank 0 prints the seconds for the sum of one number, and of 4 MB, a bucket of gradients. Both are medians.
#include <tapegrad/mpi.hpp>
#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <cstdio>

#include "workloads.hpp"

namespace tg = tapegrad;

int main(int argc, char** argv) {
  const tg::mpi::Session session(argc, argv);
  const tg::mpi::Group world;
  const double of_one = benchmark::median_milliseconds(2000, [&] { world.sum(1.0); });
  tg::Array<float> bucket(tg::Shape{std::size_t{1} << 20}, 1.0f);
  const double of_bucket = benchmark::median_milliseconds(200, [&] { bucket = world.sum(std::move(bucket)); });
  if (world.rank() == 0) std::printf("%.9f %.9f\n", of_one / 1000, of_bucket / 1000);
}
