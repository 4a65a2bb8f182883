// A profiling tape counts as saved the bytes kept alive by its rules, for every sample in the table of operations.
#include <tapegrad/inspect/internal/observers.hpp>
#include <tapegrad/testing.hpp>

#include <doctest/doctest.h>

#include <cstddef>

#include "../../operations/table.hpp"

namespace tg = tapegrad;
using namespace operations;

namespace {

// Inputs whose values are owned only by them and by rules; a parameter also owns its value.
Inputs<double> recorded_inputs(const Sample& sample, const tg::Parameter<double>& p) {
  Inputs<double> inputs;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i)
    inputs.push_back(tg::record("input", numbers<double>(sample.inputs[i], i), {p}, [](const auto&, auto&) {}));
  return inputs;
}

std::size_t saved_in_all(const tg::detail::Nodes<double>& nodes) {
  std::size_t sum = 0;
  for (const auto& entry : tg::detail::observers_of(nodes)->profile()->entries()) sum += entry.saved;
  return sum;
}

}  // namespace

TEST_CASE("The reported saved bytes are those held by the recording, for every operation") {
  for (const Sample& sample : table().samples) SUBCASE(sample.title().c_str()) {
      const tg::Parameter<double> p(tg::Array<double>{1.0});
      const tg::Tape tape({.profile = true});
      const auto& recording = tape.recording()->of<double>();
      const std::ptrdiff_t before = tg::detail::array_bytes_in_use;
      tg::manual_seed(0);
      (void)sample.in_double(recorded_inputs(sample, p));
      const auto kept = static_cast<std::size_t>(tg::detail::array_bytes_in_use - before);
      const std::size_t operations = recording.size() - 1 - sample.inputs.size();
      CAPTURE(operations);
      CHECK(saved_in_all(recording) >= kept);
      // An array saved twice is counted twice and stored once, as when queries and keys are one tensor.
      if (operations == 1) CHECK(saved_in_all(recording) <= 2 * kept);
    }
}
