/// The operations on Tensor<float> and Tensor<double>. Each is defined together with its backward rule in the file of
/// engine/ops/ named above its group.
///
/// Names are PyTorch's, with `axis` instead of dim. Negative axes count from the end. A scalar counts as one element
/// along axis 0 for reductions, softmax and its relatives, selections, squeeze and transpose. Invalid shapes, axes and
/// options throw std::invalid_argument, indices out of range std::out_of_range; the message names the operation and
/// the shapes or numbers it got.
///
/// Arrays and expressions of type T can replace tensors as constants, as in softmax(array, -1). The build generates
/// overloads for them from these prototypes; include/tapegrad/tapegrad.hpp includes them.
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

/// The type of a scalar argument next to a Tensor<T>: any number converts to it.
template <class T> using Scalar = std::type_identity_t<T>;

// ---- elementwise.cpp: operands broadcast as in NumPy; either side may be a scalar, an array or an expression -------

/// a + b, elementwise; both broadcast. All operators throw std::invalid_argument if the shapes do not.
template <class T> Tensor<T> operator+(const Tensor<T>& a, const Tensor<T>& b);
template <class T> Tensor<T> operator+(const Tensor<T>& a, Scalar<T> b);                   ///< a + b with a scalar b
template <class T> Tensor<T> operator+(Scalar<T> a, const Tensor<T>& b) { return b + a; }  ///< a + b with a scalar a
/// a - b, elementwise; both broadcast.
template <class T> Tensor<T> operator-(const Tensor<T>& a, const Tensor<T>& b);
template <class T> Tensor<T> operator-(const Tensor<T>& a, Scalar<T> b);  ///< a - b with a scalar b
template <class T> Tensor<T> operator-(Scalar<T> a, const Tensor<T>& b);  ///< a - b with a scalar a
/// a b, elementwise; both broadcast.
template <class T> Tensor<T> operator*(const Tensor<T>& a, const Tensor<T>& b);
template <class T> Tensor<T> operator*(const Tensor<T>& a, Scalar<T> b);                   ///< a b with a scalar b
template <class T> Tensor<T> operator*(Scalar<T> a, const Tensor<T>& b) { return b * a; }  ///< a b with a scalar a
/// a / b, elementwise; both broadcast.
template <class T> Tensor<T> operator/(const Tensor<T>& a, const Tensor<T>& b);
template <class T> Tensor<T> operator/(const Tensor<T>& a, Scalar<T> b);  ///< a / b with a scalar b
template <class T> Tensor<T> operator/(Scalar<T> a, const Tensor<T>& b);  ///< a / b with a scalar a
template <class T> Tensor<T> operator-(const Tensor<T>& x);               ///< -x

/// x^exponent. The gradient of x^0 = 1 with respect to x is 0, and so is the gradient of 0^y = 0 with respect to y > 0.
/// The gradient with respect to the exponent of a negative x is NaN.
template <class T> Tensor<T> pow(const Tensor<T>& x, Scalar<T> exponent);
/// The same, elementwise; both broadcast.
template <class T> Tensor<T> pow(const Tensor<T>& x, const Tensor<T>& exponent);
/// x^exponent for each exponent.
template <class T> Tensor<T> pow(Scalar<T> x, const Tensor<T>& exponent) {
  return pow(Tensor<T>(Array<T>(Shape{}, x)), exponent);
}

/// x = x + y: the handle x refers to the recorded sum afterwards, in the shape both broadcast to. The previous array is
/// unchanged for tapes and other handles. Does not compile for a Parameter, and throws std::logic_error for one seen as
/// a Tensor; change its value by set_value() or mutable_value().
template <detail::IsTensor X, class Y> X& operator+=(X& x, const Y& y) {
  return detail::rebind(x, [&] { return x + y; });
}
/// x = x - y, like +=.
template <detail::IsTensor X, class Y> X& operator-=(X& x, const Y& y) {
  return detail::rebind(x, [&] { return x - y; });
}
/// x = x * y, like +=.
template <detail::IsTensor X, class Y> X& operator*=(X& x, const Y& y) {
  return detail::rebind(x, [&] { return x * y; });
}
/// x = x / y, like +=.
template <detail::IsTensor X, class Y> X& operator/=(X& x, const Y& y) {
  return detail::rebind(x, [&] { return x / y; });
}

/// e^x. Overflows to inf slightly early: at x = 88.38 in float (exactly: 88.72), at 709.44 in double (709.78). Is 0
/// instead of a subnormal number: below -87.68 in float, below -708.39 in double.
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

