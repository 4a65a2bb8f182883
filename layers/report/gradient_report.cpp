#include "gradient_report.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <ostream>
#include <sstream>

#include "../../engine/report/internal/table.hpp"
#include "../../engine/tape/internal/recording.hpp"

namespace tapegrad::detail {
namespace {

struct Row {
  std::string name, shape, gradient, note;
  bool sound = true;
};

template <class T> Row row_of(const std::string& name, const Parameter<T>& parameter) {
  Row row{name, to_string(parameter.shape()), "no gradient", "", false};
  const SweepCount sweeps = parameter.sweeps();
  if (!parameter.has_grad()) {
    row.note = sweeps.total > 0 ? "a sweep came by, but no operation passed a gradient on to it"
                                : "the loss does not depend on it: unused, or behind a detach()?";
    return row;
  }
  const double size = norm(parameter.grad());
  std::ostringstream gradient;
  gradient << "|gradient| " << std::setprecision(3) << size;
  row.gradient = gradient.str();
  row.sound = std::isfinite(size) && !sweeps.over_changed_values();
  if (!std::isfinite(size))
    row.note = "not finite: Tape({.detect_anomaly = true}) tells where that starts";
  else if (sweeps.total > 1)
    row.note = std::to_string(sweeps.total) + " sweeps added up" +
               (row.sound ? "" : " over changed values: zero_grad() forgotten?");
  else if (size == 0 && parameter.size() > 0)
    row.note = "all zeros";
  return row;
}

}  // namespace

template <class T> bool gradient_report(std::ostream& out, const NamedConstParameters<T>& parameters) {
  const bool none =
      std::none_of(parameters.begin(), parameters.end(), [](const auto& named) { return named.second->has_grad(); });
  if (none) {
    out << "none of " << parameters.size()
        << " parameters has a gradient: backward() was not called, or zero_grad() after it\n";
    return parameters.empty();
  }
  Table table;
  bool sound = true;
  for (const auto& [path, parameter] : parameters) {
    Row row = row_of(path, *parameter);
    sound = sound && row.sound;
    table.add({row.name, row.shape, row.gradient, row.note});
  }
  out << table;
  return sound;
}

template bool gradient_report(std::ostream&, const NamedConstParameters<float>&);
template bool gradient_report(std::ostream&, const NamedConstParameters<double>&);

}  // namespace tapegrad::detail
