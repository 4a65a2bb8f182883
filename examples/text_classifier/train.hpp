/// Training of text_classifier.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../common/training.hpp"
#include "classifier.hpp"
#include "model.hpp"

/// Trains until all steps are done, the user stops it, or the validation loss stops falling. With validation texts,
/// restores the weights of the lowest loss. Then calls `keep` on the first rank. `page`: file of a page about a failed
/// step, or empty. Returns the exit status.
int train(
    Model& model, const Sequences& data, const Sequences& validation, const examples::TrainingOptions& options,
    const std::string& page = "", const std::function<void()>& keep = [] {}, bool divide_state = false);

/// A classifier and the exit status of its training.
struct Trained {
  Classifier classifier;
  int status;
};

/// Makes a classifier for the texts, prints its model and trains it, with the share options.validation of the texts for
/// validation. Then calls `keep` with it.
Trained learn(
    std::vector<Example> texts, const std::vector<std::string>& labels, const Options& options,
    const std::function<void(const Classifier&)>& keep = [](const Classifier&) {});