/// min(max(x, min), max). Either bound is optional, as in `clamp(x, {}, 1)`. The gradient is dy from bound to bound,
/// bounds included, and 0 outside. Throws std::invalid_argument without any bound.
template <class T> Tensor<T> clamp(const Tensor<T>& x, std::optional<Scalar<T>> min, std::optional<Scalar<T>> max = {});
/// x sigmoid(x), also called swish (Elfwing et al. 2017, arXiv:1702.03118).
template <class T> Tensor<T> silu(const Tensor<T>& x);
/// log(1 + exp(beta x)) / beta, a smooth relu; x itself if beta x > threshold.
template <class T> Tensor<T> softplus(const Tensor<T>& x, double beta = 1, double threshold = 20);

/// The formula of gelu: x Phi(x) with the normal distribution's Phi, or the approximation by tanh.
enum class Gelu { exact, tanh };

/// Gaussian error linear unit (Hendrycks and Gimpel 2016, arXiv:1606.08415).
template <class T> Tensor<T> gelu(const Tensor<T>& x, Gelu formula = Gelu::exact);

/// `value` if the mask is true, x if it is false; both broadcast.
template <class T> Tensor<T> masked_fill(const Tensor<T>& x, const BoolArray& mask, Scalar<T> value) {
  return masked_fill(x, mask, Tensor<T>(Array<T>(Shape{}, value)));
}
/// The same with a tensor of shape (). It receives the sum of the gradients of the filled elements.
template <class T> Tensor<T> masked_fill(const Tensor<T>& x, const BoolArray& mask, const Tensor<T>& value);

/// a if the condition is true, b if it is false; all three broadcast.
template <class T> Tensor<T> where(const BoolArray& condition, const Tensor<T>& a, const Tensor<T>& b);

/// The larger of a and b, elementwise; both broadcast. Equal elements get half of the gradient each. NaN if either is.
template <class T> Tensor<T> maximum(const Tensor<T>& a, const Tensor<T>& b);
/// The smaller of a and b, like maximum.
template <class T> Tensor<T> minimum(const Tensor<T>& a, const Tensor<T>& b);

/// Sets each element to 0 with probability p and divides the others by 1 - p; the identity unless `training`. Throws
/// std::invalid_argument if p is not in [0, 1).
template <class T>
Tensor<T> dropout(const Tensor<T>& x, double p, bool training = true, Generator& generator = default_generator());

// ---- matmul.cpp ---------------------------------------------------------------------------------------------------

/// Like torch.matmul, (n) (n) -> (), (m, n) (n) -> (m), (n) (n, p) -> (p), (..., m, n) (..., n, p) -> (..., m, p) with
/// leading axes broadcast.
template <class T> Tensor<T> matmul(const Tensor<T>& a, const Tensor<T>& b);

/// x W^T + b. x: (..., in), weight: (out, in), bias: (out) or undefined -> (..., out)
template <class T> Tensor<T> linear(const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias = {});

/// The same with a constant weight in bfloat16, called `name` in errors.
template <class T>
Tensor<T> linear(const Tensor<T>& x, const Value<BFloat16>& weight, const Tensor<T>& bias = {},
                 std::string_view name = {});

/// Einstein summation over two operands, such as "bqd,bkd->bqk": each letter names an axis, and letters missing in the
/// output are summed over. A letter occurs at most once in each operand and in the output.
template <class T> Tensor<T> einsum(std::string_view equation, const Tensor<T>& a, const Tensor<T>& b);

// ---- views.cpp: other arrangements of the same elements -----------------------------------------------------------

