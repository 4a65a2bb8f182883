#include "recompute.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../array/internal/error.hpp"
#include "../array/internal/key_scope.hpp"
#include "internal/recording.hpp"
#include "scope.hpp"
#include "tape.hpp"

namespace tapegrad::detail {
namespace {

constexpr Operation kRecompute("recompute", "y = f(x, θ); dx = (∂f/∂x)ᵀ dy; dθ = (∂f/∂θ)ᵀ dy");

// A parameter that f has read, and its value then, which was not in bfloat16: those are constants.
template <class T> struct ParameterRead {
  std::shared_ptr<Leaf<T>> leaf;  // null for none
  Value<T> value;
  std::shared_ptr<const Array<BFloat16>> bfloat16{};
};

// Gives parameters that were set since f has read them the values that they had then, to the end of its scope.
template <class T> class ValuesThen {
 public:
  explicit ValuesThen(const std::vector<ParameterRead<T>>& reads) {
    for (const ParameterRead<T>& read : reads)
      if (read.leaf && read.leaf->value != read.value) changed_.push_back(read);
    exchange();
  }
  ~ValuesThen() { exchange(); }
  ValuesThen(const ValuesThen&) = delete;
  ValuesThen& operator=(const ValuesThen&) = delete;

 private:
  void exchange() noexcept {
    for (auto& [leaf, value, bfloat16] : changed_) {
      std::swap(leaf->value, value);
      std::swap(leaf->bfloat16, bfloat16);
    }
  }

  std::vector<ParameterRead<T>> changed_;
};

}  // namespace

/// The rule of an operation that computes y = f(x, θ) for parameters θ. Both times f runs on a tape of its own: the
/// first tells which parameters it reads, the second is swept.
template <class T> class Recomputation final : public Rule<T> {
 public:
  using F = std::function<Tensor<T>(const Tensor<T>&)>;

  Recomputation(F f, const Tensor<T>& x, const TapeOptions& outer)
      : f_(std::move(f)), x_(x), of_tape_(x.origin_.node >= 0), options_{.detect_anomaly = outer.detect_anomaly} {
    if (!of_tape_) return;
    x_ = x.detach();
    if (std::string name = x.name(); !name.empty()) x_.set_name(std::move(name));
  }

  static Tensor<T> record(F f, const Tensor<T>& x, Recordings& recordings) {
    Recording<T>& recording = recordings.of<T>();
    if (x.origin_.node >= 0) (void)recording.edge(kRecompute.name, x);  // refuses one of another tape
    const auto rule = make_pooled<Recomputation>(std::move(f), x, recordings.options());
    auto [y, depends_on, name] = rule->first_call(x);
    if (depends_on.empty()) return y;

    std::vector<Input<T>> inputs;
    Edges edges;
    for (const Tensor<T>& input : depends_on) {
      inputs.emplace_back(input);
      edges.push_back(recording.edge(kRecompute.name, input));
    }
    // The values of parameters, which their model holds, are not counted.
    const std::size_t saved =
        recordings.options().profile ? saved_bytes(rule->x_.shared_value()) + saved_bytes(rule->f_) : 0;
    recording.append(kRecompute, y, inputs, std::move(edges), rule, saved);
    if (!name.empty()) y.set_name(std::move(name));
    return y;
  }

  void operator()(const Array<T>& dy, Gradients<T>& dx) const override {
    const Tape tape(options_);
    Recordings& recordings = *TapeScope::current();
    Recording<T>& recording = recordings.of<T>();
    const Tensor<T> x = argument(recording), y = call_again(x);
    const bool is_recorded = y.origin_.tape == recordings.id();
    const bool is_x = is_recorded && y.origin_.node == x.origin_.node;
    require_usage(y.shape() == dy.shape() && !is_x, kRecompute.name,
                  "expected a function that computes the same each time, given one that made ", dy.shape(),
                  " at first and now ", [&] { return is_x ? "x itself" : to_string(y.shape()); });
    if (!is_recorded) return;  // all that it depends on has been frozen since

    std::vector<OuterLeaf<T>> leaves;
    std::vector<std::size_t> inputs;  // of each leaf
    for (std::size_t n = 0; n < dx.size(); ++n) {
      if (!dx[n].needs_grad()) continue;
      const Tensor<T> input = reads_[n].leaf ? Tensor<T>(reads_[n].leaf) : x;
      const std::int32_t node = recording.edge(kRecompute.name, input);
      if (node < 0) continue;  // frozen since
      leaves.push_back({node, std::move(dx[n].gathered())});
      inputs.push_back(n);
    }
    recordings.sweep_part<T>(y.origin_.node, make_value<T>(dy), leaves);
    for (std::size_t i = 0; i < leaves.size(); ++i) dx[inputs[i]].gathered() = std::move(leaves[i].gradient);
  }

 private:
  struct Made {
    Tensor<T> y;                        // a constant, or what f returns without making it
    std::vector<Tensor<T>> depends_on;  // x, or its value where y does not depend on it, and parameters; or nothing
    std::string name;                   // of y
  };

  // What f is called with on a tape of its own.
  Tensor<T> argument(Recording<T>& recording) const { return of_tape_ ? recording.stand_in(x_) : x_; }

  Made first_call(const Tensor<T>& x) {
    const Tape tape(options_);
    Recordings& recordings = *TapeScope::current();
    Recording<T>& recording = recordings.of<T>();
    const Tensor<T> given = argument(recording);
    Tensor<T> y = [&] {
      const KeyScope written(&keys_);
      return Tensor<T>(f_(given));
    }();
    if (of_tape_)
      require_usage(recording.hooks(given.origin_.node).empty() && !recording.nodes().front().leaf, kRecompute.name,
                    "expected hooks and retain_grad() on x before the call, given them in the function");
    if (y.origin_.tape != recordings.id()) return {y, {}, {}};
    if (y.origin_.node == given.origin_.node) return {x, {}, {}};

    std::vector<Tensor<T>> depends_on{x.detach()};
    reads_.emplace_back();
    for (const std::int32_t i : recording.leaves_of(y.origin_.node)) {
      const std::shared_ptr<Leaf<T>>& leaf = recording.nodes()[static_cast<std::size_t>(i)].leaf;
      if (!leaf || leaf == x.leaf_) {
        depends_on.front() = x;
        if (leaf) reads_.front() = {leaf, leaf->value};
      } else {
        depends_on.push_back(Tensor<T>(leaf));
        reads_.push_back({leaf, leaf->value});
      }
    }
    return {y.detach(), std::move(depends_on), y.name()};
  }

  Tensor<T> call_again(const Tensor<T>& x) const {
    const ValuesThen<T> values(reads_);
    const KeyScope repeated(keys_);
    Tensor<T> y = f_(x);
    require_usage(repeated.is_used_up(), kRecompute.name, "expected a function that draws as often each time, given ",
                  "one that drew ", keys_.size(), " times at first and now less often");
    return y;
  }

  F f_;
  Tensor<T> x_;   // without its place where a tape has recorded it
  bool of_tape_;  // x is recorded on an outer tape
  TapeOptions options_;
  KeyScope::Keys keys_;
  std::vector<ParameterRead<T>> reads_;  // numbered as the inputs are
};

template <class T> Tensor<T> recompute(std::function<Tensor<T>(const Tensor<T>&)> f, const Tensor<T>& x) {
  Recordings* const recordings = TapeScope::current();
  return recordings == nullptr ? f(x) : Recomputation<T>::record(std::move(f), x, *recordings);
}

template Tensor<float> recompute(std::function<Tensor<float>(const Tensor<float>&)>, const Tensor<float>&);
template Tensor<double> recompute(std::function<Tensor<double>(const Tensor<double>&)>, const Tensor<double>&);

}  // namespace tapegrad::detail
