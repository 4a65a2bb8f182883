/// Generates text id by id.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstddef>
#include <cstdint>

#include "../common/vocabulary.hpp"
#include "model.hpp"

/// Continues a text id by id. Key-value caches limit the work to each id's own row. When the text outgrows the context,
/// keeps half a context of ids and recomputes the caches, since all positions have changed.
class Continuation {
 public:
  /// ids: at least one. The model must outlive this object and be in evaluation mode. context: maximum number of ids
  /// the model sees at once.
  Continuation(const LanguageModel<>& model, std::size_t context, examples::Ids ids,
               const tapegrad::SampleOptions& choice);

  /// Samples the next id among those >= `first`.
  std::int64_t next(std::int64_t first = 0);

 private:
  const LanguageModel<>& model_;
  std::size_t context_;
  examples::Ids ids_;  // the first cached_ ids are in the caches
  std::size_t cached_ = 0;
  tapegrad::SampleOptions choice_;
  LanguageModel<>::Caches caches_;
};
