#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../inspect/internal/attention_picture.hpp"
#include "in_double.hpp"
#include "refused.hpp"
#include "run_example.hpp"
#include "temporary_folder.hpp"
#include "text.hpp"

namespace {

/// Sets PATH for child programs until the scope ends.
class Path {
 public:
  explicit Path(const std::string& path) : before_(std::getenv("PATH")) { setenv("PATH", path.c_str(), 1); }
  ~Path() { setenv("PATH", before_.c_str(), 1); }
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

 private:
  std::string before_;
};

tg::AttentionMap<double> small_map() {
  return {{"a", "b"}, {"x", "y", "z"}, {{{0.5, 0.25, 0.25}, {0, 1, 0}}}, {{{1, -2, 0.1}, {3, 4e-20, 0}}}};
}

}  // namespace

TEST_CASE("with_weights gives the same output as attention, and the weights' gradient") {
  tg::manual_seed(1);
  const tg::MultiHeadAttention<double> attention(6, 2, {.query_dim = 3, .key_dim = 4, .value_dim = 5});
  const Tensor queries(tg::normal<double>({2, 3, 3})), keys(tg::normal<double>({2, 4, 4})),
      values(tg::normal<double>({2, 4, 5}));
  const auto mask = tg::AttentionMask::valid_lens({3, 4});

  tg::Tape tape;
  auto [y, weights] = attention.with_weights(queries, keys, values, mask);
  check_close(y.value(), attention(queries, keys, values, mask).value(), 1e-13);
  check_close(weights.value(), attention.attention_weights(queries, keys, mask).value(), 1e-13);

  weights.retain_grad();
  const Array dy = tg::normal<double>({2, 3, 6});
  y.backward(dy);
  const auto heads = [](const Tensor& x) {  // (B, T, H D) -> (B, T, H, D)
    return tg::reshape(x, {x.shape()[0], x.shape()[1], 2, 3});
  };
  const Tensor d_heads = heads(tg::matmul(Tensor(dy), attention.out_proj.weight.detach()));
  const Tensor v = heads(attention.v_proj(values).detach());
  check_close(weights.grad(), tg::einsum("bthd,bshd->bhts", d_heads, v).value(), 1e-12);
}

TEST_CASE("An attention map has one batch entry, with gradients if there are any") {
  const tg::Parameter<float> scores(tg::normal<float>({2, 2, 3, 3}));
  CHECK(tg::attention_map(scores.detach(), 1, {"a", "b", "c"}, {"d", "e", "f"}).gradients.size() == 0);

  tg::Tape tape;
  auto weights = tg::softmax(scores, -1);
  weights.retain_grad();
  tg::sum(weights * weights).backward();
  const auto map = tg::attention_map(weights, 1, {"a", "b", "c"}, {"d", "e", "f"});
  CHECK(map.weights.shape() == tg::Shape{2, 3, 3});
  CHECK(map.weights(1, 2, 0) == weights.value()(1, 1, 2, 0));
  check_close(map.gradients, map.weights * 2.0f, 1e-6);

  CHECK_THROWS_AS(tg::attention_map(weights, 2, {"a", "b", "c"}, {"d", "e", "f"}), std::out_of_range);
  CHECK_THROWS_WITH_AS(tg::attention_map(weights, 0, {"a", "b"}, {"d", "e", "f"}),
                       "[attention_map] expected weights (H, 2, 3) for these tokens, got (2, 3, 3)",
                       std::invalid_argument);
}

