/// A small model, its data and each rank's uneven part of them, shared by all tests of several ranks.
#pragma once

#include <tapegrad/mpi.hpp>
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <xtensor/xmath.hpp>
#include <xtensor/xview.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../support/close.hpp"

namespace tg = tapegrad;
using doctest::Contains;
using tg::mpi::GradientAverage;
using tg::mpi::Group;

/// The sizes of the library's nonblocking sums over the ranks, in their order. Callers clear the list.
std::vector<std::size_t>& started_sums();

/// True if MPI is initialized.
bool mpi_has_begun();

/// A small number, different on each rank, and the mean of twice these numbers.
inline double of_rank(const Group& world) { return 1.0 + static_cast<double>(world.rank()); }
inline double mean_of_doubles(const Group& world) { return 1.0 + static_cast<double>(world.size()); }

/// Two parameters, of which a has the gradient 2 factor after a sweep.
template <class T> struct Two {
  tg::Parameter<T> a{tg::Array<T>{1, 2, 3}}, b{tg::Array<T>{4, 5}};
  TAPEGRAD_FIELDS(a, b)

  void sweep(T factor = 1) {
    const tg::Tape tape;
    (tg::sum(a * T(2)) * factor).backward();
  }
};

/// A model with a layer used twice and an unused one.
template <class T> struct Net {
  tg::Embedding<T> embedding{12, 8};
  tg::LayerNorm<T> norm{8};
  tg::Linear<T> twice{8, 8}, head{8, 3}, unused{8, 3};
  TAPEGRAD_FIELDS(embedding, norm, twice, head, unused)

  tg::Tensor<T> operator()(const tg::IntArray& ids) const {
    return head(twice(tg::gelu(twice(norm(tg::mean(embedding(ids), {1}))))));
  }
};

/// The same model on all ranks.
template <class T> Net<T> make_net(std::uint64_t seed = 1) {
  tg::manual_seed(seed);
  return {};
}

struct Batch {
  tg::IntArray ids, labels;  // (N, 5), (N)
  double rows() const { return static_cast<double>(labels.size()); }
};

/// 17 rows, the same on all ranks.
inline Batch whole_batch(std::uint64_t seed = 2) {
  tg::Generator generator(seed);
  const auto below = [&](const tg::Shape& shape, double bound) {
    return tg::IntArray(xt::floor(tg::uniform<double>(shape, 0, bound, generator)));
  };
  const tg::IntArray ids = below({17, 5}, 12);
  return {ids, below({17}, 3)};
}

/// A rank's rows of the batch: 4 and 13 of 2 ranks; 1, 3, 5 and 8 of 4 ranks.
inline Batch part_of(const Batch& whole, const Group& world) {
  const auto begin_of = [&](std::size_t rank) { return 17 * rank * rank / (world.size() * world.size()); };
  const std::size_t begin = begin_of(world.rank()), end = begin_of(world.rank() + 1);
  return {xt::view(whole.ids, xt::range(begin, end)), xt::view(whole.labels, xt::range(begin, end))};
}

/// A way of averaging a step's gradients: after the backward pass, or during it.
struct Way {
  bool while_sweeping;
  std::size_t bucket_bytes;

  /// Averages the gradients computed by `sweep`.
  template <class T, class Sweep>
  void average(const Group& world, const tg::Parameters<T>& parameters, double weight, const Sweep& sweep) const {
    if (!while_sweeping) {
      sweep();
      return world.average_gradients(parameters, {.weight = weight, .bucket_bytes = bucket_bytes});
    }
    GradientAverage<T> average(world, parameters, bucket_bytes);
    average.begin(weight);
    sweep();
    average.finish();
  }
};

/// With a single bucket, several buckets, and one per parameter; each after and during the backward pass.
template <class Body> void for_each_way(const Body& body) {
  for (const bool while_sweeping : {false, true})
    for (const std::size_t bucket_bytes : {std::size_t{4} << 20, std::size_t{300}, std::size_t{1}}) {
      CAPTURE(while_sweeping);
      CAPTURE(bucket_bytes);
      body(Way{while_sweeping, bucket_bytes});
    }
}

/// Expects equal gradients, up to a tolerance, and the same parameters without one.
template <class M> void check_gradients(const M& model, const M& expected, double tolerance) {
  const auto of_model = tg::named_parameters(model), of_expected = tg::named_parameters(expected);
  for (std::size_t i = 0; i < of_model.size(); ++i) {
    CAPTURE(of_model[i].first);
    CHECK(of_model[i].second->has_grad() == of_expected[i].second->has_grad());
    check_close(of_model[i].second->grad(), of_expected[i].second->grad(), tolerance);
  }
}

/// Expects the same bits of each parameter's value.
template <class M> void check_same_values(const M& model, const M& expected) {
  const auto of_model = tg::named_parameters(model), of_expected = tg::named_parameters(expected);
  for (std::size_t i = 0; i < of_model.size(); ++i) {
    CAPTURE(of_model[i].first);
    CHECK(of_model[i].second->value() == of_expected[i].second->value());
  }
}

/// Expects the same bits of each gradient on all ranks.
template <class M> void check_gradients_alike(const Group& world, const M& model) {
  M gradients = model;
  const auto from = tg::named_parameters(model);
  const auto to = tg::parameters(gradients);
  for (std::size_t i = 0; i < to.size(); ++i) to[i]->set_value(from[i].second->grad());
  CHECK_NOTHROW(world.check_equal(gradients));
}
