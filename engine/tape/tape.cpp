#include "tape.hpp"

#include "internal/recording.hpp"

namespace tapegrad {

Tape::Tape(const TapeOptions& options)
    : recordings_(detail::make_pooled<detail::Recordings>(options)), scope_(recordings_.get(), recordings_->id()) {}

std::size_t Tape::size() const { return recordings_->of<float>().size() + recordings_->of<double>().size(); }

}  // namespace tapegrad
