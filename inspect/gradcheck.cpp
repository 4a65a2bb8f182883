#include "gradcheck.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <locale>
#include <memory>
#include <ostream>
#include <sstream>
#include <utility>
#include <vector>

#include "../engine/array/internal/error.hpp"
#include "../engine/array/internal/layout.hpp"
#include "../engine/array/random.hpp"
#include "../engine/ops/ops.hpp"
#include "../engine/tape/no_grad.hpp"

namespace tapegrad::testing {
namespace {

// A fixed key: the check neither depends on the program's random numbers nor disturbs them.
constexpr std::uint64_t kCotangentKey = 0x7461706567726164;

// Random weights of f's outputs, from [-1, 1) and away from 0 on average.
Array<double> cotangent(const Shape& shape) {
  Array<double> weights(shape);
  for (std::size_t i = 0; i < weights.size(); ++i) weights.data()[i] = 2 * random_uniform(kCotangentKey, i) - 1;
  return weights;
}

struct Difference {
  std::size_t index = 0;
  double analytic = 0, numeric = 0, relative = -1;
};

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
  };

  explicit Checked(const NamedParameters<double>& parameters) {
    for (const auto& [name, parameter] : parameters) {
      Variable* const v = parameter.variable();
      if (v == nullptr || !v->requires_grad) continue;
      if (std::ranges::any_of(entries_, [v](const Entry& entry) { return entry.variable == v; })) continue;
      entries_.push_back({name, v, parameter, v->value, v->grad, v->name, v->sweeps, v->last_sweep});
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

// Moves an element of a parameter by h until the end of the scope.
class Perturbed {
 public:
  Perturbed(Variable& parameter, std::size_t i, double h) : parameter_(parameter), before_(parameter.value) {
    const auto value = make_value<double>(*before_);
    value->data()[i] += h;
    parameter.value = value;
  }
  ~Perturbed() { parameter_.value = before_; }
  Perturbed(const Perturbed&) = delete;
  Perturbed& operator=(const Perturbed&) = delete;

 private:
  Variable& parameter_;
  const Value<double> before_;
};

// The weighted sum of f's outputs as a function of one element of a parameter.
class Probe {
 public:
  Probe(const std::function<Tensor<double>()>& f, const Array<double>& weights) : f_(f), weights_(weights) {}

  Tensor<double> outputs() const {
    Tensor<double> y = f_();
    detail::require(y.shape() == weights_.shape(), "gradcheck", "expected outputs of equal shape from each call, got ",
                    weights_.shape(), " and then ", y.shape());
    return y;
  }

  double at(Variable& parameter, std::size_t i, double h) const {
    const Perturbed perturbed(parameter, i, h);
    const Tensor<double> y = outputs();
    double sum = 0;
    for (std::size_t j = 0; j < weights_.size(); ++j) sum += weights_.data()[j] * y.value().data()[j];
    return sum;
  }

  double central_difference(Variable& parameter, std::size_t i, double h) const {
    return (at(parameter, i, h) - at(parameter, i, -h)) / (2 * h);
  }

 private:
  const std::function<Tensor<double>()>& f_;
  const Array<double>& weights_;
};

// Reports a kink or a jump: one-sided differences that disagree by enough to explain the error, and do not converge
// with a smaller step as they do for a smooth f.
void report_kink(std::ostream& report, const Probe& f, Variable& parameter, const Difference& worst, double h,
                 double tolerance) {
  const double center = f.at(parameter, worst.index, 0);
  const auto slopes = [&](double d) {
    return std::pair((center - f.at(parameter, worst.index, -d)) / d, (f.at(parameter, worst.index, d) - center) / d);
  };
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
void report_nondeterminism(std::ostream& report, const Probe& f, const Array<double>& first) {
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
  GradcheckResult result;
  const Probe probe(f, weights);
  std::ostringstream report;
  report.imbue(std::locale::classic());  // independent of the program's locale
  report << std::setprecision(10);
  std::size_t compared = 0;
  std::map<std::string, Array<double>> wrong;
  std::pair<std::string, double> largest_error{"", -1};
  for (const auto& entry : checked.entries()) {
    const std::string& name = entry.name;
    Variable* const parameter = entry.variable;
    const Array<double>& value = *entry.value;
    const Array<double> gradient = parameter->grad ? *parameter->grad : Array<double>(value.shape(), 0.0);
    const auto step = [&](std::size_t i) { return options.step * std::max(1.0, std::abs(value.data()[i])); };
    Array<double> differences(value.shape(), std::numeric_limits<double>::quiet_NaN());
    Difference worst;
    for (std::size_t i = 0; i < gradient.size(); ++i, ++compared) {
      const double analytic = gradient.data()[i];
      const double numeric = differences.data()[i] = probe.central_difference(*parameter, i, step(i));
      const double relative = std::abs(analytic - numeric) / std::max({1.0, std::abs(analytic), std::abs(numeric)});
      if (!(relative <= worst.relative)) worst = {i, analytic, numeric, relative};
      if (std::isnan(relative)) break;
    }
    if (worst.relative <= options.tolerance) continue;
    if (result.ok) report_nondeterminism(report, probe, y.value());
    result.ok = false;
    report << name << to_string(detail::index_of(worst.index, gradient.shape())) << ": analytic " << worst.analytic
           << ", numeric " << worst.numeric << ", relative difference " << worst.relative << " above "
           << options.tolerance << " (step " << step(worst.index) << ")\n";
    report_kink(report, probe, *parameter, worst, step(worst.index), options.tolerance);
    wrong.insert_or_assign(name, std::move(differences));
    if (!(worst.relative <= largest_error.second)) largest_error = {name, worst.relative};
  }
  if (result.ok) report << compared << " elements agree to " << options.tolerance;
  result.report = report.str();
  if (!result.ok && options.on_failure)
    result.report += options.on_failure({tape, result.report, largest_error.first, wrong});
  return result;
}

std::ostream& operator<<(std::ostream& out, const GradcheckResult& result) { return out << result.report; }

}  // namespace tapegrad::testing
