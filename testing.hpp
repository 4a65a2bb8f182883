/// For tests of models and operations: gradients against finite differences, steps against a reference.
#pragma once

#include "engine/compare.hpp"
#include "engine/doctest.hpp"
#include "engine/gradcheck.hpp"
#include "layers/gradcheck.hpp"