TEST_CASE("save_npy writes files for NumPy") {
  const TemporaryFolder folder;
  const auto check = [&](const auto& array, const std::string& descr, const std::string& shape) {
    tg::save_npy(array, folder.path("array.npy"));
    const std::string file = folder.read("array.npy");
    REQUIRE(file.size() > 10);
    CHECK(file.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
    const std::size_t header = static_cast<unsigned char>(file[8]) + 256u * static_cast<unsigned char>(file[9]);
    CHECK((10 + header) % 64 == 0);
    CHECK(contains(file.substr(10, header),
                   "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }"));
    CHECK(file[9 + header] == '\n');
    const std::size_t bytes = array.size() * sizeof(*array.data());
    REQUIRE(file.size() == 10 + header + bytes);
    CHECK(file.compare(10 + header, bytes, reinterpret_cast<const char*>(array.data()), bytes) == 0);
  };
  check(tg::Array<float>(tg::normal<float>({2, 3, 5})), "<f4", "(2, 3, 5)");
  check(Array(tg::normal<double>({2, 3})), "<f8", "(2, 3)");
  check(Array(tg::normal<double>({4})), "<f8", "(4,)");
  check(Array(1.5), "<f8", "()");
  check(tg::Array<float>(tg::Shape{0, 3}), "<f4", "(0, 3)");
}

TEST_CASE("save_csv writes one line per weight, with its gradient") {
  const TemporaryFolder folder;
  auto map = small_map();
  map.queries = {"a", "b,"};
  map.keys = {"x,\"y\"", "\n", "é"};
  tg::save_csv(map, folder.path("map.csv"));
  CHECK(folder.read("map.csv") ==
        "head,query,key,query_token,key_token,weight,gradient\n"
        "0,0,0,a,\"x,\"\"y\"\"\",0.5,1\n"
        "0,0,1,a,\"\n\",0.25,-2\n"
        "0,0,2,a,é,0.25,0.1\n"
        "0,1,0,\"b,\",\"x,\"\"y\"\"\",0,3\n"
        "0,1,1,\"b,\",\"\n\",1,4e-20\n"
        "0,1,2,\"b,\",é,0,0\n");

  map.gradients = Array(tg::Shape{0});
  tg::save_csv(map, folder.path("map.csv"));
  CHECK(folder.read("map.csv").starts_with("head,query,key,query_token,key_token,weight\n0,0,0,a,"));
}

TEST_CASE("A map of several layers names the layer of each head") {
  const TemporaryFolder folder;
  tg::AttentionMap<double> map{{"a"}, {"b"}, Array(tg::Shape{6, 1, 1}, 0.5)};
  map.layers = 3;
  tg::save_csv(map, folder.path("map.csv"));
  CHECK(folder.read("map.csv") ==
        "layer,head,query,key,query_token,key_token,weight\n"
        "0,0,0,0,a,b,0.5\n0,1,0,0,a,b,0.5\n"
        "1,0,0,0,a,b,0.5\n1,1,0,0,a,b,0.5\n"
        "2,0,0,0,a,b,0.5\n2,1,0,0,a,b,0.5\n");
  const std::string script = tg::detail::picture_script(map.weights, map.layers, map.queries, map.keys, "");
  std::size_t last = 0;
  for (const char* name : {"'layer 0, head 0'", "'layer 0, head 1'", "'layer 1, head 0'", "'layer 2, head 1'"}) {
    CAPTURE(name);
    const std::size_t place = script.find(name);
    REQUIRE(place != script.npos);
    CHECK(place > last);
    last = place;
  }

  map.layers = 4;
  CHECK_THROWS_WITH_AS(tg::save_csv(map, folder.path("other.csv")),
                       "[save_csv] expected a number of heads divisible by layers = 4, got weights (6, 1, 1)",
                       std::invalid_argument);
  map.layers = 0;
  CHECK_THROWS_AS(tg::save_csv(map, folder.path("other.csv")), std::invalid_argument);
  CHECK_FALSE(std::filesystem::exists(folder.path("other.csv")));
}

TEST_CASE("save_picture draws a PNG for any tokens" * doctest::skip(!gnuplot_is_installed())) {
  const TemporaryFolder folder;
  auto map = small_map();
  map.queries = {"it's `date`", "50% of \\n"};
  map.keys = {"'", "\n", "$x {a}_b ^c @d \"e\""};
  tg::save_picture(map, folder.path("it's.png"), "'%s' \"`date`\" \\");
  const std::string png = folder.read("it's.png");
  CHECK(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  CHECK(png.size() > 1000);

  tg::AttentionMap<float> large{std::vector<std::string>(200, "word"), std::vector<std::string>(100, "word"),
                                tg::uniform<float>({3, 200, 100}, 0, 1)};
  tg::save_picture(large, folder.path("large.png"), "");
  CHECK(folder.read("large.png").substr(0, 8) == "\x89PNG\r\n\x1a\n");
}

TEST_CASE("Without gnuplot, save_picture names the package to install and keeps the old picture") {
  const TemporaryFolder folder;
  const std::string old = folder.write("map.png", "old");
  const Path nowhere(folder.path(""));
  CHECK(contains(error_message([&] { tg::save_picture(small_map(), old, "title"); }), "apt-get install gnuplot-nox"));
  CHECK(folder.read("map.png") == "old");
}

TEST_CASE("An error from gnuplot is reported with its message") {
  const TemporaryFolder folder;
  const std::string program = folder.write("gnuplot", "#!/bin/sh\necho no terminal >&2\nexit 1\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const Path there(folder.path("") + ":/bin:/usr/bin");
  CHECK(contains(error_message([&] { tg::save_picture(small_map(), folder.path("map.png"), ""); }), "no terminal"));
  CHECK_FALSE(std::filesystem::exists(folder.path("map.png")));
}

TEST_CASE("Incomplete maps are refused before anything is written") {
  const TemporaryFolder folder;
  auto map = small_map();
  map.gradients = Array(tg::Shape{1, 2, 2}, 0);
  CHECK_THROWS_AS(tg::save_csv(map, folder.path("map")), std::invalid_argument);
  CHECK_THROWS_WITH_AS(
      tg::save_picture(tg::AttentionMap<double>{{}, {}, Array(tg::Shape{1, 0, 0})}, folder.path("map"), ""),
      "[save_picture] expected a map with elements, got weights (1, 0, 0)", std::invalid_argument);
  CHECK_FALSE(std::filesystem::exists(folder.path("map")));
}