/// Exchanges two axes.
template <class T> Tensor<T> transpose(const Tensor<T>& x, std::ptrdiff_t axis0, std::ptrdiff_t axis1);
/// Axis i of the result is axis axes[i] of x.
template <class T> Tensor<T> permute(const Tensor<T>& x, const Axes& axes);
/// The same elements in row-major order under another shape; one extent may be -1, for the remaining elements.
template <class T> Tensor<T> reshape(const Tensor<T>& x, const Extents& shape);
/// Inserts an axis of extent 1 at the position `axis` of the result.
template <class T> Tensor<T> unsqueeze(const Tensor<T>& x, std::ptrdiff_t axis);
/// Removes all axes of extent 1.
template <class T> Tensor<T> squeeze(const Tensor<T>& x);
/// Removes the axis if its extent is 1.
template <class T> Tensor<T> squeeze(const Tensor<T>& x, std::ptrdiff_t axis);
/// Stretches axes of extent 1, and adds leading axes, to the given shape; -1 keeps an extent.
template <class T> Tensor<T> expand(const Tensor<T>& x, const Extents& shape);
/// Tiles x `repeats[i]` times along axis i; more repeats than axes add leading axes.
template <class T> Tensor<T> repeat(const Tensor<T>& x, const IntList& repeats);
/// Repeats every slice along the axis, each `repeats` times in a row.
template <class T> Tensor<T> repeat_interleave(const Tensor<T>& x, std::size_t repeats, std::ptrdiff_t axis);
/// The slice at `index` along the axis, without this axis; a negative index counts from the end.
template <class T> Tensor<T> select(const Tensor<T>& x, std::ptrdiff_t axis, std::ptrdiff_t index);
/// The slices start, ..., start + length - 1 along the axis.
template <class T> Tensor<T> narrow(const Tensor<T>& x, std::ptrdiff_t axis, std::ptrdiff_t start, std::size_t length);
/// Pieces of `size` slices along the axis; the last may be shorter. An empty axis is one piece, as in PyTorch.
template <class T> std::vector<Tensor<T>> split(const Tensor<T>& x, std::size_t size, std::ptrdiff_t axis = 0);
/// Shifts the elements by `shift` places along the axis, from the end around to the start.
template <class T> Tensor<T> roll(const Tensor<T>& x, std::ptrdiff_t shift, std::ptrdiff_t axis);
/// The same along the flattened elements.
template <class T> Tensor<T> roll(const Tensor<T>& x, std::ptrdiff_t shift);
/// The lower triangle of the last two axes, zeros above diagonal `diagonal`.
template <class T> Tensor<T> tril(const Tensor<T>& x, std::ptrdiff_t diagonal = 0);
/// The upper triangle of the last two axes, zeros below diagonal `diagonal`.
template <class T> Tensor<T> triu(const Tensor<T>& x, std::ptrdiff_t diagonal = 0);

// ---- views.cpp: joining --------------------------------------------------------------------------------------------

/// Joins tensors along an axis; the other extents are equal.
template <class T> Tensor<T> cat(std::span<const Tensor<T>> tensors, std::ptrdiff_t axis = 0);
/// Joins tensors of equal shape along a new axis.
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

// ---- reductions.cpp: over the given axes, or over all axes without any ---------------------------------------------

/// The sum over the axes; 0 over no elements. x: any shape -> the other axes; with keepdims the summed axes keep
/// extent 1.
template <class T> Tensor<T> sum(const Tensor<T>& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);
/// The mean over the axes, sum(x) / n, shaped like sum. Throws std::invalid_argument over no elements.
template <class T> Tensor<T> mean(const Tensor<T>& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);
/// Does not compile: explains `mean(argmax(x, 1) == labels)`.
template <std::same_as<bool> Equal> void mean(Equal) {
  static_assert(
      !std::same_as<Equal, bool>,
      "tapegrad: expected a tensor to average, got a bool: == on arrays is true if all elements are equal. For "
      "the share of correct labels, call tg::accuracy(logits, labels).");
}
/// The variance: sum((x - mean)²) / max(n - correction, 0). NaN for one element unless the correction is 0. Throws
/// std::invalid_argument over no elements.
template <class T>
Tensor<T> var(const Tensor<T>& x, const Axes& axes = {}, double correction = 1, KeepDims keep = KeepDims::no);
/// The largest element. Equal ones share the gradient. Throws std::invalid_argument over no elements.
template <class T> Tensor<T> amax(const Tensor<T>& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);

// ---- reductions.cpp: elements selected along an axis; NaN counts as larger than every number ----------------------

/// Selected elements and their indices along an axis, in equal shapes: `auto [values, indices] = max(x, -1);`.
template <class T> struct ValuesAndIndices {
  Tensor<T> values;  ///< recorded
  IntArray indices;  ///< along the axis, from 0
};

/// out[i][j] = x[index[i][j]][j] for axis 0 of two, and so on. The index has as many axes as x and extents of at most
/// x's, except along `axis`; the result has its shape. Throws std::out_of_range if an index is negative or too large.
template <class T> Tensor<T> gather(const Tensor<T>& x, std::ptrdiff_t axis, const IntArray& index);
/// The index of the largest element along the axis, the first of equals. x: (..., n, ...) -> the other axes. Throws
/// std::invalid_argument over no elements.
template <class T> IntArray argmax(const Array<T>& x, std::ptrdiff_t axis);
/// The same of a tensor's value.
template <class T> IntArray argmax(const Tensor<T>& x, std::ptrdiff_t axis) { return argmax(x.value(), axis); }
/// The largest element along the axis, the first of equals. Only this one receives the gradient. Throws
/// std::invalid_argument over no elements.
template <class T> ValuesAndIndices<T> max(const Tensor<T>& x, std::ptrdiff_t axis, KeepDims keep = KeepDims::no);
/// The k largest or smallest elements along the axis in sorted order, equal ones in their original order.
/// x: (..., n, ...) -> (..., k, ...). Throws std::out_of_range if k > n.
template <class T>
ValuesAndIndices<T> topk(const Tensor<T>& x, std::size_t k, std::ptrdiff_t axis = -1, bool largest = true);

