// What the page knows of operations by their names, to say more than their formulas do. They are the library's: its
// tests hold every name that stands here against them. Those that are not here, users' own for instance, are shown all
// the same.

const ADD = "add";
const LINEAR = "linear";
const RELU = "relu";
const RESHAPE = "reshape";
const ATTENTION = new Set(["multi_head_attention", "scaled_dot_product_attention"]);
const SOFTMAX = new Set(["softmax", "masked_softmax"]);
const PRODUCTS = new Set(["matmul"]);

/** They put in what is to be hidden from softmax. */
const MASKS = new Set(["masked_fill", "where"]);

/** They move numbers to other places. */
const MOVES = new Set(["reshape", "transpose", "permute", "unsqueeze", "squeeze", "expand"]);

/** Of these, those that put axes in another order. */
const TRANSPOSES = new Set(["transpose", "permute"]);

/** Their result is a range of the input along one axis. */
const PARTS = new Set(["split", "narrow"]);

/** What a bias of the keys makes of the scores stays the same for all keys. */
const SCALES = new Set(["add", "mul", "div", "masked_fill"]);

/** Their inputs may be broadcast; what comes back is then summed, which their rules do not say. */
const BROADCAST = new Set(["add", "sub", "mul", "div", "pow", "where", "matmul"]);

/** Each number of the result stands where that of the input stood. */
const IN_PLACE = new Set([
  ...["add", "sub", "mul", "div", "pow", "neg", "where", "masked_fill", "dropout", "clamp"],
  ...["exp", "log", "sqrt", "abs", "tanh", "sigmoid", "relu", "gelu", "silu", "softplus"],
  ...["softmax", "masked_softmax", "log_softmax", "layer_norm", "rms_norm", "rotary_embedding"],
]);
