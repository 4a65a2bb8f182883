/// The operations. This header is their manual; each is defined, with its rule for the backward sweep beside it, in the
/// file of engine/ops/ named above its group. All work on Tensor<float> and Tensor<double>.
///
/// Names are PyTorch's, `axis` where PyTorch says dim; negative axes count from the end. Reductions, functions of rows,
/// choices along an axis, squeeze and transpose take a scalar for one element along axis 0. Shapes, axes and options
/// that do not fit throw std::invalid_argument, indices outside their range std::out_of_range, both naming the
/// operation and what was given.
#pragma once

#include <concepts>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "../array/bfloat16.hpp"
#include "../array/mask.hpp"
#include "../array/random.hpp"
#include "../tape/tensor.hpp"
#include "mixed_operands.hpp"

namespace tapegrad {

/// The type of a scalar argument beside a Tensor<T>: any number converts to it.
template <class T> using Scalar = std::type_identity_t<T>;

// ---- arithmetic.cpp: tensors broadcast as in NumPy; a scalar, an array or an expression may stand on either side ---

/// a + b, element by element; both broadcast. Throws std::invalid_argument, as do the other operators, for shapes that
/// do not broadcast together.
template <class T> Tensor<T> operator+(const Tensor<T>& a, const Tensor<T>& b);
template <class T> Tensor<T> operator+(const Tensor<T>& a, Scalar<T> b);  ///< a + b with a scalar b
template <class T> Tensor<T> operator+(Scalar<T> a, const Tensor<T>& b);  ///< a + b with a scalar a
/// a - b, element by element; both broadcast.
template <class T> Tensor<T> operator-(const Tensor<T>& a, const Tensor<T>& b);
template <class T> Tensor<T> operator-(const Tensor<T>& a, Scalar<T> b);  ///< a - b with a scalar b
template <class T> Tensor<T> operator-(Scalar<T> a, const Tensor<T>& b);  ///< a - b with a scalar a
/// a b, element by element; both broadcast.
template <class T> Tensor<T> operator*(const Tensor<T>& a, const Tensor<T>& b);
template <class T> Tensor<T> operator*(const Tensor<T>& a, Scalar<T> b);  ///< a b with a scalar b
template <class T> Tensor<T> operator*(Scalar<T> a, const Tensor<T>& b);  ///< a b with a scalar a
/// a / b, element by element; both broadcast.
template <class T> Tensor<T> operator/(const Tensor<T>& a, const Tensor<T>& b);
template <class T> Tensor<T> operator/(const Tensor<T>& a, Scalar<T> b);  ///< a / b with a scalar b
template <class T> Tensor<T> operator/(Scalar<T> a, const Tensor<T>& b);  ///< a / b with a scalar a
template <class T> Tensor<T> operator-(const Tensor<T>& x);               ///< -x

/// x to the power of the exponent. x^0 is 1 and 0^y is 0 for a y above 0: there the gradient of x^0 with respect to x,
/// and of 0^y with respect to y, is 0. That of the exponent of a negative x is NaN.
template <class T> Tensor<T> pow(const Tensor<T>& x, Scalar<T> exponent);
/// The same, element by element; both broadcast.
template <class T> Tensor<T> pow(const Tensor<T>& x, const Tensor<T>& exponent);
/// A number to the power of each element.
template <class T> Tensor<T> pow(Scalar<T> x, const Tensor<T>& exponent);

/// x += y is x = x + y: the handle x goes over to the sum, which is recorded as the sum is. The array that x was a
/// handle on stays as it is, so that what a tape has saved of it, and other handles on it, stay true; x takes on the
/// shape that both broadcast to. y is whatever may stand beside a tensor. Of a Parameter it does not compile, and
/// throws std::logic_error where the parameter is seen as a Tensor: set_value() and mutable_value() change its value.
template <class X, class Y>
requires detail::IsTensor<X> X& operator+=(X& x, const Y& y) {
  return detail::rebind(x, [&] { return x + y; });
}
/// x -= y is x = x - y, as += is.
template <class X, class Y>
requires detail::IsTensor<X> X& operator-=(X& x, const Y& y) {
  return detail::rebind(x, [&] { return x - y; });
}
/// x *= y is x = x * y, as += is.
template <class X, class Y>
requires detail::IsTensor<X> X& operator*=(X& x, const Y& y) {
  return detail::rebind(x, [&] { return x * y; });
}
/// x /= y is x = x / y, as += is.
template <class X, class Y>
requires detail::IsTensor<X> X& operator/=(X& x, const Y& y) {
  return detail::rebind(x, [&] { return x / y; });
}

// ---- elementwise.cpp ----------------------------------------------------------------------------------------------

/// e^x of each element; those that follow work on each element, too. It is inf somewhat early: from x = 88.38 on in
/// float, where e^x is finite up to 88.72, and from 709.44 on in double, where it is up to 709.78.
template <class T> Tensor<T> exp(const Tensor<T>& x);
/// The natural logarithm: -inf at 0, NaN below.
template <class T> Tensor<T> log(const Tensor<T>& x);
/// The square root: NaN below 0; the gradient at 0 is infinite.
template <class T> Tensor<T> sqrt(const Tensor<T>& x);
/// |x|; the gradient at 0 is 0.
template <class T> Tensor<T> abs(const Tensor<T>& x);
/// The hyperbolic tangent.
template <class T> Tensor<T> tanh(const Tensor<T>& x);
/// 1 / (1 + exp(-x))
template <class T> Tensor<T> sigmoid(const Tensor<T>& x);
/// max(x, 0); the gradient at 0 is 0.
template <class T> Tensor<T> relu(const Tensor<T>& x);

/// x where it lies between min and max, the nearer of them elsewhere; max where min is above it. Either may be left
/// out, `clamp(x, {}, 1)`, not both: std::invalid_argument. The gradient is 0 outside, and that of x on the bounds.
template <class T> Tensor<T> clamp(const Tensor<T>& x, std::optional<Scalar<T>> min, std::optional<Scalar<T>> max = {});
/// x sigmoid(x), also called swish (Elfwing et al. 2017, arXiv:1702.03118).
template <class T> Tensor<T> silu(const Tensor<T>& x);
/// log(1 + exp(beta x)) / beta, a smooth relu; x itself where beta x is above the threshold.
template <class T> Tensor<T> softplus(const Tensor<T>& x, double beta = 1, double threshold = 20);

/// Which formula gelu uses: x Phi(x) with the normal distribution's Phi, or its approximation by tanh.
enum class Gelu { exact, tanh };

/// Gaussian error linear unit (Hendrycks and Gimpel 2016, arXiv:1606.08415).
template <class T> Tensor<T> gelu(const Tensor<T>& x, Gelu formula = Gelu::exact);

/// The elements of x where the mask is false, `value` where it is true; both broadcast.
template <class T> Tensor<T> masked_fill(const Tensor<T>& x, const BoolArray& mask, Scalar<T> value);
/// The same with a scalar tensor's value, of shape (), which receives the gradients of all elements that it fills.
template <class T> Tensor<T> masked_fill(const Tensor<T>& x, const BoolArray& mask, const Tensor<T>& value);

/// The elements of a where the condition is true, of b where it is false; all three broadcast.
template <class T> Tensor<T> where(const BoolArray& condition, const Tensor<T>& a, const Tensor<T>& b);

/// Sets each element to 0 with probability p, in [0, 1), and divides the others by 1 - p. Does nothing unless training.
/// Throws std::invalid_argument for another p.
template <class T>
Tensor<T> dropout(const Tensor<T>& x, double p, bool training = true, Generator& generator = default_generator());

// ---- matmul.cpp, einsum.cpp ---------------------------------------------------------------------------------------

/// As torch.matmul, (n) (n) -> (), (m, n) (n) -> (m), (n) (n, p) -> (p), (..., m, n) (..., n, p) -> (..., m, p), where
/// the leading axes broadcast.
template <class T> Tensor<T> matmul(const Tensor<T>& a, const Tensor<T>& b);

/// x W^T + b. x: (..., in), weight: (out, in), bias: (out), or an undefined tensor for none -> (..., out)
template <class T> Tensor<T> linear(const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias = {});

/// The same with a constant weight in bfloat16. Errors call it by its name.
template <class T>
Tensor<T> linear(const Tensor<T>& x, const Value<BFloat16>& weight, const Tensor<T>& bias = {},
                 std::string_view name = {});

/// Einstein's summation over two operands, as "bqd,bkd->bqk": every letter names an axis; letters that the output lacks
/// are summed over. Within an operand or the output a letter stands once.
template <class T> Tensor<T> einsum(std::string_view equation, const Tensor<T>& a, const Tensor<T>& b);

// ---- views.cpp: other arrangements of the same elements -----------------------------------------------------------

/// Exchanges two axes.
template <class T> Tensor<T> transpose(const Tensor<T>& x, std::ptrdiff_t axis0, std::ptrdiff_t axis1);
/// Axis i of the result is axis axes[i] of x.
template <class T> Tensor<T> permute(const Tensor<T>& x, const Axes& axes);
/// The same elements in row-major order under another shape; one extent may be -1 and is worked out.
template <class T> Tensor<T> reshape(const Tensor<T>& x, const Extents& shape);
/// Inserts an axis of extent 1 so that it becomes axis `axis`.
template <class T> Tensor<T> unsqueeze(const Tensor<T>& x, std::ptrdiff_t axis);
/// Removes all axes of extent 1.
template <class T> Tensor<T> squeeze(const Tensor<T>& x);
/// Removes the axis if its extent is 1.
template <class T> Tensor<T> squeeze(const Tensor<T>& x, std::ptrdiff_t axis);
/// Stretches axes of extent 1, and adds leading axes, to the given shape; -1 keeps an extent.
template <class T> Tensor<T> expand(const Tensor<T>& x, const Extents& shape);
/// Lays copies of x side by side, `repeats[i]` of them along axis i; more repeats than axes add leading axes.
template <class T> Tensor<T> repeat(const Tensor<T>& x, const IntList& repeats);
/// Repeats every slice along the axis, each `repeats` times in a row.
template <class T> Tensor<T> repeat_interleave(const Tensor<T>& x, std::size_t repeats, std::ptrdiff_t axis);
/// The slice at `index` along the axis, which disappears; a negative index counts from the end.
template <class T> Tensor<T> select(const Tensor<T>& x, std::ptrdiff_t axis, std::ptrdiff_t index);
/// The slices start, ..., start + length - 1 along the axis.
template <class T> Tensor<T> narrow(const Tensor<T>& x, std::ptrdiff_t axis, std::ptrdiff_t start, std::size_t length);
/// Pieces of `size` slices along the axis; the last may be shorter. An empty axis is one piece, as in PyTorch.
template <class T> std::vector<Tensor<T>> split(const Tensor<T>& x, std::size_t size, std::ptrdiff_t axis = 0);
/// Moves the elements `shift` places along the axis; what falls off the end comes back at the start.
template <class T> Tensor<T> roll(const Tensor<T>& x, std::ptrdiff_t shift, std::ptrdiff_t axis);
/// The same along the flattened elements.
template <class T> Tensor<T> roll(const Tensor<T>& x, std::ptrdiff_t shift);
/// The lower triangle of the last two axes, zeros above diagonal `diagonal`.
template <class T> Tensor<T> tril(const Tensor<T>& x, std::ptrdiff_t diagonal = 0);
/// The upper triangle of the last two axes, zeros below diagonal `diagonal`.
template <class T> Tensor<T> triu(const Tensor<T>& x, std::ptrdiff_t diagonal = 0);

// ---- joining.cpp --------------------------------------------------------------------------------------------------

/// Joins one tensor or more along an axis; their other extents are equal.
template <class T> Tensor<T> cat(std::span<const Tensor<T>> tensors, std::ptrdiff_t axis = 0);
/// Joins one tensor or more of one shape along a new axis.
template <class T> Tensor<T> stack(std::span<const Tensor<T>> tensors, std::ptrdiff_t axis = 0);

/// The same of tensors in braces.
template <class T> Tensor<T> cat(std::initializer_list<Tensor<T>> tensors, std::ptrdiff_t axis = 0) {
  return cat(std::span<const Tensor<T>>(tensors.begin(), tensors.size()), axis);
}
/// The same of a vector of them.
template <class T> Tensor<T> cat(const std::vector<Tensor<T>>& tensors, std::ptrdiff_t axis = 0) {
  return cat(std::span<const Tensor<T>>(tensors), axis);
}
/// The same of tensors in braces.
template <class T> Tensor<T> stack(std::initializer_list<Tensor<T>> tensors, std::ptrdiff_t axis = 0) {
  return stack(std::span<const Tensor<T>>(tensors.begin(), tensors.size()), axis);
}
/// The same of a vector of them.
template <class T> Tensor<T> stack(const std::vector<Tensor<T>>& tensors, std::ptrdiff_t axis = 0) {
  return stack(std::span<const Tensor<T>>(tensors), axis);
}

// ---- reductions.cpp: over the given axes, over all when none is given ---------------------------------------------

/// The sum over the axes, over all when none is given; of no elements it is 0. x: any shape -> its other axes, and with
/// keepdims those that are summed over, of extent 1.
template <class T> Tensor<T> sum(const Tensor<T>& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);
/// The mean over the axes, sum(x) / n, of the same shape. Throws std::invalid_argument over no elements.
template <class T> Tensor<T> mean(const Tensor<T>& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);
/// The variance: squared differences from the mean, summed and divided by n - correction for n elements, or by 0 where
/// that is negative. So of one element it is NaN unless the correction is 0. Throws std::invalid_argument over no
/// elements.
template <class T>
Tensor<T> var(const Tensor<T>& x, const Axes& axes = {}, double correction = 1, KeepDims keep = KeepDims::no);
/// The largest element; where several are equal they share the gradient. Throws std::invalid_argument over no elements.
template <class T> Tensor<T> amax(const Tensor<T>& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);

// ---- selection.cpp: elements chosen along an axis; NaN counts as larger than every number -------------------------

/// Elements chosen along an axis, and their indices along it, of one shape: `auto [values, indices] = max(x, -1);`.
template <class T> struct ValuesAndIndices {
  Tensor<T> values;  ///< recorded
  IntArray indices;  ///< along the axis, from 0
};

/// Of every index the element of x that it names along the axis: out[i][j] = x[index[i][j]][j] for axis 0 of two. The
/// index has as many axes as x, and is no longer than it but for `axis`; the result has its shape. Throws
/// std::out_of_range for an index that is negative or too large.
template <class T> Tensor<T> gather(const Tensor<T>& x, std::ptrdiff_t axis, const IntArray& index);
/// The index of the largest element along the axis, the first of equals; NaN is larger than every number. x: (..., n,
/// ...) -> the other axes. Throws std::invalid_argument over no elements.
template <class T> IntArray argmax(const Array<T>& x, std::ptrdiff_t axis);
/// The same of a tensor's value.
template <class T> IntArray argmax(const Tensor<T>& x, std::ptrdiff_t axis) { return argmax(x.value(), axis); }
/// The largest element along the axis, the first of equals: it alone receives the gradient. Throws
/// std::invalid_argument over no elements.
template <class T> ValuesAndIndices<T> max(const Tensor<T>& x, std::ptrdiff_t axis, KeepDims keep = KeepDims::no);
/// The k largest elements along the axis, or the k smallest: in order, the first of equals first. x: (..., n, ...) ->
/// (..., k, ...). Throws std::out_of_range for a k larger than n.
template <class T>
ValuesAndIndices<T> topk(const Tensor<T>& x, std::size_t k, std::ptrdiff_t axis = -1, bool largest = true);

// ---- softmax.cpp, layer_norm.cpp, embedding.cpp -------------------------------------------------------------------

/// exp(x) / sum(exp(x)) along the axis. x: any shape -> the same. A row of -inf alone gives NaN, as in PyTorch.
template <class T> Tensor<T> softmax(const Tensor<T>& x, std::ptrdiff_t axis);
/// log(softmax(x)) along the axis, without the loss of digits.
template <class T> Tensor<T> log_softmax(const Tensor<T>& x, std::ptrdiff_t axis);

/// (x - mean) / sqrt(variance + eps) * weight + bias (Ba et al. 2016, arXiv:1607.06450). Mean and (biased) variance are
/// taken over x's last axes, as many as the weight has; undefined tensors for weight or bias leave that step out.
template <class T>
Tensor<T> layer_norm(const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias, double eps = 1e-5);

/// x / sqrt(mean(x²) + eps) * weight (Zhang and Sennrich 2019, arXiv:1910.07467): layer_norm without the means and
/// the bias. The mean of the squares is taken over x's last axes, as many as the weight has; an undefined tensor for
/// the weight leaves that step out, and the mean is that of the last axis.
template <class T> Tensor<T> rms_norm(const Tensor<T>& x, const Tensor<T>& weight = {}, double eps = 1e-6);

/// Rows of the weight. weight: (rows, D), ids: any shape S -> (S, D). Throws std::out_of_range naming the first id
/// outside [0, rows). No gradient reaches the row `padding_idx`.
template <class T>
Tensor<T> embedding(const Tensor<T>& weight, const IntArray& ids, std::optional<std::int64_t> padding_idx = {});

/// Rows of a constant weight in bfloat16, as a constant. Errors call it by its name.
template <class T> Tensor<T> embedding(const Value<BFloat16>& weight, const IntArray& ids, std::string_view name = {});

// ---- attention.cpp, rotary_embedding.cpp --------------------------------------------------------------------------

/// What attention takes beside its operands and a mask.
struct AttentionOptions {
  double dropout = 0;              ///< probability, in [0, 1), of dropping an attention weight
  std::optional<double> scale{};   ///< of the scores; 1 / sqrt(width of the queries) when not given
  Generator* generator = nullptr;  ///< of the dropout; null: the default one
};

/// softmax(scale q k^T, masked) v (Vaswani et al. 2017, arXiv:1706.03762).
/// q: (B, H, T, D), k: (B, H, S, D), v: (B, H, S, E) -> (B, H, T, E); the heads, or batch and heads, may be left out.
/// A query that may attend to nothing yields zeros.
template <class T>
Tensor<T> scaled_dot_product_attention(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                                       const AttentionMask& mask = {}, const AttentionOptions& options = {});

/// The same with the heads side by side in the last axis, as projections leave them. Keys and values may have fewer
/// heads than the queries, each shared by a group of these, one after the other (Ainslie et al. 2023,
/// arXiv:2305.13245): how many, G, follows from the widths and divides H. q: (B, T, H D), k: (B, S, G D), v: (B, S, G
/// E) -> (B, T, H E)
template <class T>
Tensor<T> multi_head_attention(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, std::size_t num_heads,
                               const AttentionMask& mask = {}, const AttentionOptions& options = {});

/// What rotary positions take beside the queries or keys.
struct RotaryOptions {
  double base = 10000;    ///< the slowest pair of elements takes about base * 2 pi positions to turn once
  std::size_t first = 0;  ///< the position of the first row
};

/// Rotary positions (Su et al. 2021, arXiv:2104.09864) of queries or keys, whose heads lie side by side in the last
/// axis: in each head element i of row t is rotated with element i + D/2 by the angle (first + t) base^(-2i / D), so
/// that the scores of attention depend on how far queries and keys are apart. x: (B, T, H D) -> the same. Throws
/// std::invalid_argument for an odd D, and for a base that is not a positive number.
template <class T>
Tensor<T> rotary_embedding(const Tensor<T>& x, std::size_t num_heads, const RotaryOptions& options = {});

/// softmax(scores, masked) along the last axis: zeros where the mask hides, and throughout a row that it hides whole.
/// scores: (B, H, T, S), or without the heads, or without batch and heads.
template <class T> Tensor<T> masked_softmax(const Tensor<T>& scores, const AttentionMask& mask);

// ---- losses.cpp ---------------------------------------------------------------------------------------------------

/// What becomes of the losses of many elements. The mean of none throws std::invalid_argument.
enum class Reduction { mean, sum, none };

/// PyTorch's options of cross_entropy.
template <class T> struct CrossEntropyOptions {
  std::int64_t ignore_index = -100;       ///< labels of this value neither count nor pass a gradient
  double label_smoothing = 0;             ///< in [0, 1]: this share of a label is spread evenly over all classes
  std::optional<Array<T>> weight{};       ///< (C): how much each class counts
  Reduction reduction = Reduction::mean;  ///< of the labels' losses
};

/// -log(softmax(logits)[label]). logits: (..., C), labels: (...). The mean is weighted by the labels' class weights, as
/// in PyTorch; when every label is ignored it is NaN. Throws std::out_of_range for a label outside [0, C).
template <class T>
Tensor<T> cross_entropy(const Tensor<T>& logits, const IntArray& labels,
                        const CrossEntropyOptions<Scalar<T>>& options = {});

/// The same for a distribution over the classes in every label's place. logits, probabilities: (..., C). The mean is
/// over all rows, whatever the class weights. Gradients flow to the probabilities, too. Throws std::invalid_argument
/// for an ignore_index of 0 or more, which means nothing here.
template <class T, std::same_as<T> U>
Tensor<T> cross_entropy(const Tensor<T>& logits, const Tensor<U>& probabilities,
                        const CrossEntropyOptions<Scalar<T>>& options = {});
/// The same with an array or expression of probabilities.
template <class T, class E>
requires std::floating_point<typename E::value_type> Tensor<T> cross_entropy(
    const Tensor<T>& logits, const xt::xexpression<E>& probabilities,
    const CrossEntropyOptions<Scalar<T>>& options = {}) {
  return cross_entropy(logits, Tensor<T>(probabilities), options);
}

/// PyTorch's options of binary_cross_entropy_with_logits.
template <class T> struct BCEWithLogitsOptions {
  std::optional<Array<T>> weight{};       ///< how much each element counts; broadcasts to the logits
  std::optional<Array<T>> pos_weight{};   ///< how much the label 1 counts beside 0; broadcasts to the logits
  Reduction reduction = Reduction::mean;  ///< of the elements' losses
};

/// -log(p) t - log(1 - p) (1 - t) with p = sigmoid(x), for labels t from 0 to 1, without overflow. x and target have
/// one shape. The mean is over all elements, whatever their weights.
template <class T>
Tensor<T> binary_cross_entropy_with_logits(const Tensor<T>& x, const Tensor<T>& target,
                                           const BCEWithLogitsOptions<Scalar<T>>& options = {});
/// The same with an array or expression of labels.
template <class T, class E>
Tensor<T> binary_cross_entropy_with_logits(const Tensor<T>& x, const xt::xexpression<E>& target,
                                           const BCEWithLogitsOptions<Scalar<T>>& options = {}) {
  return binary_cross_entropy_with_logits(x, Tensor<T>(target), options);
}

/// (x - target)^2, averaged, summed, or for each element. x and target have one shape.
template <class T>
Tensor<T> mse_loss(const Tensor<T>& x, const Tensor<T>& target, Reduction reduction = Reduction::mean);
/// The same with an array or expression to compare with.
template <class T, class E>
Tensor<T> mse_loss(const Tensor<T>& x, const xt::xexpression<E>& target, Reduction reduction = Reduction::mean) {
  return mse_loss(x, Tensor<T>(target), reduction);
}

// ---- indices.cpp: without gradients -------------------------------------------------------------------------------

/// ids of any shape S -> (S, classes): 1 at the id, 0 elsewhere. Throws std::out_of_range for an id outside its range.
IntArray one_hot(const IntArray& ids, std::size_t classes);
/// (rows, columns): true where column <= row, the keys that a query of a causal model may attend to.
BoolArray causal_mask(std::size_t rows, std::size_t columns);
/// True where the id is not the padding's. ids: (B, T) -> (B, T), as AttentionMask::key_padding takes it.
BoolArray padding_mask(const IntArray& ids, std::int64_t padding_id);

}  // namespace tapegrad
