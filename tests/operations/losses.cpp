#include <algorithm>

#include "table.hpp"

namespace operations {
namespace {

tg::IntArray labels() { return {2, 0, 1, 2}; }
tg::IntArray labels_some_ignored() { return {2, -100, 1, -100}; }
tg::Array<double> class_weights() { return {0.5, 2, 1.25}; }

// Numbers from 0.5 to 2, one for each class of the logits.
template <class T> tg::Array<T> weights_for(const tg::Tensor<T>& logits) {
  return numbers<T>(draw({logits.shape().empty() ? 1 : logits.shape().back()}, 0.5, 2), 7);
}

// A label for every row of the logits, by its first element; -7 is ignored.
template <class T> tg::IntArray labels_for(const tg::Tensor<T>& logits) {
  tg::Shape shape = logits.shape();
  if (!shape.empty()) shape.pop_back();
  tg::IntArray labels(shape, 0);
  for (std::size_t i = 0, n = logits.size() / std::max<std::size_t>(labels.size(), 1); n > 0 && i < labels.size();
       ++i) {
    const T first = logits.value().data()[i * n];
    labels.data()[i] = first < -1 ? -7 : first > 0;
  }
  return labels;
}

void add_cross_entropy(Table& table) {
  using tg::Reduction;
  const std::vector<Draw> logits{draw({4, 3}, -2, 2)};
  const auto plain = [](auto& x) { return tg::cross_entropy(x[0], labels()); };
  table.add("cross_entropy", "mean", logits, plain);
  table.derive("cross_entropy", "rows", {"...n", draw({3}, -2, 2)}, [](auto& x) {
    return tg::cross_entropy(
        x[0], labels_for(x[0]),
        {.ignore_index = -7, .label_smoothing = 0.1, .weight = weights_for(x[0]), .reduction = Reduction::none});
  });
  table.add("cross_entropy", "no labels, sum", {draw({0, 3})}, [](auto& x) {
    return tg::cross_entropy(x[0], tg::IntArray::from_shape({0}), {.reduction = Reduction::sum});
  });
  table.add("cross_entropy", "large", {draw({4, 3}, -1e4, 1e4)}, plain);
  table.add("cross_entropy", "around a large number", {draw({4, 3}, 16383, 16385)}, plain, 1e-8);
  table.add("cross_entropy", "tiny", {draw({4, 3}, -1e-8, 1e-8)}, plain);

  table.add("cross_entropy", "labels ignored, mean", logits,
            [](auto& x) { return tg::cross_entropy(x[0], labels_some_ignored()); });
  table.add("cross_entropy", "labels ignored, none", logits,
            [](auto& x) { return tg::cross_entropy(x[0], labels_some_ignored(), {.reduction = Reduction::none}); });
  table.add("cross_entropy", "a class ignored", logits,
            [](auto& x) { return tg::cross_entropy(x[0], labels(), {.ignore_index = 2}); });
  table.add("cross_entropy", "smoothed", logits,
            [](auto& x) { return tg::cross_entropy(x[0], labels(), {.label_smoothing = 0.1}); });
  table.add("cross_entropy", "smoothed whole", logits,
            [](auto& x) { return tg::cross_entropy(x[0], labels(), {.label_smoothing = 1}); });
  table.add("cross_entropy", "weighted, mean", logits,
            [](auto& x) { return tg::cross_entropy(x[0], labels(), {.weight = class_weights()}); });
  table.add("cross_entropy", "everything, mean", logits, [](auto& x) {
    return tg::cross_entropy(x[0], labels_some_ignored(), {.label_smoothing = 0.2, .weight = class_weights()});
  });
  table.add("cross_entropy", "everything, sum", logits, [](auto& x) {
    return tg::cross_entropy(
        x[0], labels(),
        {.ignore_index = 0, .label_smoothing = 0.2, .weight = class_weights(), .reduction = Reduction::sum});
  });
  table.add("cross_entropy", "everything, none", logits, [](auto& x) {
    return tg::cross_entropy(x[0], labels_some_ignored(),
                             {.label_smoothing = 0.2, .weight = class_weights(), .reduction = Reduction::none});
  });
}

void add_cross_entropy_of_probabilities(Table& table) {
  using tg::Reduction;
  const std::vector<Draw> rows{draw({4, 3}, -2, 2), draw({4, 3}, 0, 1)};
  const std::vector<Draw> batches{draw({2, 2, 3}, -2, 2), draw({2, 2, 3}, 0, 1)};
  const auto plain = [](auto& x) { return tg::cross_entropy(x[0], x[1]); };
  const auto sum = [](auto& x) { return tg::cross_entropy(x[0], x[1], {.reduction = Reduction::sum}); };
  const auto none = [](auto& x) { return tg::cross_entropy(x[0], x[1], {.reduction = Reduction::none}); };
  const auto smoothed = [](auto& x) { return tg::cross_entropy(x[0], x[1], {.label_smoothing = 0.1}); };
  table.add("cross_entropy", "probabilities, mean", rows, plain);
  table.add("cross_entropy", "probabilities, none", rows, none);
  table.derive("cross_entropy", "probabilities, rows", {"*n,*n", draw({3}, -2, 2), draw({3}, 0, 1)}, [](auto& x) {
    return tg::cross_entropy(x[0], x[1],
                             {.label_smoothing = 0.1, .weight = weights_for(x[0]), .reduction = Reduction::none});
  });
  table.add("cross_entropy", "probabilities, three axes, mean", batches, plain);
  table.add("cross_entropy", "probabilities, no rows, sum", {draw({0, 3}, -2, 2), draw({0, 3}, 0, 1)}, sum);
  table.add("cross_entropy", "probabilities, large", {draw({4, 3}, -1e4, 1e4), draw({4, 3}, 0, 1)}, plain);
  table.add("cross_entropy", "probabilities, smoothed", rows, smoothed);
  table.add("cross_entropy", "probabilities, weighted, mean", rows,
            [](auto& x) { return tg::cross_entropy(x[0], x[1], {.weight = class_weights()}); });
  table.add("cross_entropy", "probabilities, everything, sum", rows, [](auto& x) {
    return tg::cross_entropy(x[0], x[1],
                             {.label_smoothing = 0.2, .weight = class_weights(), .reduction = Reduction::sum});
  });
  table.add("cross_entropy", "probabilities of the logits themselves", {draw({4, 3}, -2, 2)},
            [](auto& x) { return tg::cross_entropy(x[0], tg::softmax(x[0], -1)); });
  table.add("cross_entropy", "probabilities that are an array", {draw({2, 3})}, [](auto& x) {
    return tg::cross_entropy(x[0], numbers<double>(draw({2, 3}, 0, 1), 7));
  });
}

void add_binary_cross_entropy(Table& table) {
  using tg::Reduction;
  const char* name = "binary_cross_entropy_with_logits";
  const auto mean = [](auto& x) { return tg::binary_cross_entropy_with_logits(x[0], x[1]); };
  const auto sum = [](auto& x) {
    return tg::binary_cross_entropy_with_logits(x[0], x[1], {.reduction = Reduction::sum});
  };
  const auto of = [](const tg::Shape& shape, double size = 3) {
    return std::vector<Draw>{draw(shape, -size, size), draw(shape, 0, 1)};
  };
  table.add(name, "mean", of({2, 3}), mean);
  table.add(name, "sum", of({2, 3}), sum);
  table.add(name, "none", of({2, 2, 2}),
            [](auto& x) { return tg::binary_cross_entropy_with_logits(x[0], x[1], {.reduction = Reduction::none}); });
  table.derive(name, "rows", {"*n,*n", of({3})}, [](auto& x) {
    return tg::binary_cross_entropy_with_logits(
        x[0], x[1], {.weight = weights_for(x[0]), .pos_weight = 2 * weights_for(x[0]), .reduction = Reduction::none});
  });
  table.add(name, "no elements, sum", of({0, 2}), sum);
  table.add(name, "large", of({2, 3}, 1e4), mean);
  table.add(name, "tiny", of({2, 3}, 1e-8), mean);
  table.add(name, "weighted", of({2, 3}), [](auto& x) {
    return tg::binary_cross_entropy_with_logits(x[0], x[1], {.weight = numbers<double>(draw({3}, 0.5, 2), 7)});
  });
  table.add(name, "positives weighted", of({2, 3}), [](auto& x) {
    return tg::binary_cross_entropy_with_logits(x[0], x[1], {.pos_weight = numbers<double>(draw({3}, 0.5, 2), 7)});
  });
  table.add(name, "everything, sum", of({2, 3}), [](auto& x) {
    return tg::binary_cross_entropy_with_logits(x[0], x[1],
                                                {.weight = numbers<double>(draw({2, 1}, 0.5, 2), 8),
                                                 .pos_weight = numbers<double>(draw({3}, 0.5, 2), 7),
                                                 .reduction = Reduction::sum});
  });
  table.add(name, "a tensor with itself", {draw({3})},
            [](auto& x) { return tg::binary_cross_entropy_with_logits(x[0], x[0]); });
}

void add_mse(Table& table) {
  const auto mean = [](auto& x) { return tg::mse_loss(x[0], x[1]); };
  const auto sum = [](auto& x) { return tg::mse_loss(x[0], x[1], tg::Reduction::sum); };
  table.add("mse_loss", "mean", {draw({2, 3}), draw({2, 3})}, mean);
  table.add("mse_loss", "sum", {draw({2, 3}), draw({2, 3})}, sum);
  table.add("mse_loss", "none", {draw({2, 2, 2}), draw({2, 2, 2})},
            [](auto& x) { return tg::mse_loss(x[0], x[1], tg::Reduction::none); });
  table.derive("mse_loss", "each scalar", {"*,*", draw({}), draw({})},
               [](auto& x) { return tg::mse_loss(x[0], x[1], tg::Reduction::none); });
  table.add("mse_loss", "no elements, sum", {draw({0, 2}), draw({0, 2})}, sum);
  table.add("mse_loss", "a target that is an expression", {draw({2, 3})}, [](auto& x) {
    return tg::mse_loss(x[0], 2 * numbers<double>(draw({2, 3}), 7));
  });
  table.add("mse_loss", "a tensor with itself", {draw({2, 3})}, [](auto& x) { return tg::mse_loss(x[0], x[0]); });
  table.add("mse_loss", "large", {draw({2, 3}, -1e4, 1e4), draw({2, 3}, -1e4, 1e4)}, mean, 1e-4);
  table.add("mse_loss", "tiny", {draw({2, 3}, -1e-8, 1e-8), draw({2, 3}, -1e-8, 1e-8)}, mean);
}

}  // namespace

void add_losses(Table& table) {
  add_cross_entropy(table);
  add_cross_entropy_of_probabilities(table);
  add_binary_cross_entropy(table);
  add_mse(table);
}

}  // namespace operations
