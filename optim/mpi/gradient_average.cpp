#include "gradient_average.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "../../engine/array/internal/error.hpp"
#include "../../engine/kernels/parallel_vectorized.hpp"
#include "../internal/each_once.hpp"
#include "checksum.hpp"
#include "internal/world.hpp"

namespace tapegrad::mpi {

using tapegrad::detail::parallel_vectorized;
using tapegrad::detail::require;
using tapegrad::detail::require_usage;

namespace {

constexpr const char* kName = "average_gradients";

// Whether one is between begin() and finish(): the sums of two would come in another order on each rank.
bool is_averaging = false;

}  // namespace

// The mean is sum(w_r g_r) / sum(w_r) over the ranks r. Each rank knows the sum of the weights before it lays its first
// gradient into a bucket, and lays in share * g with share = w_r / sum(w_r): what comes back is the mean.
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
    if (detail::size() == 1) return;  // whose gradients are the mean

    for (std::size_t i = parameters.size(); i-- > 0;) order_.push_back(i);  // fields are mostly used in their order
    fill_buckets();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  ~State() {
    for (HookHandle& hook : hooks_) hook.remove();
    if (is_active_) {  // an exception has come between: what MPI may still write to stays until the program ends
      is_averaging = false;
      static auto* const kept = new std::vector<std::pair<std::vector<Bucket>, std::vector<double>>>;
      kept->emplace_back(std::move(buckets_), std::move(totals_));
    }
  }

  void register_hooks() {
    if (detail::size() == 1) return;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      hooks_.push_back(parameters_[i]->register_hook([this, i](Array<T>& gradient) {
        if (is_active_) arrive(i, gradient);
      }));
  }

  void begin(double weight) {
    require_usage(!is_averaging, kName, "expected finish() before the next begin(), got none");
    weight_ = weight >= 0 ? weight : std::numeric_limits<double>::quiet_NaN();  // then all ranks come to know
    totals_.assign(1 + detail::size(), 0.0);
    totals_[0] = weight_;
    totals_[1 + detail::rank()] = layout_;
    totals_sum_ = detail::start_sum(totals_.data(), totals_.size(), detail::Beside::calls);
    empty_buckets();
    arrivals_.clear();
    is_active_ = is_averaging = true;
  }

  void finish() {
    require_usage(is_active_, kName, "expected begin() before finish(), got none");
    totals_sum_.wait(kName);
    if (!hooks_.empty() && layouts_agree() && !std::exchange(is_in_order_, true)) order_by_arrival();
    for (const std::size_t i : order_)
      if (!arrived_[i]) lay_in(i, nullptr);
    start_complete();
    for (std::size_t b = 0; b < started_; ++b) buckets_[b].sum.wait(kName);
    is_active_ = is_averaging = false;
    require(std::isfinite(totals_[0]) && totals_[0] > 0, kName,
            "expected weights of 0 or more on all ranks and above 0 on one, got ", weight_, " here and a sum of ",
            totals_[0]);
    require(layouts_agree(), kName, "expected parameters and buckets of the same sizes on all ranks, got others on ",
            "another rank than the ", parameters_.size(), " parameters here");
    for (const std::size_t i : order_) take_out(i);
  }

 private:
  struct Bucket {
    std::vector<std::size_t> members;  // parameters
    Array<T> numbers;                  // theirs, then for each how many ranks have a gradient of it
    std::size_t missing = 0;           // members that are not laid in yet
    detail::Request sum{};
  };
  struct Place {
    std::size_t bucket, first, flag;  // in the bucket's numbers
  };

