#include "gradient_report.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <vector>

#include "../../engine/report/internal/table.hpp"
#include "../../engine/tape/internal/last_sweep.hpp"
#include "../../engine/tape/internal/recording.hpp"
#include "../model/internal/copies.hpp"

namespace tapegrad::detail {
namespace {

struct Row {
  std::string name, shape, gradient, note;
  bool sound = true;
};

template <class T> Row row_of(const std::string& name, const Parameter<T>& parameter) {
  Row row{name, to_string(parameter.shape()), "no gradient", "", false};
  if (!parameter.requires_grad()) {
    row.gradient = "frozen";
    row.sound = true;
    return row;
  }
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

// The parameters that this thread's last sweep reached beside some of the model's, and that the model does not list.
template <class T> std::vector<Row> unlisted(const NamedConstParameters<T>& parameters) {
  std::vector<Row> rows;
  const LastSweep<T>& last = LastSweep<T>::of_this_thread();
  const auto was_swept = [&](const auto& named) { return named.second.place()->last_sweep == last.number; };
  if (last.number == 0 || std::ranges::none_of(parameters, was_swept)) return rows;
  const auto& swept = last.parameters;
  for (auto reached = swept.rbegin(); reached != swept.rend(); ++reached) {  // in the order of recording
    const auto leaf = reached->leaf.lock();
    const auto is_it = [&](const auto& named) { return named.second.place() == leaf; };
    if (!leaf || std::ranges::any_of(parameters, is_it)) continue;
    rows.push_back({leaf->name.empty() ? "?" : leaf->name, to_string(leaf->shape), "not listed",
                    std::string("the loss depends on it, through ") + reached->operation +
                        ": is its layer missing from TAPEGRAD_FIELDS?",
                    false});
  }
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
  bool sound = true;
  for (const auto& [path, parameter] : parameters) {
    Row row = row_of(path, *parameter);
    sound = sound && row.sound;
    if (parameter->size() > 0) arrays.emplace_back(path, parameter->value().data());
    table.add({row.name, row.shape, row.gradient, row.note});
  }
  for (const Row& row : unlisted(parameters)) {
    sound = false;
    table.add({row.name, row.shape, row.gradient, row.note});
  }
  out << table;
  print_copies(out, arrays);
  return sound;
}

template bool gradient_report(std::ostream&, const NamedConstParameters<float>&);
template bool gradient_report(std::ostream&, const NamedConstParameters<double>&);

}  // namespace tapegrad::detail
