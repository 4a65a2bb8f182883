#include "recompute.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../engine/array/internal/error.hpp"
#include "../engine/array/internal/key_scope.hpp"
#include "../engine/tape/internal/sweep.hpp"
#include "internal/layer_call.hpp"

namespace tapegrad::detail {
namespace {

constexpr Operation kRecompute("recompute", "y = f(x, θ); dx = (∂f/∂x)ᵀ dy; dθ = (∂f/∂θ)ᵀ dy");

// A parameter read by f, and its value at that time.
template <class T> struct ParameterRead {
  std::shared_ptr<Variable<T>> variable{};  // null for an input that is not a parameter
  Value<T> value{};
};

// Until the end of its scope, restores the values read by f in parameters changed since.
template <class T> class RestoredValues {
 public:
  explicit RestoredValues(const std::vector<ParameterRead<T>>& reads) {
    for (const ParameterRead<T>& read : reads)
      if (read.variable && read.variable->value != read.value) changed_.push_back(read);
    exchange();
  }
  ~RestoredValues() { exchange(); }
  RestoredValues(const RestoredValues&) = delete;
  RestoredValues& operator=(const RestoredValues&) = delete;

 private:
  void exchange() noexcept {
    for (auto& [variable, value] : changed_) std::swap(variable->value, value);
  }

  std::vector<ParameterRead<T>> changed_;
};

// The leaves that a node depends on.
template <class T> std::vector<std::int32_t> leaves_of(const Nodes<T>& nodes, std::int32_t start) {
  std::vector<bool> reached(static_cast<std::size_t>(start) + 1, false);
  reached.back() = true;
  std::vector<std::int32_t> leaves;
  for (std::int32_t i = start; i >= 0; --i) {
    if (!reached[static_cast<std::size_t>(i)]) continue;
    if (nodes[i].is_leaf()) leaves.push_back(i);
    for (const std::int32_t input : nodes[i].inputs)
      if (input >= 0) reached[static_cast<std::size_t>(input)] = true;
  }
  return {leaves.rbegin(), leaves.rend()};
}

// A checksum of the bits, to detect a function with different results when called again.
template <class T> std::uint64_t checksum(const Array<T>& x) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  std::uint64_t sum = 0, weight = 1;
  for (const T element : x) {
    sum += weight * std::bit_cast<Bits>(element);
    weight += 2;
  }
  return sum;
}

}  // namespace

