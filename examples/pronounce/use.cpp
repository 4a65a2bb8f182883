#include "use.hpp"

#include <cmath>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>

#include "../common/batches.hpp"
#include "../common/columns.hpp"
#include "../common/explain.hpp"
#include "../common/printable.hpp"
#include "../common/step_page.hpp"
#include "search.hpp"
#include "train.hpp"

namespace pronounce {

namespace tg = tapegrad;
using examples::Ids, examples::Vocabulary;

namespace {

examples::Padded as_batch(const Ids& ids) {
  const std::size_t chosen[] = {0};
  return examples::pad(std::vector<Ids>{ids}, chosen);
}

/// The likeliest target of a source, between begin and end marks.
Ids target_of(const Pronouncer& pronouncer, const Ids& source, std::size_t beams) {
  Ids target = find_targets(pronouncer, {source}, beams).front();
  target.insert(target.begin(), Vocabulary::begin);
  target.push_back(Vocabulary::end);
  return target;
}

void print_targets(const Pronouncer& pronouncer, const std::vector<std::string>& words, std::size_t beams) {
  std::vector<Ids> sources;
  for (const std::string& word : words) sources.push_back(pronouncer.read_source("--pronounce", word));
  const std::vector<Ids> targets = find_targets(pronouncer, sources, beams);
  std::vector<std::string> shown;
  for (const std::string& word : words) shown.push_back(examples::printable(word));
  std::cout << '\n';
  for (std::size_t i = 0; i < words.size(); ++i)
    std::cout << examples::flush_left(shown[i], examples::widest(shown) + 2)
              << examples::printable(pronouncer.target_text(targets[i])) << '\n';
}

/// Writes the decoder's attention to a source, for its likeliest target, and the gradients of the target's log
/// probability with respect to the weights. Each row is labeled with the token predicted there.
void explain(const Pronouncer& pronouncer, const examples::ExplainOptions& options, std::size_t beams) {
  const Ids source = pronouncer.read_source("--explain", options.text);
  const Ids target = target_of(pronouncer, source, beams);
  const Ids before(target.begin(), target.end() - 1), next(target.begin() + 1, target.end());
  const examples::Padded sources = as_batch(source);

  tg::Tape tape;
  auto [logits, weights] = pronouncer.model.with_weights(sources.ids, sources.keep, as_batch(before).ids);
  for (auto& of_layer : weights) of_layer.retain_grad();
  const auto log_probability = -tg::cross_entropy(logits, as_batch(next).ids, {.reduction = tg::Reduction::sum});
  log_probability.backward();

  const Ids tokens(next.begin(), next.end() - 1);
  std::ostringstream title;
  title << options.text << ": " << pronouncer.target_text(tokens) << ", probability " << std::fixed
        << std::setprecision(3) << std::exp(log_probability.item());
  std::cout << "\nattention of the decoder, " << examples::printable(title.str()) << ":\n";
  examples::write_attention(weights, pronouncer.shown_target(next), pronouncer.shown_source(source), options.name,
                            title.str());
}

void show_step(const Pronouncer& pronouncer, const PronounceOptions& options, const std::vector<Pair>& test) {
  Ids source, target;
  std::string about;
  if (options.page.text) {
    source = pronouncer.read_source("--page", *options.page.text);
    target = target_of(pronouncer, source, options.beams);
    about = examples::in_quotes(*options.page.text);
  } else {
    source = pronouncer.encode_source(test.front().source);
    target = pronouncer.encode_target(test.front().target);
    std::string text;
    for (const std::string& token : test.front().source) text += token;
    about = examples::in_quotes(text) + ", the first test source";
  }
  const auto loss_of_step = [&](const EncoderDecoder<>& model) {
    return loss_of(model, as_batch(source), as_batch(target), 0, tg::Reduction::mean);
  };
  const std::vector<std::string> from = examples::visible(pronouncer.shown_source(source)),
                                 to = examples::visible(pronouncer.shown_target({target.begin(), target.end() - 1}));
  const tg::PageAxis batch{"batch"}, width{};
  examples::write_step(options.page.file, pronouncer.model, loss_of_step,
                       {about,
                        {{"encoder", {batch, {"source", from}, width}},
                         {"decoder", {batch, {"target so far", to}, width}},
                         {"source.weight", {{"source token", examples::visible(pronouncer.sources.shown())}, width}},
                         {"target.weight", {{"target token", examples::visible(pronouncer.targets.shown())}, width}},
                         {"head.weight", {{"next token", examples::visible(pronouncer.targets.shown())}, width}}}});
}

}  // namespace

void check_use(const Pronouncer& pronouncer, const PronounceOptions& options) {
  for (const std::string& word : options.words) pronouncer.read_source("--pronounce", word);
  if (options.explain.wanted) pronouncer.read_source("--explain", options.explain.text);
  if (options.page.text) pronouncer.read_source("--page", *options.page.text);
}

void use(Pronouncer& pronouncer, const PronounceOptions& options, const std::vector<Pair>& test) {
  tg::eval(pronouncer.model);
  if (!options.page.file.empty()) show_step(pronouncer, options, test);
  if (!options.words.empty()) print_targets(pronouncer, options.words, options.beams);
  if (options.explain.wanted) explain(pronouncer, options.explain, options.beams);
}

}  // namespace pronounce
