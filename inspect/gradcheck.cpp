#include "gradcheck.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <locale>
#include <memory>
#include <ostream>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include "../engine/array/internal/error.hpp"
#include "../engine/array/internal/layout.hpp"
#include "../engine/array/random.hpp"
#include "../engine/ops/ops.hpp"
#include "../engine/tape/no_grad.hpp"
#include "internal/temporary_changes.hpp"

namespace tapegrad::testing {
namespace {

// A fixed key: the check neither depends on the program's random numbers nor disturbs them.
constexpr std::uint64_t kCotangentKey = 0x7461706567726164;

// Of the first direction; the others follow.
constexpr std::uint64_t kDirectionKey = 0x646972656374696f;

// Random weights of f's outputs, from [-1, 1) and away from 0 on average.
Array<double> cotangent(const Shape& shape) {
  Array<double> weights(shape);
  for (std::size_t i = 0; i < weights.size(); ++i) weights.data()[i] = 2 * random_uniform(kCotangentKey, i) - 1;
  return weights;
}

using Variable = detail::Variable<double>;

// The parameters to check, each once, without undefined and frozen ones. Restores them at the end of its scope.
class Checked {
 public:
  struct Entry {
    std::string name;
    Variable* variable;
    ParameterHandle<Parameter<double>> owner;
    Value<double> value;
    std::shared_ptr<Array<double>> grad;
    std::string name_before;
    SweepCount sweeps;
    std::uint64_t last_sweep;
    std::size_t offset;  // elements of the entries before it
  };

  explicit Checked(const NamedParameters<double>& parameters) {
    std::size_t elements = 0;
    for (const auto& [name, parameter] : parameters) {
      Variable* const v = parameter.variable();
      if (v == nullptr || !v->requires_grad) continue;
      if (std::ranges::any_of(entries_, [v](const Entry& entry) { return entry.variable == v; })) continue;
      entries_.push_back({name, v, parameter, v->value, v->grad, v->name, v->sweeps, v->last_sweep, elements});
      elements += v->value->size();
    }
    for (const Entry& entry : entries_) {
      entry.variable->clear_grad();
      entry.variable->name = entry.name;
    }
  }
  ~Checked() {
    for (Entry& entry : entries_) {
      entry.variable->value = std::move(entry.value);
      entry.variable->grad = std::move(entry.grad);
      entry.variable->name = std::move(entry.name_before);
      entry.variable->sweeps = entry.sweeps;
      entry.variable->last_sweep = entry.last_sweep;
    }
  }
  Checked(const Checked&) = delete;
  Checked& operator=(const Checked&) = delete;

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

// The weighted sum of f's outputs.
class WeightedSum {
 public:
  WeightedSum(const std::function<Tensor<double>()>& f, const Array<double>& weights) : f_(f), weights_(weights) {}

  Tensor<double> outputs() const {
    Tensor<double> y = f_();
    detail::require(y.shape() == weights_.shape(), "gradcheck", "expected outputs of equal shape from each call, got ",
                    weights_.shape(), " and then ", y.shape());
    return y;
  }

  double operator()() const {
    const Tensor<double> y = outputs();
    double sum = 0;
    for (std::size_t j = 0; j < weights_.size(); ++j) sum += weights_.data()[j] * y.value().data()[j];
    return sum;
  }

 private:
  const std::function<Tensor<double>()>& f_;
  const Array<double>& weights_;
};

// The weighted sum at a distance h from the parameters' values, along one element or one direction.
using Line = std::function<double(double h)>;

// A slope by the backward pass and by a central difference.
struct Slope {
  double analytic = 0, numeric = 0;

