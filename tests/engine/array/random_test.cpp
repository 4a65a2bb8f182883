#include <atomic>
#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <thread>
#include <unordered_map>

#include "close.hpp"
#include "refused.hpp"

namespace tg = tapegrad;
using Array = tg::Array<double>;

namespace {

// Calls each function that draws random numbers once.
std::vector<double> draw_each(tg::Generator& generator = tg::default_generator()) {
  std::vector<double> numbers;
  const auto append = [&numbers](const auto& array) { numbers.insert(numbers.end(), array.begin(), array.end()); };
  append(tg::uniform<double>({7}, -1.0, 1.0, generator));
  append(tg::uniform<float>({7}, 0.0, 2.0, generator));
  append(tg::normal<double>({7}, 0, 1, generator));
  append(tg::normal<float>({7}, 1.0, 2.0, generator));
  append(tg::random_permutation(7, generator));
  const tg::Tensor<double> ones(Array({20, 20}, 1.0));
  append(tg::dropout(ones, 0.5, true, generator).value());
  append(tg::scaled_dot_product_attention(ones, ones, ones, {}, {.dropout = 0.5, .generator = &generator}).value());
  append(tg::Embedding<>(3, 2, {.generator = &generator}).weight.value());
  const tg::MultiHeadAttention<> attention(2, 1, {.generator = &generator});
  for (const auto& [name, parameter] : tg::named_parameters(attention)) append(parameter->value());
  return numbers;
}

// The moment of order k about 0.
template <class T> double moment(const tg::Array<T>& x, int k) {
  double sum = 0;
  for (const T value : x) sum += std::pow(static_cast<double>(value), k);
  return sum / static_cast<double>(x.size());
}

// The largest distance between the empirical and the expected distribution function (Kolmogorov-Smirnov). For n numbers
// it exceeds 1.95 / sqrt(n) for one seed in a thousand.
template <class T, class F> double distance_to(const tg::Array<T>& x, F expected) {
  std::vector<T> sorted(x.begin(), x.end());
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  double largest = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double at = expected(static_cast<double>(sorted[i])), place = static_cast<double>(i);
    largest = std::max({largest, std::abs(at - place / n), std::abs(at - (place + 1) / n)});
  }
  return largest;
}

}  // namespace

TEST_CASE("The generator is SplitMix64: its first numbers match the published algorithm") {
  // The numbers from state 1234567 in other languages' implementations.
  const std::uint64_t expected[] = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                    4593380528125082431u, 16408922859458223821u};
  for (std::uint64_t i = 0; i < 5; ++i) CHECK(tg::random_bits(1234567, i) == expected[i]);
  CHECK(tg::random_uniform(1234567, 0) == static_cast<double>(expected[0] >> 11) / 9007199254740992.0);
}

TEST_CASE("A seed's numbers are the same as in earlier versions") {
  tg::manual_seed(0);
  CHECK(tg::default_generator().next_key() == 12035550249420947055u);
  tg::manual_seed(0);
  check_close(tg::uniform<double>({3}, 0.0, 1.0), Array{0.13870941014555427, 0.97110208280128829, 0.27783287260490741},
              1e-15);
  check_close(tg::normal<double>({3}), Array{-0.45045023151017455, -0.45098093796887684, 1.1005399809623029}, 1e-12);

  using Floats = tg::Array<float>;
  tg::manual_seed(2024);
  CHECK(tg::random_permutation(8) == tg::IntArray{2, 7, 5, 6, 4, 0, 3, 1});
  CHECK(tg::dropout(tg::Tensor<float>(Floats({8}, 1)), 0.5).value() == Floats{2, 0, 0, 0, 0, 2, 0, 2});
  const tg::Linear<> linear(2, 2);
  CHECK(linear.weight.value() == Floats{{0.164781556F, 0.210758209F}, {0.562786877F, -0.193484962F}});
  CHECK(linear.bias.value() == Floats{-0.436496943F, 0.137636229F});
  check_close(tg::Embedding<>(2, 2).weight.value(),
              Floats{{-0.703276038F, -0.544412673F}, {-0.629607022F, -0.881183267F}}, 1e-6);
  const tg::MultiHeadAttention<> attention(2, 1);
  CHECK(attention.q_proj.weight.value() == Floats{{-0.254427314F, 0.313038588F}, {0.478933126F, 0.202769905F}});
  CHECK(attention.out_proj.bias.value() == Floats{-0.208865657F, 0.169900253F});
  const tg::Tensor<float> scores(Floats({4, 4}, 0)),
      identity(Floats{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}});
  const Floats dropped = tg::scaled_dot_product_attention(scores, scores, identity, {}, {.dropout = 0.5}).value();
  CHECK(dropped == Floats{{0, 0.5, 0, 0}, {0.5, 0, 0, 0.5}, {0, 0, 0, 0}, {0, 0, 0.5, 0}});
}