/// The rule of an operation that computes y = f(x, θ) for parameters θ. Each time, f runs on a tape of its own: the
/// first run finds the parameters, the second is propagated through.
template <class T> class Recomputation final : public Rule<T> {
 public:
  using F = std::function<Tensor<T>(const Tensor<T>&)>;

  Recomputation(F f, const Tensor<T>& x, const TapeOptions& outer)
      : f_(std::move(f)), x_(x), is_recorded_(x.origin_.node >= 0), options_{.detect_anomaly = outer.detect_anomaly} {
    if (!is_recorded_) return;
    x_ = x.detach();
    if (std::string name = x.name(); !name.empty()) x_.set_name(std::move(name));
  }

  static Tensor<T> record(F f, const Tensor<T>& x, Recording& recording) {
    Nodes<T>& nodes = recording.of<T>();
    if (x.origin_.node >= 0) (void)nodes.find(kRecompute.name, x);  // throws if x belongs to another tape
    const auto rule = make_pooled<Recomputation>(std::move(f), x, recording.options());
    auto [y, depends_on, name] = rule->first_call(x);
    if (depends_on.empty()) return y;

    std::vector<Input<T>> inputs(depends_on.begin(), depends_on.end());
    Edges edges;
    for (const Tensor<T>& input : depends_on) edges.push_back(nodes.find(kRecompute.name, input));
    nodes.append(kRecompute, y, inputs, std::move(edges), rule, {});
    if (!name.empty()) y.set_name(std::move(name));
    return y;
  }

  void operator()(const Array<T>& dy, Gradients<T>& dx) const override {
    const Tape tape(options_);
    Nodes<T>& nodes = tape.recording()->template of<T>();
    const Tensor<T> x = argument(nodes), y = repeat_call(x);
    const bool is_recorded = y.origin_.tape == tape.recording()->number();
    const bool is_x = is_recorded && y.origin_.node == x.origin_.node;
    require_usage(y.shape() == dy.shape() && !is_x, kRecompute.name,
                  "expected a function with the same result in each call, got ", dy.shape(),
                  " in the first call and then ", [&] { return is_x ? "x itself" : to_string(y.shape()); });
    require_usage(checksum(y.value()) == checksum_, kRecompute.name,
                  "expected a function with the same result in each call, got different numbers in the repeated call; ",
                  "until the backward pass, change only parameters that it reads directly");
    if (!is_recorded) return;  // all its dependencies were frozen since
    require_reads_again(nodes, y.origin_.node);

    Sweep<T> sweep(*tape.recording(), y.origin_.node, make_value<T>(dy), RetainGraph::no);
    std::vector<std::pair<std::int32_t, Gradient<T>>> leaves;
    for (std::size_t n = 0; n < dx.size(); ++n) {
      if (!dx[n].needs_grad()) continue;
      const Tensor<T> input = reads_[n].variable ? Tensor<T>(reads_[n].variable) : x;
      const std::int32_t leaf = nodes.find(kRecompute.name, input);
      if (leaf >= 0 && leaf < y.origin_.node) leaves.emplace_back(leaf, dx[n]);  // read again, and not frozen since
    }
    for (const auto& [leaf, gradient] : leaves) sweep.load(leaf, gradient);
    sweep.run(true);
    for (const auto& [leaf, gradient] : leaves) sweep.store(leaf, gradient);
  }

  // Does not count the values of parameters, which the model owns.
  std::size_t saved_bytes(std::span<const SharedArray> shared) const override {
    return bytes_of_copy(f_, shared) + x_.size() * sizeof(T);
  }

 private:
  struct FirstResult {
    Tensor<T> y;                        // a constant, or an existing tensor returned by f
    std::vector<Tensor<T>> depends_on;  // x, or its value if y does not depend on it, and parameters; or nothing
    std::string name;                   // of y
  };

  // The argument for f on the inner tape: a placeholder if an outer tape recorded x, else x itself.
  Tensor<T> argument(Nodes<T>& nodes) const {
    if (!is_recorded_) return x_;
    Tensor<T> placeholder(x_.shared_value());
    nodes.append("input", placeholder, {}, {}, nullptr, {});
    if (std::string name = x_.name(); !name.empty()) nodes.set_name(placeholder.origin_.node, std::move(name));
    return placeholder;
  }

  FirstResult first_call(const Tensor<T>& x) {
    const Tape tape(options_);
    Nodes<T>& nodes = tape.recording()->template of<T>();
    const Tensor<T> given = argument(nodes);
    Tensor<T> y = [&] {
      const KeyScope written(&keys_);
      return Tensor<T>(f_(given));
    }();
    if (is_recorded_)
      require_usage(
          nodes.registered_hooks(given.origin_.node).empty() && !nodes[given.origin_.node].slot, kRecompute.name,
          "expected hooks and retain_grad() on x outside the function, got them inside; set them before the call");
    checksum_ = checksum(y.value());
    if (y.origin_.tape != tape.recording()->number()) return {y, {}, {}};
    if (y.origin_.node == given.origin_.node) return {x, {}, {}};

    std::vector<Tensor<T>> depends_on{x.detach()};
    reads_.emplace_back();
    for (const std::int32_t i : leaves_of(nodes, y.origin_.node)) {
      const auto variable = std::static_pointer_cast<Variable<T>>(nodes[i].slot);  // null for the placeholder
      ParameterRead<T> read{variable, variable ? variable->value : nullptr};
      if (!variable || variable == x.slot_) {
        depends_on.front() = x;
        reads_.front() = std::move(read);
      } else {
        depends_on.push_back(Tensor<T>(variable));
        reads_.push_back(std::move(read));
      }
    }
    return {y.detach(), std::move(depends_on), y.name()};
  }

  Tensor<T> repeat_call(const Tensor<T>& x) const {
    const RestoredValues<T> restored(reads_);
    const KeyScope repeated(keys_);
    const ReopenedLayer layer(layer_.get());
    Tensor<T> y = f_(x);
    require_usage(repeated.is_used_up(), kRecompute.name,
                  "expected a function with the same number of random draws in each call, got ", keys_.size(),
                  " in the first call and fewer in the repeated one");
    return y;
  }

  // Throws if this node depends on a parameter that f did not read in the first call.
  void require_reads_again(const Nodes<T>& nodes, std::int32_t y) const {
    for (const std::int32_t leaf : leaves_of(nodes, y)) {
      const auto is_read = [&](const ParameterRead<T>& read) { return read.variable == nodes[leaf].slot; };
      require_usage(
          std::any_of(reads_.begin(), reads_.end(), is_read), kRecompute.name,
          "expected a function that reads the same parameters in each call, got one that also reads ",
          [&] { return nodes.name(leaf).empty() ? "one of shape " + to_string(nodes[leaf].shape) : nodes.name(leaf); });
    }
  }

  F f_;
  Tensor<T> x_;       // a constant if a tape recorded x
  bool is_recorded_;  // an outer tape recorded x
  TapeOptions options_;
  KeyScope::Keys keys_;
  std::shared_ptr<const LayerCall> layer_ = shared_open_layer();  // f's scopes are named relative to it
  std::uint64_t checksum_ = 0;                                    // of f(x)
  std::vector<ParameterRead<T>> reads_;                           // numbered like the inputs
};

template <class T> Tensor<T> recompute(std::function<Tensor<T>(const Tensor<T>&)> f, const Tensor<T>& x) {
  Recording* const recording = Tape::current();
  return recording == nullptr ? f(x) : Recomputation<T>::record(std::move(f), x, *recording);
}

template Tensor<float> recompute(std::function<Tensor<float>(const Tensor<float>&)>, const Tensor<float>&);
template Tensor<double> recompute(std::function<Tensor<double>(const Tensor<double>&)>, const Tensor<double>&);

}  // namespace tapegrad::detail
