/// Trains an encoder-decoder Transformer on pairs. By default it learns how English words are pronounced; `pronounce
/// --help` lists the options.

#include <tapegrad/tapegrad.hpp>

#include <iostream>
#include <stdexcept>
#include <string>

#include "../common/printable.hpp"
#include "../common/program.hpp"
#include "../common/ranks.hpp"
#include "options.hpp"
#include "pairs.hpp"
#include "pronouncer.hpp"
#include "search.hpp"
#include "train.hpp"
#include "use.hpp"

namespace tg = tapegrad;

namespace pronounce {

int learn(const PronounceOptions& options) {
  const Pairs pairs = read_pairs(options.run);
  const std::string print_of_pairs = fingerprint(pairs);
  if (!options.resume.empty() && examples::read_saved<SavedRun>(options.resume).fingerprint != print_of_pairs)
    throw std::runtime_error(examples::printable(pairs.name) + ": expected the run's pairs, got others");
  Pronouncer pronouncer = options.resume.empty() ? make_pronouncer(pairs, options) : load(options.resume);
  check_use(pronouncer, options);
  tg::print(std::cout, pronouncer.model);

  const int status = train(pronouncer, pairs, options, print_of_pairs);
  if (!examples::is_first_rank()) return status;
  print(test(pronouncer, pairs.test, options.beams), pronouncer.has_stress);
  use(pronouncer, options, pairs.test);
  return status;
}

int use_saved_model(const PronounceOptions& options) {
  Pronouncer pronouncer = load(options.load);
  check_use(pronouncer, options);
  tg::print(std::cout, pronouncer.model);
  if (!examples::is_first_rank()) return 0;
  Pairs pairs;
  const bool only_uses = !options.words.empty() || options.explain.wanted || options.page.text;
  if (!only_uses && !pronouncer.has_stress && options.run.data.empty())
    throw std::runtime_error("--load: requires --pronounce, --explain, --page or --data for a model of other pairs");
  if (!options.run.data.empty() || !only_uses) {
    RunOptions run = options.run;
    run.source = pronouncer.source_unit;
    run.target = pronouncer.target_unit;
    pairs = read_pairs(run);
    print(test(pronouncer, pairs.test, options.beams), pronouncer.has_stress);
  }
  use(pronouncer, options, pairs.test);
  return 0;
}

}  // namespace pronounce

int main(int argc, char** argv) {
  using namespace pronounce;
  CLI::App app;
  PronounceOptions options;
  add_options(app, options);
  return examples::run_program(app, argc, argv, [&] {
    tg::manual_seed(options.run.seed);
    if (!examples::is_first_rank()) examples::write_nothing(options.outputs, options.page);
    examples::prepare_outputs(options.outputs, options.page, options.explain, options.resume,
                              {options.run.data, options.load});
    return options.load.empty() ? learn(options) : use_saved_model(options);
  });
}