TEST_CASE("A restored copy of a generator continues with the same numbers") {
  tg::manual_seed(40);
  draw_each();
  const tg::Generator kept = tg::default_generator();
  const auto next = draw_each();
  CHECK(kept != tg::default_generator());
  tg::default_generator() = kept;
  CHECK(kept == tg::default_generator());
  CHECK(draw_each() == next);

  tg::Generator from_numbers = tg::Generator::from_state(kept.state());
  CHECK(from_numbers == kept);
  CHECK(draw_each(from_numbers) == next);
  CHECK(from_numbers == tg::default_generator());
}

TEST_CASE("A generator's numbers depend only on its seed and leave other generators unchanged") {
  tg::manual_seed(41);
  const auto of_default = draw_each();
  tg::manual_seed(7);
  const tg::Generator untouched = tg::default_generator();
  tg::Generator own(41);
  CHECK(draw_each(own) == of_default);
  CHECK(tg::default_generator() == untouched);
  tg::Generator copy = own;
  CHECK(draw_each(copy) == draw_each(own));
  CHECK(draw_each(own) != of_default);

  CHECK(tg::Generator() == tg::Generator(0));
  CHECK(tg::Generator(1) != tg::Generator(2));
  own = *&own;

  CHECK(&tg::detail::generator_or_default(&own) == &own);
  CHECK(&tg::detail::generator_or_default(nullptr) == &tg::default_generator());
}

