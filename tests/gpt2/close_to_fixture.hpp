/// Compares results of the library with fixtures/gpt2.json.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>

/// The sum of all numbers, each multiplied by a different random number. It detects swapped elements.
template <class Iterator> double checksum(Iterator begin, Iterator end) {
  double sum = 0;
  for (std::uint64_t i = 0; begin != end; ++begin, ++i)
    sum += static_cast<double>(*begin) * tapegrad::random_uniform(0, i);
  return sum;
}

/// Compares an array, in the layout of Hugging Face's file, with the fixture's summary, an entry "values" or "gradient"
/// of a tensor. Each element may be off by the tolerance, and the sums by the resulting error.
template <class T>
void check_summary(const tapegrad::Array<T>& array, const nlohmann::json& summary, double tolerance) {
  double squares = 0;
  for (const T x : array) squares += static_cast<double>(x) * static_cast<double>(x);
  const double norm = summary["norm"], sum = summary["checksum"];
  const double off = tolerance * std::sqrt(static_cast<double>(array.size()));
  CHECK(std::abs(std::sqrt(squares) - norm) <= off);
  CHECK(std::abs(checksum(array.begin(), array.end()) - sum) <= off);
  for (const auto& element : summary["elements"]) {
    const std::size_t place = element[0];
    const double expected = element[1];
    CAPTURE(place);
    REQUIRE(place < array.size());
    CHECK(std::abs(static_cast<double>(array.data()[place]) - expected) <= tolerance);
  }
}

/// Expects the logits (B, T, V) of a fixture's model for its ids, each within the tolerance.
template <class T>
void check_logits(const tapegrad::Array<T>& logits, const nlohmann::json& expected, double tolerance) {
  const auto& checksums = expected["checksums"];
  const auto& last = expected["last"];  // of each sequence
  const std::size_t batch = checksums.size(), time = checksums[0].size(), vocabulary = last[0].size();
  REQUIRE(logits.shape() == tapegrad::Shape{batch, time, vocabulary});
  for (std::size_t b = 0; b < batch; ++b) {
    CAPTURE(b);
    for (std::size_t t = 0; t < time; ++t) {
      CAPTURE(t);
      const T* row = logits.data() + (b * time + t) * vocabulary;
      CHECK(std::abs(checksum(row, row + vocabulary) - double(checksums[b][t])) <=
            tolerance * std::sqrt(static_cast<double>(vocabulary)));
    }
    for (std::size_t v = 0; v < vocabulary; ++v) {
      CAPTURE(v);
      CHECK(std::abs(static_cast<double>(logits(b, time - 1, v)) - double(last[b][v])) <=
            tolerance + 1e-7);  // plus the fixture's rounding
    }
  }
}
