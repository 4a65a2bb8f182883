/// Going on with a text, id by id.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <cstdint>

#include "../common/vocabulary.hpp"
#include "model.hpp"

/// A text that a model goes on with, id by id. What the model has seen stays in its caches, so that an id costs no more
/// than its own row. A text that outgrows the context is gone on with from its last half of a context, read anew: the
/// positions of all that is left have changed.
class Continuation {
 public:
  /// ids: one or more. The model, which must outlive this, is switched to evaluation; `context` is how many ids it sees
  /// at once.
  Continuation(const LanguageModel<>& model, std::size_t context, examples::Ids ids,
               const tapegrad::SampleOptions& choice);

  /// Chooses the id that comes next, from `first` on.
  std::int64_t next(std::int64_t first = 0);

 private:
  const LanguageModel<>& model_;
  std::size_t context_;
  examples::Ids ids_;  // what the model sees, or is to see
  std::size_t cached_ = 0;
  tapegrad::SampleOptions choice_;
  LanguageModel<>::Caches caches_;
};
