/// How text_classifier learns.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../common/training.hpp"
#include "classifier.hpp"
#include "model.hpp"

/// Trains the model until it has taken all steps, the user stops it, or its loss on the validation texts, of which
/// there may be none, falls no more; with validation texts the weights become those of the lowest loss. Then calls
/// `keep`, on the first rank. `page` is a file for a page of a step that fails; empty: none. Gives back the exit
/// status.
int train(
    Model& model, const Sequences& data, const Sequences& validation, const examples::TrainingOptions& options,
    const std::string& page = "", const std::function<void()>& keep = [] {}, bool divide_state = false);

/// A classifier, and the exit status of its training.
struct Trained {
  Classifier classifier;
  int status;
};

/// Makes a classifier of these texts, prints its model, and trains it; a share of the texts validates when the options
/// say so. Then calls `keep` with it.
Trained learn(
    std::vector<Example> texts, const std::vector<std::string>& labels, const Options& options,
    const std::function<void(const Classifier&)>& keep = [](const Classifier&) {});
