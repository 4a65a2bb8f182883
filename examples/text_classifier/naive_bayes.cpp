#include "naive_bayes.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

using examples::Ids;

namespace {

constexpr std::int64_t kNone = -1;  // in place of a predecessor

template <class Use> void for_each_feature(const Ids& ids, Use use) {
  for (std::size_t t = 0; t < ids.size(); ++t) {
    use(IdPair{kNone, ids[t]});
    if (t > 0) use(IdPair{ids[t - 1], ids[t]});
  }
}

}  // namespace

NaiveBayes::NaiveBayes(const std::vector<Ids>& texts, const std::vector<std::int64_t>& labels, std::size_t classes)
    : log_prior_(classes) {
  std::vector<double> totals(classes);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto label = static_cast<std::size_t>(labels[i]);
    ++log_prior_[label];
    for_each_feature(texts[i], [&](const IdPair& feature) {
      ++features_.try_emplace(feature, classes).first->second[label];
      ++totals[label];
    });
  }
  for (double& count : log_prior_) count = std::log(count / static_cast<double>(texts.size()));
  const auto distinct = static_cast<double>(features_.size());
  for (auto& [feature, counts] : features_)
    for (std::size_t label = 0; label < classes; ++label)
      counts[label] = static_cast<float>(std::log((1 + counts[label]) / (totals[label] + distinct)));
}

std::int64_t NaiveBayes::predict(const Ids& ids) const {
  std::vector<double> scores = log_prior_;
  for_each_feature(ids, [&](const IdPair& feature) {
    if (const auto found = features_.find(feature); found != features_.end())
      for (std::size_t label = 0; label < scores.size(); ++label) scores[label] += found->second[label];
  });
  return std::max_element(scores.begin(), scores.end()) - scores.begin();
}

std::vector<float> NaiveBayes::ratios(std::int64_t token) const { return ratios(IdPair{kNone, token}); }

std::vector<float> NaiveBayes::ratios(const IdPair& pair) const {
  const auto found = features_.find(pair);
  if (found == features_.end()) return std::vector<float>(log_prior_.size());
  std::vector<float> ratios = found->second;
  const float mean = std::accumulate(ratios.begin(), ratios.end(), 0.0F) / static_cast<float>(ratios.size());
  for (float& ratio : ratios) ratio -= mean;
  return ratios;
}
