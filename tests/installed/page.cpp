// The page of an installed library is one self-contained file, with scripts, names and the user's operation.
#include <tapegrad/tapegrad.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "check.hpp"

namespace tg = tapegrad;

struct Model {
  tg::Embedding<> tokens{5, 4};
  tg::MultiHeadAttention<> attention{4, 2};
  tg::Linear<> head{4, 2};
  TAPEGRAD_FIELDS(tokens, attention, head)
};

tg::Tensor<float> square(const tg::Tensor<float>& x) {
  return tg::record({"square", "y = x²; dx = 2 x ⊙ dy"}, x.value() * x.value(), {x},
                    [x = x.shared_value()](const auto& dy, auto& dx) { dx[0] += 2.0F * *x * dy; });
}

int main() {
  tg::manual_seed(3);
  Model model;
  tg::parameters(model);
  const auto path = std::filesystem::temp_directory_path() / "tapegrad_installed_page.html";
  {
    tg::Tape tape({.profile = true, .keep_values = true});
    tg::Tensor<float> x = model.attention(model.tokens({{0, 1, 4}, {2, 2, 3}}), tg::AttentionMask::causal());
    x.set_name("</script><b>");
    tg::cross_entropy(model.head(tg::mean(square(x), {1})), {1, 0}).backward();
    tg::save_page(tape, path, {.title = "Two & three", .axes = {{"</script><b>", {{"batch"}, {"token"}, {}}}}});
  }
  std::ifstream file(path, std::ios::binary);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(path);
  for (const char* text : {"<title>Two &amp; three</title>", "function prepareStep", "attention.k_proj.bias",
                           "dx = 2 x ⊙ dy", "\\u003c/script\\u003e", "forward_ns"})
    check(page.find(text) != std::string::npos);
  check(page.find("</script><b>") == std::string::npos);
  check(page.size() < 300'000);
}