TEST_CASE("Assigning generators is atomic for threads that read them") {
  const tg::Generator start(1);
  const tg::Generator later = tg::Generator::from_state({tg::Generator(2).state()[0], 1000});
  tg::Generator a = start, b = later;
  std::atomic<bool> done{false};
  std::size_t torn = 0;
  std::thread reader([&] {
    while (!done)
      for (const tg::Generator* seen : {&a, &b}) {
        const tg::Generator copy = *seen;
        torn += copy != start && copy != later;
      }
  });
  std::thread assigner([&] {
    for (int i = 0; i < 50'000; ++i) a = b, b = start;
  });
  for (int i = 0; i < 50'000; ++i) b = a, a = later;
  assigner.join();
  done = true;
  reader.join();
  CHECK(torn == 0);
}

TEST_CASE("Every draw gets its own key, from any thread") {
  tg::manual_seed(1);
  constexpr std::size_t kThreads = 4, kDraws = 1000;
  std::vector<std::vector<std::uint64_t>> keys(kThreads);
  std::vector<std::thread> threads;
  for (auto& own : keys)
    threads.emplace_back([&own] {
      for (std::size_t i = 0; i < kDraws; ++i) own.push_back(tg::default_generator().next_key());
    });
  for (auto& thread : threads) thread.join();
  std::set<std::uint64_t> all;
  for (const auto& own : keys) all.insert(own.begin(), own.end());
  CHECK(all.size() == kThreads * kDraws);

  tg::manual_seed(1);  // together, the same keys as in one thread
  for (std::size_t i = 0; i < kThreads * kDraws; ++i) REQUIRE(all.count(tg::default_generator().next_key()) == 1);
}

TEST_CASE("Setting a seed restarts at its first key, also while other threads draw") {
  const std::uint64_t seed = 22;
  tg::manual_seed(seed);
  std::unordered_map<std::uint64_t, std::uint64_t> place;  // index of a key of this seed
  for (std::uint64_t i = 0; i < 200'000; ++i) place.emplace(tg::default_generator().next_key(), i);

  std::vector<std::uint64_t> keys;
  std::atomic<bool> done{false};
  std::atomic<std::size_t> drawn{0};
  std::thread drawer([&] {
    for (; !done; ++drawn) keys.push_back(tg::default_generator().next_key());
  });
  while (drawn == 0) std::this_thread::yield();
  for (int i = 0; i < 30'000; ++i) {  // this thread draws only under the other seed
    tg::manual_seed(11);
    for (int j = 0; j < 20; ++j) tg::default_generator().next_key();
    tg::manual_seed(seed);
  }
  done = true;
  drawer.join();

  // So the other thread sees the seed's first key and its successors, until the other seed is set.
  std::size_t out_of_order = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto found = place.find(keys[i]);
    if (found == place.end() || found->second == 0) continue;
    const auto before = i == 0 ? place.end() : place.find(keys[i - 1]);
    if (before == place.end() || before->second + 1 != found->second) ++out_of_order;
  }
  CHECK(out_of_order == 0);
}

TEST_CASE("Adjacent seeds, keys and indices give independent numbers") {
  const auto check_bits = [](auto bits) {  // about half of the bits differ from one to the next
    std::size_t differing = 0;
    for (std::uint64_t i = 0; i < 1000; ++i)
      differing += static_cast<std::size_t>(std::popcount(bits(i) ^ bits(i + 1)));
    CHECK(std::abs(static_cast<double>(differing) / 64000 - 0.5) < 0.01);
  };
  check_bits([](std::uint64_t i) { return tg::random_bits(7, i); });
  check_bits([](std::uint64_t i) { return tg::random_bits(i, 7); });
  check_bits([](std::uint64_t i) {
    tg::manual_seed(i);
    return tg::default_generator().next_key();
  });
}

TEST_CASE("uniform is evenly distributed over its interval") {
  tg::manual_seed(2);
  const Array x = tg::uniform<double>({300, 1000}, -1.0, 3.0);
  CHECK(tg::to_string(x.shape()) == "(300, 1000)");
  CHECK(*std::min_element(x.begin(), x.end()) >= -1.0);
  CHECK(*std::max_element(x.begin(), x.end()) < 3.0);
  CHECK(moment(x, 1) == doctest::Approx(1.0).epsilon(0.01));
  CHECK(distance_to(x, [](double a) { return (a + 1) / 4; }) < 1.95 / std::sqrt(300'000.0));
  const tg::Array<float> f = tg::uniform<float>({300'000}, 0.0, 1.0);
  CHECK(distance_to(f, [](double a) { return a; }) < 1.95 / std::sqrt(300'000.0));
}

TEST_CASE("uniform never returns its upper bound, and other numbers are unchanged by the rounding") {
  // Random number 1954 of this seed's first key is closer to 1 than to the largest float below.
  const std::uint64_t seed = 3875;
  tg::manual_seed(seed);
  const std::uint64_t key = tg::default_generator().next_key();
  constexpr std::size_t kCount = 4096;
  tg::manual_seed(seed);
  const tg::Array<float> x = tg::uniform<float>({kCount}, 0.0, 1.0);
  std::size_t rounded_up = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto rounded = static_cast<float>(tg::random_uniform(key, i));
    rounded_up += rounded == 1;
    if (rounded != 1) REQUIRE(x(i) == rounded);
    if (rounded == 1) CHECK(x(i) == std::nextafter(1.0F, 0.0F));
  }
  CHECK(rounded_up > 0);

  // An interval so small that every second number rounds up, and ones with an end that float cannot represent.
  const double two_steps = 1 + 2 * std::numeric_limits<double>::epsilon();
  for (const double a : tg::uniform<double>({100}, 1.0, two_steps)) CHECK((a >= 1 && a < two_steps));
  for (const float a : tg::uniform<float>({100}, 0.69999993, 0.7)) CHECK(a < 0.7);
  for (const float a : tg::uniform<float>({100}, 0.09999999, 0.1)) CHECK(a < 0.1);
}

TEST_CASE("Invalid intervals are refused before a key is drawn, as in PyTorch") {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double most = std::numeric_limits<double>::max();
  check_refused_unchanged("uniform", {"got 2 and 1"}, [] { tg::uniform<float>({3}, 2, 1); });
  check_refused_unchanged("uniform", {"got 0 and nan"}, [=] { tg::uniform<double>({3}, 0, nan); });
  check_refused_unchanged("uniform", {"got 0 and inf"}, [=] { tg::uniform<double>({3}, 0, inf); });
  check_refused_unchanged("uniform", {"got -inf and 0"}, [=] { tg::uniform<float>({3}, -inf, 0); });
  check_refused_unchanged("uniform", {}, [=] { tg::uniform<double>({3}, -most, most); });
  check_refused_unchanged("uniform", {}, [] { tg::uniform<float>({3}, -3e38, 3e38); });
  check_refused_unchanged("uniform", {}, [] { tg::uniform<float>({3}, 1e300, 1e300); });
  check_refused_unchanged("normal", {"got -1"}, [] { tg::normal<float>({3}, 0, -1); });
  check_refused_unchanged("normal", {"got nan"}, [=] { tg::normal<double>({3}, 0, nan); });
  CHECK(tg::uniform<double>({2}, 3.0, 3.0) == Array{3.0, 3.0});
  CHECK(tg::normal<double>({2}, 3.0, 0.0) == Array{3.0, 3.0});
  CHECK(std::isfinite(tg::uniform<double>({1}, 0, most)(0)));
}

TEST_CASE("normal has the given mean and standard deviation and a normal distribution") {
  tg::manual_seed(3);
  const auto distribution = [](double a) { return 0.5 * std::erfc(-a / std::sqrt(2.0)); };
  const Array x = tg::normal<double>({300'000});
  CHECK(std::abs(moment(x, 1)) < 0.01);
  CHECK(moment(x, 2) == doctest::Approx(1.0).epsilon(0.01));
  CHECK(std::abs(moment(x, 3)) < 0.03);
  CHECK(moment(x, 4) == doctest::Approx(3.0).epsilon(0.02));
  CHECK(distance_to(x, distribution) < 1.95 / std::sqrt(300'000.0));
  const tg::Array<float> shifted = tg::normal<float>({300'001}, 5.0, 0.5);
  CHECK(distance_to(shifted, [&](double a) { return distribution((a - 5.0) / 0.5); }) < 1.95 / std::sqrt(300'001.0));
}

TEST_CASE("Adjacent normal numbers, drawn in pairs, are independent") {
  tg::manual_seed(4);
  const Array x = tg::normal<double>({200'000});
  double pairs = 0, squares = 0;
  for (std::size_t i = 0; i < x.size(); i += 2) {
    pairs += x(i) * x(i + 1);
    squares += (x(i) * x(i) - 1) * (x(i + 1) * x(i + 1) - 1);
  }
  CHECK(std::abs(pairs / 100'000) < 0.015);
  CHECK(std::abs(squares / 100'000) < 0.03);
}

TEST_CASE("A random permutation contains every number once") {
  tg::manual_seed(5);
  for (const std::int64_t count : {0, 1, 2, 3, 10, 1000}) {
    tg::IntArray drawn = tg::random_permutation(static_cast<std::size_t>(count));
    std::sort(drawn.begin(), drawn.end());
    REQUIRE(drawn == tg::arange(count));
  }
}

TEST_CASE("All permutations are equally likely") {
  tg::manual_seed(6);
  constexpr std::size_t kDraws = 24'000;
  std::map<std::int64_t, int> counts;
  for (std::size_t i = 0; i < kDraws; ++i) {
    const tg::IntArray p = tg::random_permutation(4);
    ++counts[p(0) * 64 + p(1) * 16 + p(2) * 4 + p(3)];
  }
  double chi_squared = 0;
  for (const auto& [permutation, count] : counts) chi_squared += (count - 1000.0) * (count - 1000.0) / 1000.0;
  CHECK(counts.size() == 24);
  CHECK(chi_squared < 49.7);  // 23 degrees of freedom: exceeded once in a thousand seeds
}
