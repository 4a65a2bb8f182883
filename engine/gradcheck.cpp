#include "gradcheck.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <optional>
#include <ostream>
#include <sstream>

#include "error.hpp"
#include "ops.hpp"
#include "random.hpp"
#include "tape.hpp"

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

double weighted(const Tensor<double>& y, const Array<double>& weights) {
  detail::require(y.shape() == weights.shape(), "gradcheck", "expected outputs of one shape from every call, given ",
                  weights.shape(), " and then ", y.shape());
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) sum += weights.data()[i] * y.value().data()[i];
  return sum;
}

struct Difference {
  std::size_t index = 0;
  double analytic = 0, numeric = 0, relative = -1;
};

// Puts the gradients back as they were, whatever happens.
class GradientsKept {
 public:
  explicit GradientsKept(const NamedParameters<double>& parameters) : parameters_(parameters) {
    for (const auto& [name, parameter] : parameters) {
      kept_.push_back(parameter->has_grad() ? std::optional(parameter->grad()) : std::nullopt);
      parameter->zero_grad();
    }
  }
  ~GradientsKept() {
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      parameters_[i].second->zero_grad();
      if (kept_[i]) parameters_[i].second->set_grad(std::move(*kept_[i]));
    }
  }
  GradientsKept(const GradientsKept&) = delete;
  GradientsKept& operator=(const GradientsKept&) = delete;

 private:
  const NamedParameters<double>& parameters_;
  std::vector<std::optional<Array<double>>> kept_;
};

// (f(x + h) - f(x - h)) / 2h in one element, which is put back whatever f throws.
double central_difference(const std::function<Tensor<double>()>& f, const Array<double>& weights,
                          Parameter<double>& parameter, std::size_t i, double step) {
  const Array<double> before = parameter.value();
  const auto moved = [&](double h) {
    Array<double> value = before;
    value.data()[i] += h;
    parameter.set_value(std::move(value));
    return weighted(f(), weights);
  };
  const double h = step * std::max(1.0, std::abs(before.data()[i]));
  try {
    const double difference = (moved(h) - moved(-h)) / (2 * h);
    parameter.set_value(before);
    return difference;
  } catch (...) {
    parameter.set_value(before);
    throw;
  }
}

}  // namespace

GradcheckResult gradcheck(const std::function<Tensor<double>()>& f, const NamedParameters<double>& parameters,
                          const GradcheckOptions& options) {
  detail::require(!parameters.empty(), "gradcheck", "expected parameters to check, given none");
  const GradientsKept kept(parameters);
  Array<double> weights;
  {
    Tape tape;
    const Tensor<double> y = f();
    weights = cotangent(y.shape());
    if (y.requires_grad())
      y.backward(weights);  // without, every gradient is 0, which the differences confirm or refute
  }

  GradcheckResult result;
  std::ostringstream report;
  report << std::setprecision(10);
  std::size_t compared = 0;
  for (const auto& [name, parameter] : parameters) {
    const Array<double> gradient = parameter->grad();
    Difference worst;
    for (std::size_t i = 0; i < gradient.size(); ++i, ++compared) {
      const double analytic = gradient.data()[i];
      const double numeric = central_difference(f, weights, *parameter, i, options.step);
      const double relative = std::abs(analytic - numeric) / std::max({1.0, std::abs(analytic), std::abs(numeric)});
      if (!(relative <= worst.relative)) worst = {i, analytic, numeric, relative};
      if (std::isnan(relative)) break;
    }
    if (worst.relative <= options.tolerance) continue;
    result.ok = false;
    report << name << to_string(detail::index_of(worst.index, gradient.shape())) << ": analytic " << worst.analytic
           << ", numeric " << worst.numeric << ", relative difference " << worst.relative << " above "
           << options.tolerance << '\n';
  }
  if (result.ok) report << compared << " elements agree to " << options.tolerance;
  result.report = report.str();
  return result;
}

std::ostream& operator<<(std::ostream& out, const GradcheckResult& result) { return out << result.report; }

}  // namespace tapegrad::testing
