#include "internal/recording.hpp"

#include <atomic>

#include "../array/internal/error.hpp"

namespace tapegrad::detail {

static std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

Recording::Recording(const TapeOptions& options)
    : number_(next_number()), options_(options), of_float_(number_, options), of_double_(number_, options) {}

void Recording::begin_backward() {
  require_usage(!in_backward_, "backward", "expected no sweep of this Tape under way, given a call within one, as a ",
                "hook may make it; a Tape of its own can be swept there");
  in_backward_ = true;
}

}  // namespace tapegrad::detail
