/// For tests of models and operations: checks gradients against finite differences.
#pragma once

#include "engine/gradcheck.hpp"
