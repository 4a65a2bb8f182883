#include "gradient_average.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "../../engine/array/internal/error.hpp"
#include "../../engine/kernels/instruction_sets.hpp"
#include "../internal/optimizer.hpp"
#include "group.hpp"
#include "internal/world.hpp"

namespace tapegrad::mpi {

using tapegrad::detail::parallel_vectorized;
using tapegrad::detail::require;
using tapegrad::detail::require_usage;

static constexpr const char* kName = "average_gradients";

// True between begin() and finish() of any average. The sums of two concurrent ones could start in a different order on
// each rank.
static bool is_averaging = false;

// The mean is sum(w_r g_r) / sum(w_r) over the ranks r. Each rank knows sum(w_r) before it copies its first gradient
// into a bucket. It copies share * g with share = w_r / sum(w_r), so the sum over the ranks is the mean.
template <class T> class GradientAverage<T>::State {
 public:
  State(const Parameters<T>& parameters, std::size_t bucket_bytes)
      : parameters_(parameters), bucket_bytes_(bucket_bytes), places_(parameters.size()) {
    require(!parameters.empty(), kName, "expected parameters, got none");
    require(bucket_bytes > 0, kName, "expected buckets of 1 byte or more, got ", bucket_bytes);
    tapegrad::detail::require_each_once(kName, parameters);
    std::vector<std::uint64_t> layout{sizeof(T), bucket_bytes};
    for (const auto& parameter : parameters) layout.push_back(parameter->size());
    layout_ = static_cast<double>(detail::checksum(layout.data(), layout.size() * sizeof layout[0]) >> 11);
    if (detail::size() == 1) return;  // the gradients already are the mean

    for (std::size_t i = parameters.size(); i-- > 0;) order_.push_back(i);  // models mostly use their fields in order
    fill_buckets();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  ~State() {
    for (HookHandle& hook : hooks_) hook.remove();
    if (is_active_) {  // after an exception: MPI may still write to these buffers, so they live until exit
      is_averaging = false;
      static auto* const kept = new std::vector<std::pair<std::vector<Bucket>, std::vector<double>>>;
      kept->emplace_back(std::move(buckets_), std::move(totals_));
    }
  }

  void register_hooks() {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      hooks_.push_back(parameters_[i]->register_hook([this, i](Array<T>& gradient) {
        if (is_active_) arrive(i, gradient);
      }));
  }

  void begin(double weight) {
    require_usage(!is_averaging, kName, "expected finish() before the next begin(), got none");
    weight_ = weight;
    totals_.assign(1 + detail::size(), 0.0);
    totals_[0] = weight >= 0 ? weight : std::numeric_limits<double>::quiet_NaN();  // NaN in the sum tells all ranks
    totals_[1 + detail::rank()] = layout_;
    totals_sum_ = detail::start_sum(totals_.data(), totals_.size(), detail::Overlap::calls);
    empty_buckets();
    arrivals_.clear();
    is_active_ = is_averaging = true;
  }

  void finish() {
    require_usage(is_active_, kName, "expected begin() before finish(), got none");
    totals_sum_.wait(kName);
    if (detail::size() > 1 && !hooks_.empty() && layouts_agree() && !std::exchange(is_in_order_, true))
      order_by_arrival();
    for (const std::size_t i : order_)
      if (!arrived_[i]) copy_to_bucket(i, nullptr);
    start_complete();
    for (std::size_t b = 0; b < started_; ++b) buckets_[b].sum.wait(kName);
    is_active_ = is_averaging = false;
    require(std::isfinite(totals_[0]) && totals_[0] > 0, kName,
            "expected finite weights of 0 or more on all ranks and above 0 on one, got ", weight_,
            " on this rank and a sum of ", totals_[0]);
    require(layouts_agree(), kName, "expected parameters and buckets of the same sizes on all ranks, got others than ",
            "this rank's ", parameters_.size(), " parameters on another rank");
    for (const std::size_t i : order_) copy_from_bucket(i);
  }

 private:
  struct Bucket {
    std::vector<std::size_t> members;  // parameters
    std::size_t size = 0;              // of the numbers
    Array<T> numbers;                  // gradients, then the number of ranks with a gradient, per member
    std::size_t missing = 0;           // members not copied in yet
    detail::Request sum{};
  };
  struct Place {
    std::size_t bucket, first, flag;  // indices into the bucket's numbers
  };

  void fill_buckets() {
    std::vector<Bucket> buckets;
    for (const std::size_t i : order_) {
      if (buckets.empty() || buckets.back().size * sizeof(T) >= bucket_bytes_) buckets.emplace_back();
      Bucket& bucket = buckets.back();
      places_[i] = {buckets.size() - 1, bucket.size, 0};
      bucket.size += parameters_[i]->size();
      bucket.members.push_back(i);
    }
    for (Bucket& bucket : buckets) {
      for (const std::size_t i : bucket.members) places_[i].flag = bucket.size++;
      bucket.numbers = Array<T>(Shape{bucket.size});
    }
    buckets_ = std::move(buckets);
  }

  void arrive(std::size_t i, const Array<T>& gradient) {
    require_usage(!arrived_[i], kName,
                  "expected one backward pass between begin() and finish(), got a second one that reaches ",
                  *parameters_[i], "; to accumulate, call begin() before the last pass");
    arrivals_.push_back(i);  // may throw, before anything changes
    arrived_[i] = true;
    if (!is_in_order_) return;
    copy_to_bucket(i, &gradient);
    start_complete();
    for (std::size_t b = 0; b < started_; ++b) buckets_[b].sum.progress();  // MPI progresses only during calls
  }

  /// Copies the parameter's accumulated gradient plus the arriving one, if any, into its bucket.
  void copy_to_bucket(std::size_t i, const Array<T>* arriving) {
    totals_sum_.wait(kName);
    const Place& place = places_[i];
    Bucket& bucket = buckets_[place.bucket];
    --bucket.missing;
    const Parameter<T>& parameter = *parameters_[i];
    const bool has = weight_ > 0 && (parameter.has_grad() || arriving);
    bucket.numbers(place.flag) = has ? T(1) : T(0);
    T* const to = bucket.numbers.data() + place.first;
    if (!has) {
      std::fill_n(to, parameter.size(), T(0));
      return;
    }
    const T* const accumulated = parameter.has_grad() ? parameter.grad().data() : nullptr;
    const T* const now = arriving ? arriving->data() : nullptr;
    const auto share = static_cast<T>(weight_ / totals_[0]);
    parallel_vectorized(parameter.size(), [=](std::size_t begin, std::size_t end) {
      if (accumulated && now)
        for (std::size_t k = begin; k < end; ++k) to[k] = share * (accumulated[k] + now[k]);
      else
        for (const T* from = now ? now : accumulated; begin < end; ++begin) to[begin] = share * from[begin];
    });
  }

  /// Starts the sums of complete buckets in bucket order, which is the same on all ranks.
  void start_complete() {
    while (started_ < buckets_.size() && buckets_[started_].missing == 0 && layouts_agree()) {
      Bucket& bucket = buckets_[started_++];
      bucket.sum = detail::start_sum(bucket.numbers.data(), bucket.numbers.size(), detail::Overlap::calls);
    }
  }

  /// Compares all ranks' checksums. Comparing with their mean is not enough: one rank's checksum can equal the mean of
  /// different ones. That rank would start its sums and wait for the others.
  bool layouts_agree() const {
    return std::all_of(totals_.begin() + 1, totals_.end(), [&](double layout) { return layout == layout_; });
  }

  void copy_from_bucket(std::size_t i) {
    const Place& place = places_[i];
    const Array<T>& numbers = buckets_[place.bucket].numbers;
    Parameter<T>& parameter = *parameters_[i];
    if (numbers(place.flag) == 0) return parameter.zero_grad();  // no rank with a weight above 0 has a gradient
    if (!parameter.has_grad()) parameter.set_grad(Array<T>(parameter.shape()));
    const T* const from = numbers.data() + place.first;
    T* const to = parameter.mutable_grad().data();
    parallel_vectorized(parameter.size(),
                        [=](std::size_t begin, std::size_t end) { std::copy(from + begin, from + end, to + begin); });
  }

  void empty_buckets() {
    for (Bucket& bucket : buckets_) bucket.missing = bucket.members.size();
    started_ = 0;
    arrived_.assign(parameters_.size(), false);
  }

  /// Orders parameters by the arrival of rank 0's gradients in the first step, followed by those without a gradient
  /// there. The first step copies its gradients after the backward pass. The position in a bucket affects the rounding
  /// of sums, so a resumed run needs the same buckets from its first step on.
  void order_by_arrival() {
    std::vector<std::size_t> order = arrivals_;
    std::ranges::copy_if(order_, std::back_inserter(order), [&](std::size_t i) { return !arrived_[i]; });
    detail::start_broadcast(order.data(), order.size() * sizeof order[0], 0).wait(kName);
    order_ = std::move(order);
    fill_buckets();
    empty_buckets();
  }

  Parameters<T> parameters_;
  std::size_t bucket_bytes_;
  double layout_;                   // checksum of all sizes, equal on all ranks
  std::vector<std::size_t> order_;  // indices of parameters, bucket after bucket
  std::vector<Place> places_;       // per parameter
  std::vector<Bucket> buckets_;
  std::vector<HookHandle> hooks_;

  // valid between begin() and finish()
  bool is_active_ = false, is_in_order_ = false;
  double weight_ = 0;
  std::vector<double> totals_;  // the sum of the weights, then each rank's layout checksum
  detail::Request totals_sum_;
  std::size_t started_ = 0;            // number of buckets whose sums have started
  std::vector<bool> arrived_;          // per parameter: its gradient has arrived
  std::vector<std::size_t> arrivals_;  // indices of parameters in order of arrival
};

template <class T>
GradientAverage<T>::GradientAverage(const Group&, const Parameters<T>& parameters, std::size_t bucket_bytes) {
  state_ = std::make_unique<State>(parameters, bucket_bytes);
  state_->register_hooks();
}

template <class T> GradientAverage<T>::GradientAverage(GradientAverage&&) noexcept = default;
template <class T> GradientAverage<T>& GradientAverage<T>::operator=(GradientAverage&&) noexcept = default;
template <class T> GradientAverage<T>::~GradientAverage() = default;

template <class T> typename GradientAverage<T>::State& GradientAverage<T>::state() const {
  require_usage(state_ != nullptr, kName, "expected an average of parameters, got a moved-from one");
  return *state_;
}

template <class T> void GradientAverage<T>::begin(double weight) { state().begin(weight); }

template <class T> void GradientAverage<T>::finish() { state().finish(); }

template <class T>
void GradientAverage<T>::of_whole_sweep(const Parameters<T>& parameters, const AverageOptions& options) {
  State state(parameters, options.bucket_bytes);
  state.begin(options.weight);
  state.finish();
}

template class GradientAverage<float>;
template class GradientAverage<double>;

}  // namespace tapegrad::mpi
