/// PyTorch's results in fixtures/models.json.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <paths.hpp>

#include <algorithm>
#include <fstream>
#include <vector>

inline const nlohmann::json& fixtures() {
  static const nlohmann::json all =
      nlohmann::json::parse(std::ifstream(TAPEGRAD_SOURCES "/tests/fixtures/models.json"));
  return all;
}

/// The fixture's numbers as an array of this shape.
inline tapegrad::Array<double> array_of(const nlohmann::json& fixture, const tapegrad::Shape& shape) {
  const auto data = fixture.get<std::vector<double>>();
  tapegrad::Array<double> array(shape);
  REQUIRE(array.size() == data.size());
  std::copy(data.begin(), data.end(), array.begin());
  return array;
}
