/// Compares optimizers' loops with their formulas, in all cases where a loop could take another path.
#pragma once

#include <tapegrad/engine/kernels/instruction_sets.hpp>
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <array>
#include <type_traits>
#include <vector>

#include "close.hpp"
#include "threads.hpp"

/// Uses an instruction set until the end of the scope.
struct UseInstructionSet {
  tapegrad::detail::InstructionSet before = tapegrad::detail::instruction_set();
  explicit UseInstructionSet(tapegrad::detail::InstructionSet set) { tapegrad::detail::use_instruction_set(set); }
  ~UseInstructionSet() { tapegrad::detail::use_instruction_set(before); }
  UseInstructionSet(const UseInstructionSet&) = delete;
  UseInstructionSet& operator=(const UseInstructionSet&) = delete;
};

inline constexpr std::array<std::size_t, 11> kSizes{0, 1, 2, 15, 16, 17, 63, 64, 65, 1000, 100'003};

/// A parameter's initial numbers, and the gradients of three steps.
template <class T> struct Course {
  tapegrad::Array<T> start;
  std::array<tapegrad::Array<T>, 3> gradients;

  static Course draw(std::size_t size) {
    const auto numbers = [&] { return tapegrad::uniform<T>({size}, -1, 1); };
    return {numbers(), {numbers(), numbers(), numbers()}};
  }

  /// The optimizer's result.
  template <class Optimizer> tapegrad::Array<T> stepped(const typename Optimizer::Options& options) const {
    tapegrad::Parameter<T> parameter(start);
    Optimizer optimizer({parameter}, options);
    for (const tapegrad::Array<T>& gradient : gradients) {
      parameter.set_grad(gradient);
      optimizer.step();
    }
    return parameter.value();
  }
};

/// Expects every element p to match `formula(p, g, t)` for steps t = 1, 2, 3 in double, at all sizes and on every
/// instruction set of this processor, and equal bits on any number of threads. `Formula` holds an element's state; each
/// element gets a new one, constructed from the options.
template <class Optimizer, class Formula, class T>
void check_steps(const typename Optimizer::Options& options, const std::vector<Course<T>>& courses,
                 double in_float = 2e-6, double in_double = 1e-14) {
  std::vector<tapegrad::Array<double>> expected;
  for (const Course<T>& course : courses) {
    tapegrad::Array<double> p = course.start;
    for (std::size_t i = 0; i < p.size(); ++i) {
      Formula formula{options};
      for (std::size_t t = 0; t < 3; ++t) formula(p.data()[i], course.gradients[t].data()[i], t + 1.0);
    }
    expected.push_back(p);
  }
  for (const auto set : tapegrad::detail::instruction_sets()) {
    CAPTURE(static_cast<int>(set));
    const UseInstructionSet use(set);
    std::vector<tapegrad::Array<T>> on_one;
    for (const std::size_t threads : {1, 2, 3, 7}) {
      CAPTURE(threads);
      const Threads limit(threads);
      for (std::size_t i = 0; i < courses.size(); ++i) {
        const tapegrad::Array<T> value = courses[i].template stepped<Optimizer>(options);
        check_close(value, expected[i], std::is_same_v<T, float> ? in_float : in_double);
        if (threads == 1) on_one.push_back(value);
        CHECK(value == on_one[i]);
      }
    }
  }
}

/// One course per size.
template <class T> std::vector<Course<T>> courses() {
  tapegrad::manual_seed(14);
  std::vector<Course<T>> all;
  for (const std::size_t size : kSizes) all.push_back(Course<T>::draw(size));
  return all;
}
