/// Common names and headers for tests of tensors in double, the type for checking gradients.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "close.hpp"

namespace tg = tapegrad;
using Array = tg::Array<double>;
using Tensor = tg::Tensor<double>;
using Parameter = tg::Parameter<double>;
using doctest::Contains;

/// A parameter without axes: its gradient is w.grad()().
inline Parameter scalar(double value) { return Parameter(Array(tg::Shape{}, value)); }