// ---- normalization.cpp --------------------------------------------------------------------------------------------

/// exp(x) / sum(exp(x)) along the axis. x: any shape -> the same. A row of only -inf gives NaN, as in PyTorch.
template <class T> Tensor<T> softmax(const Tensor<T>& x, std::ptrdiff_t axis);
/// log(softmax(x)) along the axis, computed without loss of precision.
template <class T> Tensor<T> log_softmax(const Tensor<T>& x, std::ptrdiff_t axis);

/// softmax(scores, masked) along the last axis, with zeros for masked keys and throughout fully masked rows.
/// scores: (B, H, T, S); H, or B and H, are optional.
template <class T> Tensor<T> masked_softmax(const Tensor<T>& scores, const AttentionMask& mask);

/// (x - mean) / sqrt(variance + eps) * weight + bias (Ba et al. 2016, arXiv:1607.06450), with the mean and the biased
/// variance over x's last axes, as many as the weight has. An undefined weight or bias skips its step.
template <class T>
Tensor<T> layer_norm(const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias, double eps = 1e-5);

/// x / sqrt(mean(x²) + eps) * weight (Zhang and Sennrich 2019, arXiv:1910.07467), with the mean over x's last axes, as
/// many as the weight has. An undefined weight skips its step; the mean is then over the last axis.
template <class T> Tensor<T> rms_norm(const Tensor<T>& x, const Tensor<T>& weight = {}, double eps = 1e-6);

// ---- attention.cpp ------------------------------------------------------------------------------------------------

/// Options of attention.
struct AttentionOptions {
  double dropout = 0;              ///< probability, in [0, 1), of dropping an attention weight
  std::optional<double> scale{};   ///< of the scores; 1 / sqrt(width of the queries) by default
  Generator* generator = nullptr;  ///< of the dropout; null: the default generator
};

/// softmax(scale q k^T, masked) v (Vaswani et al. 2017, arXiv:1706.03762).
/// q: (B, H, T, D), k: (B, H, S, D), v: (B, H, S, E) -> (B, H, T, E); H, or B and H, are optional. Fully masked queries
/// yield zeros.
template <class T>
Tensor<T> scaled_dot_product_attention(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v,
                                       const AttentionMask& mask = {}, const AttentionOptions& options = {});

/// The same with the heads side by side in the last axis, like outputs of projections. Grouped-query attention
/// (Ainslie et al. 2023, arXiv:2305.13245): keys and values may have fewer heads G, a divisor of H derived from the
/// widths; each serves H / G consecutive query heads. q: (B, T, H D), k: (B, S, G D), v: (B, S, G E) -> (B, T, H E)
template <class T>
Tensor<T> multi_head_attention(const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v, std::size_t num_heads,
                               const AttentionMask& mask = {}, const AttentionOptions& options = {});

/// (rows, columns): true if column <= row, the keys visible to a causal model's query.
BoolArray causal_mask(std::size_t rows, std::size_t columns);
/// True if the id is not the padding's, for AttentionMask::key_padding. ids: (B, T) -> (B, T)
BoolArray padding_mask(const IntArray& ids, std::int64_t padding_id);

// ---- embedding.cpp ------------------------------------------------------------------------------------------------

/// Rows of the weight. weight: (rows, D), ids: any shape S -> (S, D). The row `padding_idx` gets no gradient. Throws
/// std::out_of_range naming the first id outside [0, rows), or such a padding_idx.
template <class T>
Tensor<T> embedding(const Tensor<T>& weight, const IntArray& ids, std::optional<std::int64_t> padding_idx = {});

/// Rows of a constant weight in bfloat16, as a constant. The weight is called `name` in errors.
template <class T> Tensor<T> embedding(const Value<BFloat16>& weight, const IntArray& ids, std::string_view name = {});

/// ids of any shape S -> (S, classes): 1 at the id, 0 elsewhere. Throws std::out_of_range for an id outside its range.
IntArray one_hot(const IntArray& ids, std::size_t classes);

/// Options of rotary positions.
struct RotaryOptions {
  double base = 10000;    ///< the slowest pair of elements turns once in about base * 2 pi positions
  std::size_t first = 0;  ///< the position of the first row
};

