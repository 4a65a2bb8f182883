/// PyTorch's nn.TransformerEncoderLayer, nn.TransformerDecoderLayer and nn.Transformer: parameters loaded under
/// PyTorch's names give PyTorch's outputs and gradients, from fixtures/make_models.py.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "../operations/table.hpp"
#include "checkpoint_bytes.hpp"
#include "in_double.hpp"
#include "model_fixtures.hpp"

namespace {

using Encoder = tg::TransformerBlock<double>;
using Decoder = tg::TransformerDecoderBlock<double>;
using Mask = tg::AttentionMask;
using operations::draw, operations::numbers;

struct Tensors {
  std::map<std::string, Array> named;
  TAPEGRAD_FIELDS(named)
};

template <class Block> struct Stack {
  std::vector<Block> layers;
  tg::LayerNorm<double> norm{4};
  TAPEGRAD_FIELDS(layers, norm)
};

struct TorchTransformer {
  Stack<Encoder> encoder;
  Stack<Decoder> decoder;
  TAPEGRAD_FIELDS(encoder, decoder)
};

template <class M> void load_from_torch(M& model, const Tensors& tensors) {
  tg::LoadOptions options = tg::from_torch_transformer();
  options.prefix = "named.";
  tg::load(model, InMemory(saved_bytes(tensors)), options);
}

// Loads the fixture's parameters, and compares the output, the loss's gradients and the loaded names.
template <class M, class Call> void check(const char* name, M model, const Call& call) {
  CAPTURE(name);
  const nlohmann::json& expected = fixtures().at("PyTorch's layers").at(name);
  Tensors parameters, gradients;
  std::uint64_t key = 0;
  for (const nlohmann::json& entry : expected.at("state")) {
    const auto parameter = entry[0].get<std::string>();
    const auto extents = entry[1].get<std::vector<std::size_t>>();
    const tg::Shape shape(extents.begin(), extents.end());
    parameters.named[parameter] = numbers<double>(draw(shape, -0.7, 0.7), key++);
    gradients.named[parameter] = array_of(expected.at("gradients").at(parameter), shape);
  }
  load_from_torch(model, parameters);

  const tg::Tape tape;
  const Tensor output = call(model);
  check_close(output.value(), array_of(expected.at("output"), output.shape()), 1e-12);
  tg::mse_loss(output, numbers<double>(draw(output.shape()), 102)).backward();
  M of_gradients = model;
  load_from_torch(of_gradients, gradients);
  const auto actual = tg::named_parameters(model), wanted = tg::named_parameters(of_gradients);
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(actual[i].first);
    check_close(actual[i].second->grad(), wanted[i].second->value(), 1e-12);
  }
}

}  // namespace

TEST_CASE("Parameters of PyTorch's Transformer layers give its outputs and gradients") {
  const Tensor source(numbers<double>(draw({3, 5, 4}), 110)), target(numbers<double>(draw({3, 4, 4}), 111));
  const Mask seen = Mask::valid_lens({5, 2, 3});
  const tg::TransformerBlockOptions last{
      .feed_forward_width = 6, .activation = tg::Activation::relu, .norm = tg::NormPlacement::last};
  const tg::TransformerBlockOptions first{.feed_forward_width = 6};

  check("encoder layer", Encoder(4, 2, last), [&](const Encoder& layer) { return layer(source, seen); });
  check("encoder layer, norms first", Encoder(4, 2, first),
        [&](const Encoder& layer) { return layer(source, Mask::causal()); });
  check("decoder layer", Decoder(4, 2, last),
        [&](const Decoder& layer) { return layer(target, source, Mask::causal(), seen); });
  check("decoder layer, norms first", Decoder(4, 2, first), [&](const Decoder& layer) {
    return layer(target, source, Mask::causal() & Mask::valid_lens({4, 2, 3}), seen);
  });
  check("transformer",
        TorchTransformer{{{Encoder(4, 2, last), Encoder(4, 2, last)}}, {{Decoder(4, 2, last), Decoder(4, 2, last)}}},
        [&](const TorchTransformer& model) {
          Tensor memory = source, y = target;
          for (const Encoder& layer : model.encoder.layers) memory = layer(memory, seen);
          memory = model.encoder.norm(memory);
          for (const Decoder& layer : model.decoder.layers) y = layer(y, memory, Mask::causal(), seen);
          return model.decoder.norm(y);
        });
}
