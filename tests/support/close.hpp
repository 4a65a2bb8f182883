/// Compares arrays in tests and reports the first difference.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

/// Expects equal shapes, and elements within tolerance * max(1, |expected|) of each other.
template <class Actual, class Expected>
void check_close(const Actual& actual, const Expected& expected, double tolerance = 1e-9) {
  const tapegrad::Array<double> a = actual, e = expected;
  CAPTURE(tapegrad::to_string(e.shape()));
  REQUIRE(tapegrad::to_string(a.shape()) == tapegrad::to_string(e.shape()));
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a.data()[i], y = e.data()[i];
    if (x == y || (std::isfinite(y) && std::abs(x - y) <= tolerance * std::max(1.0, std::abs(y)))) continue;
    FAIL_CHECK("flat index " << i << ": expected " << y << ", got " << x);
    return;
  }
}
