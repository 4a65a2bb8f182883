#include "naive_bayes.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>

namespace tg = tapegrad;
using examples::Ids;

namespace {

constexpr std::int64_t no_predecessor = -1;

std::set<IdPair> features_of(const Ids& ids) {
  std::set<IdPair> features;
  for (std::size_t t = 0; t < ids.size(); ++t) {
    features.insert({no_predecessor, ids[t]});
    if (t > 0) features.insert({ids[t - 1], ids[t]});
  }
  return features;
}

double sum(const std::vector<double>& numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0.0); }

/// A count for each label.
std::vector<double> counts_from(const nlohmann::json& list, std::size_t classes) {
  if (list.size() != classes ||
      !std::ranges::all_of(list, [](const auto& count) { return count.is_number_unsigned(); }))
    throw std::invalid_argument("naive_bayes: expected " + std::to_string(classes) + " counts, got another list");
  return list;
}

}  // namespace

NaiveBayes::NaiveBayes(const std::vector<Ids>& texts, const std::vector<std::int64_t>& labels, std::size_t classes)
    : texts_(classes), features_(classes) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    ++texts_[static_cast<std::size_t>(labels[i])];
    count(texts[i], labels[i], 1);
  }
}

NaiveBayes::NaiveBayes(const nlohmann::json& settings, std::size_t classes)
    : texts_(counts_from(settings.at("texts"), classes)), features_(classes) {
  for (const auto& [feature, list] : settings.at("counts").get<std::map<IdPair, nlohmann::json>>()) {
    const Counts& counts = counts_[feature] = counts_from(list, classes);
    for (std::size_t label = 0; label < classes; ++label) features_[label] += counts[label];
  }
}

nlohmann::json NaiveBayes::settings() const {
  using Integers = std::vector<std::uint64_t>;
  std::map<IdPair, Integers> counts;
  for (const auto& [feature, count] : counts_) counts.emplace(feature, Integers(count.begin(), count.end()));
  return {{"texts", Integers(texts_.begin(), texts_.end())}, {"counts", counts}};
}

void NaiveBayes::count(const Ids& ids, std::int64_t label, double times) {
  const auto index = static_cast<std::size_t>(label);
  for (const IdPair& feature : features_of(ids)) {
    counts_.try_emplace(feature, texts_.size()).first->second[index] += times;
    features_[index] += times;
  }
}

NaiveBayes::Counts NaiveBayes::scores_of(const Ids& ids) const {
  std::vector<double> scores;
  for (const double texts : texts_) scores.push_back(std::log(1 + texts));
  for (const IdPair& feature : features_of(ids)) {
    const auto found = counts_.find(feature);
    if (found == counts_.end() || sum(found->second) == 0) continue;
    for (std::size_t label = 0; label < scores.size(); ++label)
      scores[label] += std::log((1 + found->second[label]) / (static_cast<double>(counts_.size()) + features_[label]));
  }
  const double mean = sum(scores) / static_cast<double>(scores.size());
  for (double& score : scores) score -= mean;
  return scores;
}

tg::Array<float> NaiveBayes::scores(const std::vector<Ids>& texts) const {
  tg::Array<float> table(tg::Shape{texts.size(), texts_.size()});
  auto place = table.begin();
  for (const Ids& ids : texts)
    for (const double score : scores_of(ids)) *place++ = static_cast<float>(score);
  return table;
}

tg::Array<float> NaiveBayes::left_out_scores(const std::vector<Ids>& texts, const std::vector<std::int64_t>& labels) {
  tg::Array<float> table(tg::Shape{texts.size(), texts_.size()});
  auto place = table.begin();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    count(texts[i], labels[i], -1);
    for (const double score : scores_of(texts[i])) *place++ = static_cast<float>(score);
    count(texts[i], labels[i], 1);
  }
  return table;
}
