// With a global C++ locale that writes numbers as 1.234,5, the library's files, errors and reports are unchanged.
#include <tapegrad/testing.hpp>

#include <doctest/doctest.h>

#include <locale>
#include <sstream>

#include "../../../inspect/internal/attention_picture.hpp"
#include "checkpoint_bytes.hpp"
#include "temporary_folder.hpp"
#include "text.hpp"

namespace tg = tapegrad;

namespace {

struct Comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

class WithCommas {
 public:
  WithCommas() : before_(std::locale::global(std::locale(std::locale::classic(), new Comma))) {}
  ~WithCommas() { std::locale::global(before_); }
  WithCommas(const WithCommas&) = delete;
  WithCommas& operator=(const WithCommas&) = delete;

 private:
  std::locale before_;
};

struct Model {
  tg::Linear<> hidden{1200, 2}, head{2, 3};
  TAPEGRAD_FIELDS(hidden, head)
};

// Everything written to files.
std::vector<std::string> written() {
  const TemporaryFolder folder;
  std::vector<std::string> all;
  const auto file = [&](const auto& write) {
    write(folder / "file");
    all.push_back(bytes_of(folder / "file"));
  };
  tg::manual_seed(1);
  Model model, other;
  tg::Tape tape({.keep_values = true});
  const tg::Tensor<float> y = model.head(model.hidden(tg::Tensor<float>(tg::Array<float>(tg::Shape{1, 1200}, 0.5f))));
  tg::cross_entropy(y, tg::IntArray{1}).backward();
  const tg::AttentionMap<float> map{{"a", "b"}, {"c"}, tg::Array<float>(tg::Shape{1, 2, 1}, 0.125f)};

  file([&](const auto& path) { tg::save(model, path); });
  file([&](const auto& path) { tg::save_page(tape, path); });
  file([&](const auto& path) { tg::save_csv(map, path); });
  file([&](const auto& path) { tg::save_npy(tg::Array<double>(tg::Shape{1200, 1}, 0.5), path); });
  all.push_back(
      tg::detail::picture_script(tg::Array<double>(tg::Shape{1, 2, 1}, 0.125), 1, map.queries, map.keys, "a"));
  tg::save(model, folder / "model");
  tg::load(other, folder / "model");
  CHECK(other.head.weight.value() == model.head.weight.value());
  return all;
}

// The messages of errors, checks and comparisons.
std::vector<std::string> said() {
  tg::Parameter<double> w(tg::Array<double>(tg::Shape{1200}, 0.5));
  std::vector<std::string> all{thrown_by([&] { tg::SGD<double>({w}, {.lr = -0.5}); }), thrown_by([&] {
                                 tg::embedding(tg::reshape(w, {1200, 1}), tg::int_array({1234}));
                               })};
  const auto check = [&] { return tg::sum(w * w.detach()); };
  all.push_back(tg::testing::gradcheck(check, {{"w", w}}).report);
  std::ostringstream compared;
  compared.imbue(std::locale::classic());
  compared << tg::testing::compare("w", w, w * 1.5);
  all.push_back(compared.str());
  return all;
}

}  // namespace

TEST_CASE("Written files do not depend on the global locale") {
  const std::vector<std::string> plain = written();
  const WithCommas locale;
  const std::vector<std::string> with_commas = written();
  REQUIRE(plain.size() == with_commas.size());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    CAPTURE(i);
    CHECK((with_commas[i] == plain[i]));  // too long to print
  }
}

TEST_CASE("Printed text and messages do not depend on the global locale") {
  const std::vector<std::string> plain = said();
  const WithCommas locale;
  REQUIRE(plain.size() == 4);
  CHECK(said() == plain);
}
