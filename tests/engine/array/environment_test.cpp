/// Environment variables: the number of threads and the instruction set. Both are read once, at first use, so each case
/// is a child process: this program, running one of the test cases skipped here.
#include <tapegrad/engine/kernels/instruction_sets.hpp>

#include <cstring>
#include <iostream>

#include "run_case.hpp"
#include "small_gpt.hpp"
#include "text.hpp"

namespace tg = tapegrad;

namespace {

// A hash over all bits of the training results: FNV-1a.
std::uint64_t trained() {
  tg::manual_seed(1);
  SmallGpt model;
  tg::AdamW<float> optimizer(tg::parameters(model), {.lr = 0.01});
  tg::IntArray ids = tg::random_permutation(256);
  for (std::int64_t& id : ids) id %= 50;
  ids.reshape({8, 32});
  for (int step = 0; step < 5; ++step) {
    tg::Tape tape;
    optimizer.zero_grad();
    tg::cross_entropy(model(ids), ids).backward();
    optimizer.step();
  }
  std::uint64_t hash = 14695981039346656037u;
  for (const auto& parameter : tg::parameters(model))
    for (const float number : parameter->value()) {
      std::uint32_t bits;
      std::memcpy(&bits, &number, sizeof bits);
      hash = (hash ^ bits) * 1099511628211u;
    }
  return hash;
}

// The child's output after a word, with these variables in its environment.
std::string child_output(const std::string& word, const std::string& test_case, const std::string& variables) {
  const Run run = run_case(test_case, variables + " ");
  CAPTURE(run.out);
  CAPTURE(run.err);
  CHECK(run.status == 0);
  const std::size_t begin = run.out.find(word + ": ") + word.size() + 2;
  return run.out.substr(begin, run.out.find('\n', begin) - begin);
}

// The error thrown by the first operation with these variables, and by later ones.
void check_refuses(const std::string& variables, const std::string& error) {
  CAPTURE(variables);
  CHECK(child_output("refused", "child: a setting is refused", variables) == error);
}

std::string bits(const std::string& variables) { return child_output("bits", "child: bits", variables); }

}  // namespace

TEST_CASE("child: threads" * doctest::skip()) {
  std::cout << "threads: " << tg::num_threads() << std::endl;
  tg::set_num_threads(5);
  CHECK(tg::num_threads() == 5);
}

TEST_CASE("child: a setting is refused" * doctest::skip()) {
  const tg::Tensor<float> large(tg::Array<float>(tg::Shape{300, 300}, 1.0f));
  const std::string first = thrown_by([&] { tg::softmax(large, -1); });
  for (int i = 0; i < 2; ++i)
    CHECK(thrown_by([&] { tg::softmax(large, -1); }) == first);  // a failed attempt sets nothing
  std::cout << "refused: " << first << std::endl;
}

TEST_CASE("child: set_num_threads overrides the environment" * doctest::skip()) {
  tg::set_num_threads(2);
  CHECK(tg::num_threads() == 2);
  trained();
}

TEST_CASE("child: bits" * doctest::skip()) { std::cout << "bits: " << trained() << std::endl; }

TEST_CASE("TAPEGRAD_NUM_THREADS sets the number of threads, and set_num_threads overrides it") {
  const auto threads = [](const std::string& variables) {
    return child_output("threads", "child: threads", variables);
  };
  CHECK(threads("TAPEGRAD_NUM_THREADS=1") == "1");
  CHECK(threads("TAPEGRAD_NUM_THREADS=7") == "7");
  CHECK(threads("TAPEGRAD_NUM_THREADS=007") == "7");
  CHECK(threads("TAPEGRAD_NUM_THREADS=") == threads(""));
  CHECK(threads("taskset -c $(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')") == "1");
  for (const char* given : {"0", "-1", "abc", "1e3", "2.5", "+2", "'2 '", "' 2'", "0x2", "99999999999999999999999"}) {
    const std::string shown = given[0] == '\'' ? std::string(given + 1, 2) : given;
    check_refuses("TAPEGRAD_NUM_THREADS=" + std::string(given),
                  "[num_threads] expected TAPEGRAD_NUM_THREADS to be a whole number of at least 1, got " + shown);
  }
  check_runs("child: set_num_threads overrides the environment", "TAPEGRAD_NUM_THREADS=abc ");
}

TEST_CASE("TAPEGRAD_INSTRUCTION_SET selects the loops, and equal settings give equal bits") {
  using tg::detail::InstructionSet;
  const std::vector<InstructionSet> sets = tg::detail::instruction_sets();
  std::string names;
  std::vector<std::string> results;
  for (const InstructionSet set : sets) {
    const std::string name = set == InstructionSet::avx512 ? "avx512"
                             : set == InstructionSet::avx2 ? "avx2"
                                                           : "baseline";
    CAPTURE(name);
    names += (names.empty() ? "" : ", ") + name;
    results.push_back(bits("TAPEGRAD_INSTRUCTION_SET=" + name));
    CHECK(bits("TAPEGRAD_INSTRUCTION_SET=" + name) == results.back());
    if (set != InstructionSet::baseline) CHECK(results.back() != results.front());
  }
  CHECK(bits("") == results.back());
  CHECK(bits("TAPEGRAD_INSTRUCTION_SET=") == results.back());
  for (const char* given : {"sse9", "AVX2", "avx", "512"})
    for (const char* threads : {"1", "4"})  // a worker's exception reaches the caller
      check_refuses(
          "TAPEGRAD_NUM_THREADS=" + std::string(threads) + " TAPEGRAD_INSTRUCTION_SET=" + given,
          "[instruction_set] expected TAPEGRAD_INSTRUCTION_SET to name an instruction set of this processor (" + names +
              "), got " + given);
}