  double relative_difference() const {
    return std::abs(analytic - numeric) / std::max({1.0, std::abs(analytic), std::abs(numeric)});
  }
};

double central_difference(const Line& sum_at, double h) { return (sum_at(h) - sum_at(-h)) / (2 * h); }

// True if the first is the larger difference; NaN is the largest.
bool is_worse(double a, double b) { return !(a <= b); }

// Reports a wrong slope of the function `name`.
void report_slope(std::ostream& report, const std::string& name, const Slope& slope, double h, double tolerance) {
  report << name << ": analytic " << slope.analytic << ", numeric " << slope.numeric << ", relative difference "
         << slope.relative_difference() << " above " << tolerance << " (step " << h << ")\n";
}

// Reports a kink or a jump: one-sided differences that disagree by enough to explain the error, and do not converge
// with a smaller step as they do for a smooth f.
void report_kink(std::ostream& report, const Line& sum_at, const Slope& worst, double h, double tolerance) {
  const double center = sum_at(0);
  const auto slopes = [&](double d) { return std::pair((center - sum_at(-d)) / d, (sum_at(d) - center) / d); };
  const auto [left, right] = slopes(h);
  const auto [nearer_left, nearer_right] = slopes(h / 10);
  const double gap = std::abs(right - left), nearer_gap = std::abs(nearer_right - nearer_left);
  const double rounding = 10 * std::numeric_limits<double>::epsilon() * std::abs(center) / (h / 10);
  const bool disagree = std::isfinite(gap) && gap >= std::abs(worst.analytic - worst.numeric) &&
                        gap > rounding + tolerance * std::max({1.0, std::abs(left), std::abs(right)});
  const bool shrinks = nearer_gap > gap / 20 && nearer_gap < gap / 5;
  if (!disagree || shrinks) return;
  report << "  it looks like a kink: one-sided differences give " << left << " below and " << right
         << " above; check next to it\n";
}

// Reports an f with different outputs at the same point.
void report_nondeterminism(std::ostream& report, const WeightedSum& f, const Array<double>& first) {
  constexpr int calls = 4;  // a dropout with a small p may drop nothing twice
  for (int call = 0; call < calls; ++call) {
    const Tensor<double> again = f.outputs();
    for (std::size_t i = 0; i < first.size(); ++i) {
      const double a = first.data()[i], b = again.value().data()[i];
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      report << "f differs from call to call with the same parameters: output"
             << to_string(detail::index_of(i, first.shape())) << " was " << a << ", then " << b
             << ". Is dropout on? tapegrad::eval(model) turns it off\n";
      return;
    }
  }
}

// The comparison of all gradients with differences of the weighted sum.
class Comparing {
 public:
  Comparing(const Checked& checked, const WeightedSum& sum, const Array<double>& outputs,
            const GradcheckOptions& options)
      : entries_(checked.entries()), sum_(sum), outputs_(outputs), options_(options) {
    report_.imbue(std::locale::classic());  // independent of the program's locale
    report_ << std::setprecision(10);
  }

  // Compares each element of each parameter.
  void compare_elements() {
    std::size_t compared = 0;
    for (const Entry& entry : entries_) compared += compare_elements(entry);
    if (ok()) report_ << compared << " elements agree to " << options_.tolerance;
  }

  // Compares the slopes along random directions in the space of all n parameters' elements. Such a direction has length
  // sqrt(n), and the error of a central difference grows with the length's cube. The step is therefore divided by
  // cbrt(n), not sqrt(n): with that, rounding would dominate.
  void compare_directions() {
    std::size_t elements = 0;
    for (const Entry& entry : entries_) elements += entry.value->size();
    options_.step /= std::cbrt(static_cast<double>(std::max<std::size_t>(elements, 1)));
    for (std::size_t k = 0; k < options_.directions && ok(); ++k) compare_direction(k);
    if (ok())
      report_ << options_.directions << " directions over " << elements << " elements agree to " << options_.tolerance;
  }

  bool ok() const { return ok_; }
  std::string report() const { return report_.str(); }
  const std::string& worst() const { return worst_; }
  const std::map<std::string, Array<double>>& numeric() const { return numeric_; }

 private:
  using Entry = Checked::Entry;
  using Entries = std::span<const Entry>;

  // Long along large values: |x| in the direction of an element x, at least 1.
  static double scale(double x) { return std::max(1.0, std::abs(x)); }

  static Array<double> gradient_of(const Entry& entry) {
    return entry.variable->grad ? *entry.variable->grad : Array<double>(entry.value->shape(), 0.0);
  }

  std::size_t compare_elements(const Entry& entry) {
    const Array<double>& value = *entry.value;
    const Array<double> gradient = gradient_of(entry);
    const auto step = [&](std::size_t i) { return options_.step * scale(value.data()[i]); };
    const auto along = [&](std::size_t i) -> Line {
      return [this, &entry, i](double h) {
        detail::ChangedValues changed;
        changed.add(entry.variable, [&](double* numbers) { numbers[i] += h; });
        return sum_();
      };
    };
    Array<double> differences(value.shape(), std::numeric_limits<double>::quiet_NaN());
    Slope worst;
    std::size_t at = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const Slope slope{gradient.data()[i], differences.data()[i] = central_difference(along(i), step(i))};
      const double difference = slope.relative_difference();
      if (is_worse(difference, worst.relative_difference())) worst = slope, at = i;
      if (std::isnan(difference)) break;
    }
    if (!is_worse(worst.relative_difference(), options_.tolerance)) return gradient.size();
    add_wrong(entry.name, to_string(detail::index_of(at, gradient.shape())), worst, along(at), step(at));
    numeric_.insert_or_assign(entry.name, std::move(differences));
    return gradient.size();
  }

