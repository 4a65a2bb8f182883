/// Finds the targets of sources, and measures errors.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "../common/batches.hpp"
#include "../common/vocabulary.hpp"
#include "pronouncer.hpp"

namespace pronounce {

/// The likeliest target of each source, without begin and end marks. The model must be in evaluation mode.
std::vector<examples::Ids> find_targets(const Pronouncer& pronouncer, const std::vector<examples::Ids>& sources,
                                        std::size_t beams);

/// The fewest insertions, deletions and substitutions that turn one sequence into another (Levenshtein).
std::size_t edit_distance(const std::vector<std::string>& from, const std::vector<std::string>& to);

/// Errors on test pairs, counting a source with several targets once, with the closest of them.
struct Errors {
  std::size_t sources = 0, right = 0;  ///< right: found exactly
  std::size_t tokens = 0, edits = 0;   ///< of the closest targets; edits towards them

  double right_share() const { return static_cast<double>(right) / static_cast<double>(sources); }
  double edit_share() const { return static_cast<double>(edits) / static_cast<double>(tokens); }
};

/// A token found in place of another, or of none: "" for insertions and deletions.
struct Confusion {
  std::string right, found;
  std::size_t count;
};

struct Report {
  Errors all;
  Errors without_stress;              ///< of phonemes without their stress; none for other tokens
  std::vector<Confusion> confusions;  ///< most frequent first
};

/// Searches the targets of the test pairs' sources. Leaves the model in training mode.
Report test(Pronouncer& pronouncer, const std::vector<Pair>& pairs, std::size_t beams);

/// Prints the shares and the ten most frequent confusions, of phonemes if the pronouncer has stress.
void print(const Report& report, bool has_stress);

}  // namespace pronounce
