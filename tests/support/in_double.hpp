/// The names that tests of tensors share, for numbers in double, in which gradients are checked.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>

#include "close.hpp"

namespace tg = tapegrad;
using Array = tg::Array<double>;
using Tensor = tg::Tensor<double>;
using Parameter = tg::Parameter<double>;
using doctest::Contains;

/// A parameter of no axes: its gradient is w.grad()().
inline Parameter scalar(double value) { return Parameter(Array(tg::Shape{}, value)); }
