/// The bodies of optimizer.hpp, checks, and helpers for formulas. For the library's own sources.
#pragma once

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "../../engine/array/array.hpp"
#include "../../engine/array/internal/error.hpp"
#include "../../engine/kernels/instruction_sets.hpp"
#include "../optimizer.hpp"

namespace tapegrad {

namespace detail {

/// Throws std::invalid_argument for a negative or non-finite option.
inline void require_options(const char* optimizer, std::initializer_list<std::pair<const char*, double>> options) {
  for (const auto& [name, value] : options)
    require(value >= 0 && std::isfinite(value), optimizer, "expected a finite ", name, " of 0 or more, got ", value);
}

/// Throws std::invalid_argument naming `operation` for duplicate parameters and, unless skipped, undefined ones.
template <class T>
void require_each_once(const char* operation, const Parameters<T>& parameters, bool skip_undefined = false) {
  std::map<const void*, std::size_t> indices;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& parameter = parameters[i];
    if (skip_undefined && !parameter->defined()) continue;
    require(parameter->defined(), operation, "expected parameters with a value, got an undefined one at index ", i);
    const auto [first, is_new] = indices.try_emplace(parameter.variable(), i);
    require(is_new, operation, "expected each parameter once, got ", *parameter, " twice, at indices ", first->second,
            " and ", i);
  }
}

/// Throws std::logic_error if a parameter's model is gone, or its value or gradient was resized.
template <class T> void require_in_use(const char* optimizer, const ParameterHandle<Parameter<T>>& handle) {
  const Parameter<T>& parameter = *handle;
  require_usage(!handle.is_orphaned(), optimizer, "expected parameters of an existing model, got ", parameter,
                ", whose model was destroyed or assigned to; create a new optimizer");
  if (!parameter.has_grad()) return;
  const Variable<T>& variable = *handle.variable();
  variable.require_shape(optimizer, "parameter", variable.name.c_str(), parameter.value());
  variable.require_shape(optimizer, "gradient", variable.name.c_str(), parameter.grad());
}

/// The gradient of an element plus weight decay, if any: 0 times an infinite p would be NaN.
template <class T> T decayed(T gradient, T weight_decay, T p) {
  return weight_decay == 0 ? gradient : gradient + weight_decay * p;
}

/// Calls formula(i) for every element of a parameter, vectorized and on several threads.
template <class Formula> void for_each_element(std::size_t size, const Formula& formula) {
  parallel_vectorized(size, [=](std::size_t begin, std::size_t end) {
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
    for (std::size_t i = begin; i < end; ++i) formula(i);
  });
}

/// The sum of squares on this thread, in double, where the square of a float neither overflows nor vanishes. Uses
/// enough sums to fill the registers, since the compiler keeps the order of additions within each.
template <class T> double sum_of_squares_on_this_thread(const T* x, std::size_t n) {
  constexpr std::size_t kSums = 16;
  double sums[kSums] = {};
  const auto add = [&](std::size_t i, std::size_t sum) {
    const auto a = static_cast<double>(x[i]);
    sums[sum] += a * a;
  };
  std::size_t i = 0;
  for (; i + kSums <= n; i += kSums)
    for (std::size_t sum = 0; sum < kSums; ++sum) add(i + sum, sum);
  for (std::size_t sum = 0; i < n; ++i, ++sum) add(i, sum);
  return std::accumulate(sums, sums + kSums, 0.0);
}

/// The same on all threads.
template <class T> double sum_of_squares(const T* x, std::size_t n) {
  double sums[kMaxChunks] = {};
  parallel_vectorized(n, [&](std::size_t begin, std::size_t end, std::size_t chunk) {
    sums[chunk] = sum_of_squares_on_this_thread(x + begin, end - begin);
  });
  return std::accumulate(sums, sums + kMaxChunks, 0.0);
}

}  // namespace detail

template <class T, class Options, class State>
GroupedOptimizer<T, Options, State>::GroupedOptimizer(const char* name, Parameters<T> parameters,
                                                      const Options& options)
    : name_(name) {
  detail::require(!parameters.empty(), name_, "expected parameters, got none");
  add_group(std::move(parameters), options);
}

template <class T, class Options, class State>
void GroupedOptimizer<T, Options, State>::add_group(Parameters<T> parameters, const Options& options) {
  check_options(name_, options);
  Parameters<T> all = this->parameters();
  all.insert(all.end(), parameters.begin(), parameters.end());
  detail::require_each_once(name_, parameters);  // with indices into the caller's list
  detail::require_each_once(name_, all);
  std::vector<Member> members = members_;
  std::map<std::string, State> added;
  for (const auto& parameter : parameters) {
    std::string name = parameter->name();
    for (std::size_t n = members.size(); name.empty() || state_.contains(name) || added.contains(name); ++n)
      name = std::to_string(n);
    State& state = added.try_emplace(std::move(name), parameter->shape()).first->second;
    members.push_back({parameter, groups_.size(), &state});
  }
  groups_.push_back(options);
  state_.merge(added);  // the states keep their addresses
  members_ = std::move(members);
}

template <class T, class Options, class State>
State& GroupedOptimizer<T, Options, State>::state(const Parameter<T>& parameter) & {
  const auto* const variable = ParameterHandle(parameter).variable();
  const auto member = std::ranges::find(members_, variable, [](const auto& each) { return each.parameter.variable(); });
  detail::require(member != members_.end(), name_, "expected one of the optimizer's parameters, got ", parameter);
  return *member->state;
}

template <class T, class Options, class State> Parameters<T> GroupedOptimizer<T, Options, State>::parameters() const {
  Parameters<T> all;
  for (const Member& member : members_) all.push_back(member.parameter);
  return all;
}

template <class T, class Options, class State> void GroupedOptimizer<T, Options, State>::step() {
  for (const Options& options : groups_) check_options(name_, options);  // possibly loaded from a file
  for (const Member& member : members_) detail::require_in_use(name_, member.parameter);
  std::size_t size = 0;
  for (const Member& member : members_) {  // allocates everything first: a failure changes nothing
    if (!member.parameter->has_grad()) continue;
    member.parameter->mutable_value();
    member.state->reserve(groups_[member.group]);
    size = std::max(size, memory_size(member.parameter->shape()));
  }
  Array<T> memory(Shape{size});
  for (const Member& member : members_)
    if (member.parameter->has_grad()) update(*member.parameter, *member.state, groups_[member.group], memory.data());
}

template <class T, class Options, class State> void GroupedOptimizer<T, Options, State>::zero_grad() {
  for (const Member& member : members_) member.parameter->zero_grad();
}

template <class T, class Options, class State> double GroupedOptimizer<T, Options, State>::lr() const {
  detail::require_usage(!groups_.empty(), name_, "expected an optimizer with parameters, got a moved-from one");
  return groups_.front().lr;
}

template <class T, class Options, class State> void GroupedOptimizer<T, Options, State>::set_lr(double lr) {
  detail::require_options(name_, {{"lr", lr}});
  for (Options& options : groups_) options.lr = lr;
}

}  // namespace tapegrad
