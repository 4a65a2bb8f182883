#include "ranks.hpp"

#include <iomanip>
#include <sstream>

namespace examples {

namespace tg = tapegrad;

bool is_first_rank() { return tg::mpi::Group().rank() == 0; }

OwnDraws::OwnDraws(std::size_t batch) {
  const tg::mpi::Group ranks;
  if (ranks.size() == 1) return;
  common_ = tg::default_generator();
  const auto [key, count] = common_->state();
  const tg::Generator of_batch(tg::random_bits(tg::random_bits(key, count), batch));
  tg::default_generator() = ranks.fork_generator(of_batch);
}

OwnDraws::~OwnDraws() {
  if (common_) tg::default_generator() = *common_;
}

TrainingRanks::TrainingRanks(const Optimizers& optimizers, const tg::Parameters<float>& parameters, bool divide_state)
    : optimizers_(optimizers), average_(group_, parameters) {
  if (!divide_state || !are_several()) return;
  for (tg::Optimizer<float>* const optimizer : optimizers) {
    if (auto* const sgd = dynamic_cast<tg::SGD<float>*>(optimizer)) sgd_.emplace(group_, *sgd);
    if (auto* const adamw = dynamic_cast<tg::AdamW<float>*>(optimizer)) adamw_.emplace(group_, *adamw);
    if (auto* const muon = dynamic_cast<tg::Muon<float>*>(optimizer)) muon_.emplace(group_, *muon);
  }
}

TrainingRanks::Mean TrainingRanks::mean_of(const StepLoss& part) const {
  if (!are_several()) return {double(part.loss.item()), part.tokens, 1};
  const double labels = part.loss.defined() ? double(part.labels) : 0;
  tg::Array<double> sums(tg::Shape{3}, 0.0);
  if (labels > 0) sums(0) = labels * double(part.loss.item());
  sums(1) = labels;
  sums(2) = double(part.tokens);
  sums = group_.sum(std::move(sums));
  return {sums(0) / sums(1), static_cast<std::size_t>(sums(2)), labels / sums(1)};
}

// average_ divides by the number of ranks. Scaling each contribution by that number yields the sum.
void TrainingRanks::sweep(const StepLoss& part, double share, bool is_last) {
  const auto scale = static_cast<float>(share * double(group_.size()));
  if (is_last) average_.begin();
  if (scale > 0) part.loss.backward(tg::Array<float>(tg::Shape{}, scale));
  if (is_last) average_.finish();
}

template <class Use> void TrainingRanks::with_sharded(Use use) {
  if (muon_) use(*muon_);
  if (sgd_) use(*sgd_);
  if (adamw_) use(*adamw_);
}

void TrainingRanks::step() {
  with_sharded([](auto& sharded) { sharded.step(); });
  if (!divides_state())
    for (tg::Optimizer<float>* const optimizer : optimizers_) optimizer->step();
}

void TrainingRanks::with_whole_state(const std::function<void()>& save) {
  with_sharded([](auto& sharded) { sharded.gather(); });
  if (group_.rank() == 0) save();
  with_sharded([](auto& sharded) { sharded.keep_own(); });
}

void TrainingRanks::print_state(std::ostream& out) {
  if (!divides_state()) return;
  double own = 0;
  with_sharded([&](const auto& sharded) { own += double(sharded.state_bytes()); });
  const double all = group_.sum(own);
  std::ostringstream line;
  line << std::fixed << std::setprecision(1) << "optimizer state: " << own / 1e6 << " MB on this rank, " << all / 1e6
       << " MB on all " << group_.size() << '\n';
  out << line.str();
}

}  // namespace examples
