/// Mends one fault of xtensor up to 0.25: a lazy reduction with keep_dims gives wrong numbers where it broadcasts, as
/// in `p * (dp - xt::sum(dp * p, {1}, xt::keep_dims))`, because its stepper moves along the axes that were reduced.
/// Users derive gradients by hand in just this form and hold them against the tape's. (The library itself uses no
/// reductions of xtensor's.)
#pragma once

#include <type_traits>

#if !__has_include(<xtensor/containers/xarray.hpp>)
#include <xtensor/xreducer.hpp>

namespace tapegrad::detail {

/// xtensor's stepper, but along an axis of extent 1 there is nowhere to step.
template <class F, class E, class Axes, class Options>
class KeepDimsStepper : public xt::xreducer_stepper<F, E, Axes, Options> {
  using Base = xt::xreducer_stepper<F, E, Axes, Options>;
  using Reducer = typename Base::xreducer_type;

 public:
  using size_type = typename Base::size_type;

  KeepDimsStepper(const Reducer& reducer, size_type offset)
      : Base(reducer, offset), reducer_(&reducer), offset_(offset) {}
  KeepDimsStepper(const Reducer& reducer, size_type offset, bool end, xt::layout_type layout)
      : Base(reducer, offset, end, layout), reducer_(&reducer), offset_(offset) {}

  void step(size_type axis) {
    if (steps(axis)) Base::step(axis);
  }
  void step(size_type axis, size_type count) {
    if (steps(axis)) Base::step(axis, count);
  }
  void step_back(size_type axis) {
    if (steps(axis)) Base::step_back(axis);
  }
  void step_back(size_type axis, size_type count) {
    if (steps(axis)) Base::step_back(axis, count);
  }

 private:
  bool steps(size_type axis) const { return axis >= offset_ && reducer_->shape()[axis - offset_] != 1; }

  const Reducer* reducer_;
  size_type offset_;
};

}  // namespace tapegrad::detail

/// Lets reducers with keep_dims, and no others, step by the class above.
template <class F, class E, class Axes, class Options>
requires(Options::keep_dims::value) struct xt::xiterable_inner_types<xt::xreducer<F, E, Axes, Options>> {
  using inner_shape_type = typename xt::xreducer_shape_type<typename std::decay_t<E>::shape_type, std::decay_t<Axes>,
                                                            typename Options::keep_dims>::type;
  using const_stepper = tapegrad::detail::KeepDimsStepper<F, E, Axes, Options>;
  using stepper = const_stepper;
};

#endif
