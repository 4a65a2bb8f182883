// Properties of the library's operations by name, for explanations beyond their formulas. A test checks that the
// library has every operation named here. Others, such as users' own, are shown without these explanations.

const ADD = "add";
const LINEAR = "linear";
const RELU = "relu";
const RESHAPE = "reshape";
const ATTENTION = new Set(["multi_head_attention", "scaled_dot_product_attention"]);
const SOFTMAX = new Set(["softmax", "masked_softmax"]);
const PRODUCTS = new Set(["matmul"]);

/** Insert values to hide from softmax. */
const MASKS = new Set(["masked_fill", "where"]);

/** Only rearrange numbers. */
const MOVES = new Set(["reshape", "transpose", "permute", "unsqueeze", "squeeze", "expand"]);

/** MOVES that permute axes. */
const TRANSPOSES = new Set(["transpose", "permute"]);

/** Return a range of the input along one axis. */
const PARTS = new Set(["split", "narrow"]);

/** Preserve a shift of the scores equal for all keys, as from a bias of the keys. */
const SCALES = new Set(["add", "mul", "div", "masked_fill"]);

/** May broadcast inputs; the gradient is then summed, a step omitted in their rules. */
const BROADCAST = new Set(["add", "sub", "mul", "div", "pow", "where", "matmul"]);

/** Preserve positions: the result has the input's axes, up to broadcasting. */
const IN_PLACE = new Set([
  ...["add", "sub", "mul", "div", "pow", "neg", "where", "masked_fill", "dropout", "clamp"],
  ...["exp", "log", "sqrt", "abs", "tanh", "sigmoid", "relu", "gelu", "silu", "softplus"],
  ...["softmax", "masked_softmax", "log_softmax", "layer_norm", "rms_norm", "rotary_embedding"],
]);
