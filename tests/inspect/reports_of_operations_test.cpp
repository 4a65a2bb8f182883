/// Reports about a tape, for every sample in the table of operations.
#include <tapegrad/engine/array/internal/layout.hpp>
#include <tapegrad/inspect/internal/node_view.hpp>

#include <chrono>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../operations/table.hpp"
#include "in_double.hpp"
#include "special_values.hpp"

using namespace operations;

namespace {

// The sample's inputs as parameters named x0, x1, ...
std::vector<Parameter> named_parameters(const Sample& sample) {
  std::vector<Parameter> x;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    x.emplace_back(numbers<double>(sample.inputs[i], i));
    x.back().set_name("x" + std::to_string(i));
  }
  return x;
}

Tensor call(const Sample& sample, const std::vector<Parameter>& x) {
  tg::manual_seed(0);
  return sample.in_double(Inputs<double>(x.begin(), x.end()));
}

template <class Visit> void for_each_node(Visit visit) {
  tg::detail::for_each_node(*tg::Tape::current(), [&](const auto& node) { visit(node); });
}

// The first operation that reads each parameter on the current tape.
std::map<std::string, std::string> first_readers() {
  std::vector<std::string> names;  // of the nodes on double
  std::map<std::string, std::string> readers;
  for_each_node([&](const auto& node) {
    names.push_back(node.is_parameter ? node.name : "");
    for (const std::int32_t input : node.inputs)
      if (input >= 0) readers.emplace(names[static_cast<std::size_t>(input)], node.operation.name);
  });
  readers.erase("");
  return readers;
}

// The line that begins with the word.
std::string line_of(const std::string& text, const std::string& word) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(word + ' ')) return line;
  return "";
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

}  // namespace

TEST_CASE("For every operation, the gradient report names the first reader of each unlisted parameter") {
  for (const Sample& sample : table().samples) {
    INFO(sample.title());
    const std::vector<Parameter> x = named_parameters(sample);
    Parameter listed(Array(tg::Shape{}, 1.0));
    listed.set_name("listed");
    const tg::Tape tape;
    (tg::sum(call(sample, x)) * listed).backward();
    std::map<std::string, std::string> readers = first_readers();
    readers.erase("listed");
    std::ostringstream report;
    CHECK(tg::gradient_report(report, listed) == readers.empty());
    for (const auto& [parameter, reader] : readers) {
      CAPTURE(report.str());
      CHECK(line_of(report.str(), parameter)
                .ends_with("  the loss depends on it, through " + reader +
                           ": is its layer missing from TAPEGRAD_FIELDS?"));
    }
  }
}

TEST_CASE("For every operation, anomaly mode names the parameter that is not finite") {
  for (const Sample& sample : table().samples) {
    std::vector<Parameter> x = named_parameters(sample);
    const auto readers = [&] {
      const tg::Tape tape;
      (void)call(sample, x);
      return first_readers();
    }();
    for (std::size_t i = 0; i < x.size(); ++i) {
      INFO(sample.title(), ", input ", i);
      if (x[i].size() == 0 || !readers.contains(x[i].name())) continue;
      double& last = x[i].mutable_value().data()[x[i].size() - 1];
      const double before = std::exchange(last, kNaN);
      const std::string expected = '[' + readers.at(x[i].name()) + "] expected finite parameters, got NaN at " +
                                   tg::to_string(tg::detail::index_of(x[i].size() - 1, x[i].shape())) + " of " +
                                   tg::described(x[i]);
      const tg::Tape tape({.detect_anomaly = true});
      CHECK_THROWS_WITH_AS(call(sample, x), expected.c_str(), std::runtime_error);
      last = before;
    }
  }
}

TEST_CASE("For every operation, the profiled forward times include all time since the tape's start") {
  constexpr double pause = 100e-6;
  for (const Sample& sample : table().samples) {
    INFO(sample.title());
    const std::vector<Parameter> x = named_parameters(sample);
    const Clock::time_point start = Clock::now();
    const tg::Tape tape({.profile = true});
    const Clock::time_point started = Clock::now();
    while (seconds_since(started) < pause) continue;
    (void)call(sample, x);  // reads each parameter for the first time
    double forward = 0;
    bool has_operation = false;
    for_each_node([&](const auto& node) {
      if (node.is_parameter) CHECK(node.profile->forward == 0);
      has_operation |= !node.is_parameter;
      forward += node.profile->forward;
    });
    CHECK(forward >= (has_operation ? pause : 0));
    CHECK(forward <= seconds_since(start));
  }
}
