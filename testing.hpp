/// For tests of models and operations: gradients against finite differences, steps against a reference.
#pragma once

#include "engine/testing/compare.hpp"
#include "engine/testing/doctest.hpp"
#include "engine/testing/gradcheck.hpp"
#include "layers/model/gradcheck.hpp"
#include "layers/page/gradcheck.hpp"