  // Reports the parameter with the largest share of a wrong slope, found by halving the parameters that move.
  void compare_direction(std::size_t k) {
    Entries moving = entries_;
    Slope slope = slope_along(k, moving);
    if (!is_worse(slope.relative_difference(), options_.tolerance)) return;
    while (moving.size() > 1) {
      const Entries first = moving.first(moving.size() / 2), rest = moving.subspan(moving.size() / 2);
      const Slope of_first = slope_along(k, first), of_rest = slope_along(k, rest);
      const bool in_first = is_worse(of_first.relative_difference(), of_rest.relative_difference());
      moving = in_first ? first : rest;
      slope = in_first ? of_first : of_rest;
    }
    add_wrong(
        moving.front().name, " along random direction " + std::to_string(k), slope,
        [&](double h) { return sum_along(k, moving, h); }, options_.step);
  }

  // An element of direction k: its sign is random, its length the element's scale.
  static double direction(std::size_t k, const Entry& entry, std::size_t i) {
    const double sign = random_uniform(kDirectionKey + k, entry.offset + i) < 0.5 ? -1 : 1;
    return sign * scale(entry.value->data()[i]);
  }

  double sum_along(std::size_t k, Entries moving, double h) const {
    detail::ChangedValues changed;
    for (const Entry& entry : moving)
      changed.add(entry.variable, [&](double* numbers) {
        for (std::size_t i = 0; i < entry.value->size(); ++i) numbers[i] += h * direction(k, entry, i);
      });
    return sum_();
  }

  Slope slope_along(std::size_t k, Entries moving) const {
    Slope slope;
    for (const Entry& entry : moving)
      if (entry.variable->grad)
        for (std::size_t i = 0; i < entry.value->size(); ++i)
          slope.analytic += entry.variable->grad->data()[i] * direction(k, entry, i);
    slope.numeric = central_difference([&](double h) { return sum_along(k, moving, h); }, options_.step);
    return slope;
  }

  void add_wrong(const std::string& name, const std::string& where, const Slope& slope, const Line& sum_at, double h) {
    if (ok_) report_nondeterminism(report_, sum_, outputs_);
    report_slope(report_, name + where, slope, h, options_.tolerance);
    report_kink(report_, sum_at, slope, h, options_.tolerance);
    if (ok_ || is_worse(slope.relative_difference(), worst_difference_)) {
      worst_ = name;
      worst_difference_ = slope.relative_difference();
    }
    ok_ = false;
  }

  const Entries entries_;
  const WeightedSum& sum_;
  const Array<double>& outputs_;
  GradcheckOptions options_;
  std::ostringstream report_;
  bool ok_ = true;
  std::string worst_;  // the parameter with the largest difference, if any is wrong
  double worst_difference_ = 0;
  std::map<std::string, Array<double>> numeric_;
};

}  // namespace

GradcheckResult gradcheck(const std::function<Tensor<double>()>& f, const NamedParameters<double>& parameters,
                          const GradcheckOptions& options) {
  detail::require(!parameters.empty(), "gradcheck", "expected parameters to check, got none");
  const Checked checked(parameters);
  const Tape tape({.keep_values = options.on_failure != nullptr});
  const Tensor<double> y = f();
  const Array<double> weights = cotangent(y.shape());
  if (y.requires_grad()) y.backward(weights);  // otherwise every gradient is 0, to be confirmed by the differences

  const NoGrad pause;
  const WeightedSum sum(f, weights);
  Comparing comparing(checked, sum, y.value(), options);
  if (options.directions > 0)
    comparing.compare_directions();
  else
    comparing.compare_elements();
  GradcheckResult result{comparing.ok(), comparing.report()};
  if (!result.ok && options.on_failure)
    result.report += options.on_failure({tape, result.report, comparing.worst(), comparing.numeric()});
  return result;
}

std::ostream& operator<<(std::ostream& out, const GradcheckResult& result) { return out << result.report; }

}  // namespace tapegrad::testing
