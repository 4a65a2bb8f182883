/// What a fuzzer of the example programs is made with, beside fuzz.hpp.
#pragma once

#include <string>

#include "../../examples/common/printable.hpp"
#include "fuzz.hpp"

namespace fuzz {

/// The refusal as a program prints it, which makes one printable line of every message.
template <class Call> std::string program_refusal(Call call) { return refusal(call, examples::one_line); }

}  // namespace fuzz