/// Rotary positions (Su et al. 2021, arXiv:2104.09864) of queries or keys: in each head, rotates elements i and i + D/2
/// of row t by the angle (first + t) base^(-2i / D), so scores depend on the distance between query and key.
/// x: (B, T, H D) -> the same. Throws std::invalid_argument if D is odd or the base is not a positive number.
template <class T>
Tensor<T> rotary_embedding(const Tensor<T>& x, std::size_t num_heads, const RotaryOptions& options = {});

// ---- losses.cpp ---------------------------------------------------------------------------------------------------

/// Combines the losses of many elements. The mean of no elements throws std::invalid_argument.
enum class Reduction { mean, sum, none };

/// PyTorch's options of cross_entropy.
template <class T> struct CrossEntropyOptions {
  std::int64_t ignore_index = -100;       ///< labels of this value are skipped, without loss or gradient
  double label_smoothing = 0;             ///< in [0, 1]: share of each label spread evenly over all classes
  std::optional<Array<T>> weight{};       ///< (C): weight of each class
  Reduction reduction = Reduction::mean;  ///< of the labels' losses
};

/// -log(softmax(logits)[label]). logits: (..., C), labels: (...). The mean is weighted by the labels' class weights, as
/// in PyTorch, and NaN if every label is ignored. Throws std::out_of_range for a label outside [0, C).
template <class T>
Tensor<T> cross_entropy(const Tensor<T>& logits, const IntArray& labels,
                        const CrossEntropyOptions<Scalar<T>>& options = {});

/// The same with a distribution over the classes instead of each label. logits, probabilities: (..., C). The mean is
/// over all rows, independent of class weights. Gradients flow to the probabilities, too. Throws std::invalid_argument
/// if ignore_index >= 0, since rows have no label to ignore.
template <class T, std::same_as<T> U>
Tensor<T> cross_entropy(const Tensor<T>& logits, const Tensor<U>& probabilities,
                        const CrossEntropyOptions<Scalar<T>>& options = {});
/// The same with an array or expression of logits, of probabilities, or of both.
template <class L, class P, std::floating_point U = typename P::value_type>
requires detail::SomeExpression<L, P>
auto cross_entropy(const L& logits, const P& probabilities,
                   const CrossEntropyOptions<typename L::value_type>& options = {}) {
  using T = typename L::value_type;
  return cross_entropy(Tensor<T>(logits), Tensor<T>(probabilities), options);
}

/// PyTorch's options of binary_cross_entropy_with_logits.
template <class T> struct BCEWithLogitsOptions {
  std::optional<Array<T>> weight{};       ///< weight of each element; broadcasts to the logits
  std::optional<Array<T>> pos_weight{};   ///< weight of the label 1 relative to 0; broadcasts to the logits
  Reduction reduction = Reduction::mean;  ///< of the elements' losses
};

/// -log(p) t - log(1 - p) (1 - t) with p = sigmoid(x), for labels t from 0 to 1, without overflow. x and target have
/// equal shapes. The mean is over all elements, independent of their weights.
template <class T>
Tensor<T> binary_cross_entropy_with_logits(const Tensor<T>& x, const Tensor<T>& target,
                                           const BCEWithLogitsOptions<Scalar<T>>& options = {});
/// The same with an array or expression of labels.
template <class T, class E>
Tensor<T> binary_cross_entropy_with_logits(const Tensor<T>& x, const xt::xexpression<E>& target,
                                           const BCEWithLogitsOptions<Scalar<T>>& options = {}) {
  return binary_cross_entropy_with_logits(x, Tensor<T>(target), options);
}

/// (x - target)^2, averaged, summed, or for each element. x and target have equal shapes.
template <class T>
Tensor<T> mse_loss(const Tensor<T>& x, const Tensor<T>& target, Reduction reduction = Reduction::mean);
/// The same with an array or expression as the target.
template <class T, class E>
Tensor<T> mse_loss(const Tensor<T>& x, const xt::xexpression<E>& target, Reduction reduction = Reduction::mean) {
  return mse_loss(x, Tensor<T>(target), reduction);
}

/// The share of labels equal to the argmax of their logits, without a gradient. logits: (..., C), labels: (...). Skips
/// labels of ignore_index and throws like cross_entropy; NaN if every label is ignored.
template <class T> double accuracy(const Array<T>& logits, const IntArray& labels, std::int64_t ignore_index = -100);
/// The same of a tensor's value.
template <class T> double accuracy(const Tensor<T>& logits, const IntArray& labels, std::int64_t ignore_index = -100) {
  return accuracy(logits.value(), labels, ignore_index);
}

}  // namespace tapegrad
