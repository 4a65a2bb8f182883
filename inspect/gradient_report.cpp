#include "gradient_report.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <vector>

#include "../layers/model/internal/copies.hpp"
#include "internal/profile.hpp"
#include "internal/table.hpp"

namespace tapegrad::detail {
namespace {

struct Row {
  std::string name, shape, gradient, note;
  bool is_valid = true;
};

template <class T> Row row_of(const std::string& name, const Parameter<T>& parameter) {
  Row row{name, to_string(parameter.shape()), "no gradient", "", false};
  if (!parameter.requires_grad()) {
    row.gradient = "frozen";
    row.is_valid = true;
    return row;
  }
  const SweepCount sweeps = parameter.sweeps();
  if (!parameter.has_grad()) {
    row.note = sweeps.total > 0 ? "a backward pass reached it, but no operation passed it a gradient"
                                : "the loss does not depend on it: unused, or behind a detach()?";
    return row;
  }
  const double size = norm(parameter.grad());
  std::ostringstream gradient;
  gradient << "|gradient| " << std::setprecision(3) << size;
  row.gradient = gradient.str();
  row.is_valid = std::isfinite(size) && !sweeps.over_changed_values();
  if (!std::isfinite(size))
    row.note = "not finite: Tape({.detect_anomaly = true}) tells where that starts";
  else if (sweeps.total > 1)
    row.note = std::to_string(sweeps.total) + " backward passes added up" +
               (row.is_valid ? "" : " over changed values: zero_grad() forgotten?");
  else if (size == 0 && parameter.size() > 0)
    row.note = "all zeros";
  return row;
}

// The first operation to read a parameter, right after its node on the tape.
template <class T> const char* first_reader(const Nodes<T>& nodes, std::int32_t parameter) {
  const auto reads_parameter = [&](std::int32_t i) {
    return std::ranges::find(nodes[i].inputs, parameter) != nodes[i].inputs.end();
  };
  const auto count = static_cast<std::int32_t>(nodes.size());
  for (std::int32_t i = parameter + 1; i < count; ++i)
    if (reads_parameter(i)) return nodes[i].operation.name;
  return "";
}

// The parameters reached by the last backward pass over the model but not listed in it. They are named if this
// thread's innermost tape still has them, and counted otherwise.
template <class T> std::vector<Row> unlisted(const NamedConstParameters<T>& parameters) {
  std::uint64_t last = 0;
  for (const auto& named : parameters) last = std::max(last, named.second.variable()->last_sweep);
  if (last == 0) return {};
  std::size_t missing = 0, listed = 0;
  for (const auto& named : parameters) {
    const Variable<T>& variable = *named.second.variable();
    if (variable.last_sweep == last) missing = variable.parameters_in_last_sweep, ++listed;
  }
  missing -= std::min(missing, listed);
  if (missing == 0) return {};

  std::vector<Row> rows;
  if (const Recording* const recording = Tape::current()) {
    const Nodes<T>& nodes = recording->of<T>();
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(nodes.size()); ++i) {
      if (!nodes[i].is_parameter || nodes[i].variable().last_sweep != last) continue;
      const auto is_match = [&](const auto& named) { return named.second.variable() == nodes[i].slot.get(); };
      if (std::ranges::any_of(parameters, is_match)) continue;
      const std::string name = nodes.name(i);
      rows.push_back({name.empty() ? "?" : name, to_string(nodes[i].shape), "not listed",
                      std::string("the loss depends on it, through ") + first_reader(nodes, i) +
                          ": is its layer missing from TAPEGRAD_FIELDS?",
                      false});
    }
  }
  if (rows.empty())
    rows.push_back(
        {std::to_string(missing) + " more", "", "not listed",
         "the loss depends on them: is their layer missing from TAPEGRAD_FIELDS? Report before the Tape ends "
         "to see which",
         false});
  return rows;
}

}  // namespace

template <class T> bool gradient_report(std::ostream& out, const NamedConstParameters<T>& parameters) {
  const auto is_trained = [](const auto& named) { return named.second->requires_grad(); };
  const auto has_grad = [&](const auto& named) { return is_trained(named) && named.second->has_grad(); };
  const auto trained = std::ranges::count_if(parameters, is_trained);
  if (trained > 0 && std::ranges::none_of(parameters, has_grad)) {
    out << "none of " << trained << " parameters has a gradient: backward() was not called, or zero_grad() after it\n";
    return false;
  }
  Table table;
  HeldArrays arrays;
  bool is_valid = true;
  for (const auto& [path, parameter] : parameters) {
    Row row = row_of(path, *parameter);
    is_valid = is_valid && row.is_valid;
    if (parameter->size() > 0) arrays.emplace_back(path, parameter->value().data());
    table.add({row.name, row.shape, row.gradient, row.note});
  }
  for (const Row& row : unlisted(parameters)) {
    is_valid = false;
    table.add({row.name, row.shape, row.gradient, row.note});
  }
  out << table;
  print_copies(out, arrays);
  return is_valid;
}

template bool gradient_report(std::ostream&, const NamedConstParameters<float>&);
template bool gradient_report(std::ostream&, const NamedConstParameters<double>&);

}  // namespace tapegrad::detail
