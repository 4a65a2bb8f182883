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
  require_usage(!in_backward_, "backward",
                "expected a call outside the Tape's own backward pass, got one within it, such as from a hook; "
                "use another Tape there");
  in_backward_ = true;
}

}  // namespace tapegrad::detail