  void fill_buckets() {
    std::vector<Bucket> buckets;
    std::size_t size = 0;
    const auto close = [&](Bucket& bucket) {
      for (const std::size_t i : bucket.members) places_[i].flag = size++;
      bucket.numbers = Array<T>(Shape{size});
    };
    for (const std::size_t i : order_) {
      if (buckets.empty() || size * sizeof(T) >= bucket_bytes_) {
        if (!buckets.empty()) close(buckets.back());
        buckets.emplace_back();
        size = 0;
      }
      places_[i] = {buckets.size() - 1, size, 0};
      size += parameters_[i]->size();
      buckets.back().members.push_back(i);
    }
    close(buckets.back());
    buckets_ = std::move(buckets);
  }

  void arrive(std::size_t i, const Array<T>& gradient) {
    require_usage(!arrived_[i], kName,
                  "expected one sweep between begin() and finish(), got a second one that reaches ", *parameters_[i]);
    arrived_[i] = true;
    arrivals_.push_back(i);
    if (!is_in_order_) return;
    lay_in(i, &gradient);
    start_complete();
    for (std::size_t b = 0; b < started_; ++b) buckets_[b].sum.test();  // MPI works when it is called
  }

  /// What the parameter has, and what comes now.
  void lay_in(std::size_t i, const Array<T>* arriving) {
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
    const T* const there = parameter.has_grad() ? parameter.grad().data() : nullptr;
    const T* const now = arriving ? arriving->data() : nullptr;
    const auto share = static_cast<T>(weight_ / totals_[0]);
    parallel_vectorized(parameter.size(), [=](std::size_t begin, std::size_t end) {
      if (there && now)
        for (std::size_t k = begin; k < end; ++k) to[k] = share * (there[k] + now[k]);
      else
        for (const T* from = now ? now : there; begin < end; ++begin) to[begin] = share * from[begin];
    });
  }

  /// All ranks start their sums in the same order, whatever becomes complete first.
  void start_complete() {
    while (started_ < buckets_.size() && buckets_[started_].missing == 0 && layouts_agree()) {
      Bucket& bucket = buckets_[started_++];
      bucket.sum = detail::start_sum(bucket.numbers.data(), bucket.numbers.size(), detail::Beside::calls);
    }
  }

  /// A mean would not do: that of some ranks' is another's own, and those would wait for the others.
  bool layouts_agree() const {
    return std::all_of(totals_.begin() + 1, totals_.end(), [&](double layout) { return layout == layout_; });
  }

  void take_out(std::size_t i) {
    const Place& place = places_[i];
    const Array<T>& numbers = buckets_[place.bucket].numbers;
    Parameter<T>& parameter = *parameters_[i];
    if (numbers(place.flag) == 0) {
      parameter.zero_grad();  // of a rank that does not count
      return;
    }
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

  /// As rank 0's gradients came in the first step, and what did not come there last. This step's are laid in after the
  /// sweep: sums are rounded by their place in a bucket, so that a run which goes on has the same buckets from its
  /// first step on.
  void order_by_arrival() {
    std::vector<std::size_t> order = arrivals_;
    for (const std::size_t i : order_)
      if (std::ranges::find(arrivals_, i) == arrivals_.end()) order.push_back(i);
    detail::start_broadcast(order.data(), order.size() * sizeof order[0], 0).wait(kName);
    order_ = std::move(order);
    fill_buckets();
    empty_buckets();
  }

  Parameters<T> parameters_;
  std::size_t bucket_bytes_;
  double layout_;                   // a checksum of all sizes, which ranks must share
  std::vector<std::size_t> order_;  // of the parameters, through all buckets
  std::vector<Place> places_;       // of each parameter
  std::vector<Bucket> buckets_;
  std::vector<HookHandle> hooks_;

  // from begin() to finish()
  bool is_active_ = false, is_in_order_ = false;
  double weight_ = 0;
  std::vector<double> totals_;  // the sum of the weights, and each rank's layout
  detail::Request totals_sum_;
  std::size_t started_ = 0;            // how many buckets' sums
  std::vector<bool> arrived_;          // which parameters
  std::vector<std::size_t> arrivals_;  // in their order
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
  require_usage(state_ != nullptr, kName, "expected an average of parameters, got one that was moved from");
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
