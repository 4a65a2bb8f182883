/// Helps to fuzz the example programs, besides fuzz.hpp.
#pragma once

#include <string>

#include "../../examples/common/printable.hpp"
#include "fuzz.hpp"

namespace fuzz {

/// The error as printed by a program: one printable line.
template <class Call> std::string program_refusal(Call call) { return refusal(call, examples::one_line); }

}  // namespace fuzz
