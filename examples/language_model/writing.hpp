/// What a language model does with what it has learned: it writes, and shows what it attends to.
#pragma once

#include <tapegrad/tapegrad.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "../common/vocabulary.hpp"
#include "options.hpp"
#include "writer.hpp"

/// A text that a model goes on with, id by id. What the model has seen stays in its caches, so that an id costs no more
/// than its own row. A text that outgrows the context is gone on with from its last half of a context, read anew: the
/// positions of all that is left have changed.
class Continuation {
 public:
  /// ids: one or more. All that is chosen draws from the generator. The model must be switched to evaluation.
  Continuation(const Writer& writer, examples::Ids ids, const WritingOptions& options, tapegrad::Generator& generator);

  /// Chooses the id that comes next. Of the marks, only the end may come, and that in a line that has begun.
  std::int64_t next();

 private:
  const Writer& writer_;
  examples::Ids ids_;  // what the model sees, or is to see
  std::size_t cached_ = 0;
  tapegrad::SampleOptions choice_;
  LanguageModel<>::Caches caches_;
};

/// What is wrong with the texts to write on from and to explain is said before the long work, with
/// std::invalid_argument.
void check_use(const Writer& writer, const Options& options);

/// Writes the page of a step on a text that the user gave, or on the first of the tests.
void show_step(const Writer& writer, const examples::StepPageOptions& options, const std::vector<examples::Ids>& tests);

/// Writes lines or a text, and explains one, as the user asked for. The same seed writes the same.
void use(Writer& writer, const Options& options);

/// A line that the model writes, for looking at while it learns. The model evaluates meanwhile, and trains afterwards.
std::string sample_line(Writer& writer, const Options& options);
