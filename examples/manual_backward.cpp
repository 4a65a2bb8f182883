/// The backward pass of attention by hand, each gradient compared with the tape's.

#include <tapegrad/tapegrad.hpp>

#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "common/tutorial.hpp"

namespace tg = tapegrad;
using namespace examples;  // section, show, named, as_step etc. from common/tutorial.hpp
using Tensor = tg::Tensor<double>;
using Parameter = tg::Parameter<double>;
using Array = tg::Array<double>;

/// Swaps the last two axes.
Tensor transposed(const Tensor& x) { return tg::transpose(x, -1, -2); }

/// The tape's gradient of x.
Tensor by_tape(const Tensor& x) { return Tensor(x.grad()); }

/// The gradient of the scores from that of the softmax P. Multiplies each row by the Jacobian diag(p) - p p^T without
/// forming it: P * (dP - row sum of dP * P). P, dP: (..., T) -> (..., T)
Tensor softmax_backward(const Tensor& P, const Tensor& dP) { return P * (dP - tg::sum(dP * P, {-1}, tg::keepdims)); }

/// Names the values for the page and retains their gradients for by_tape.
void name_and_retain(std::initializer_list<std::pair<const char*, Tensor*>> values) {
  for (const auto& [name, value] : values) {
    value->set_name(name);
    value->retain_grad();
  }
}

// ---- one head: T tokens of width M; queries, keys and values of width D -------------------------------------------

struct OneHead {
  Parameter X, Wq, Wk, Wv, Wo;    // (T, M), (M, D), (M, D), (M, D), (D, M)
  Tensor Y;                       // (T, M), target
  Tensor Q, K, V, S, P, Z, O, L;  // (T, D), (T, D), (T, D), (T, T), (T, T), (T, D), (T, M), ()

  OneHead(std::size_t T, std::size_t M, std::size_t D)
      : X(random_numbers<double>({T, M})),
        Wq(random_numbers<double>({M, D})),
        Wk(random_numbers<double>({M, D})),
        Wv(random_numbers<double>({M, D})),
        Wo(random_numbers<double>({D, M})),
        Y(random_numbers<double>({T, M})) {}

  double scale() const { return 1 / std::sqrt(static_cast<double>(Wq.shape()[1])); }

  /// Runs forward and the tape's backward pass.
  void run() {
    Y.set_name("Y");
    name_and_retain({{"X", &X}, {"Wq", &Wq}, {"Wk", &Wk}, {"Wv", &Wv}, {"Wo", &Wo}});
    Q = tg::matmul(X, Wq);
    K = tg::matmul(X, Wk);
    V = tg::matmul(X, Wv);
    S = tg::matmul(Q, transposed(K)) * scale();
    P = tg::softmax(S, -1);
    Z = tg::matmul(P, V);
    O = tg::matmul(Z, Wo);
    L = tg::mse_loss(O, Y);
    name_and_retain({{"Q", &Q}, {"K", &K}, {"V", &V}, {"S", &S}, {"P", &P}, {"Z", &Z}, {"O", &O}, {"L", &L}});
    L.backward();
  }
};

tg::PageStep one_head_on_page() {
  const std::vector<std::string> words{"the", "river", "bank"};
  const tg::PageAxis token{"token", words}, query{"query", words}, key{"key", words}, of_width{};
  tg::PageAxes axes{{"S", {query, key}}, {"P", {query, key}}};
  for (const char* name : {"X", "Y", "Q", "K", "V", "Z", "O"}) axes[name] = {token, of_width};
  return {.label = "one head", .axes = axes};
}

void one_head_forward(const OneHead& m) {
  section("1. One head, forward",
          "Three tokens of width 2 in X; queries, keys and values of width 4; the target of the output O is Y. "
          "L = mse_loss(O, Y), the mean of the squared differences.");
  show_together({{"X", m.X}, {"Y", m.Y}}, {.decimals = 1});
  show_together({{"Wq", m.Wq}, {"Wk", m.Wk}, {"Wv", m.Wv}}, {.decimals = 1});
  show("Wo", m.Wo, {.decimals = 1});
  show_together({{"Q = X Wq", m.Q}, {"K = X Wk", m.K}, {"V = X Wv", m.V}}, {.decimals = 2});
  show_together({{"S = Q K^T / sqrt(4)", m.S}, {"P = softmax(S)", m.P}});
  show_together({{"Z = P V", m.Z}, {"O = Z Wo", m.O}, {"L", m.L}});
}

void one_head_through_the_softmax(const OneHead& m) {
  section("2. Through the softmax",
          "A row p = softmax(s): if s_j rises, p_j rises and all others fall. The Jacobian tells by how much: "
          "dp_i / ds_j = p_i (1 - p_i) for i = j, and -p_i p_j otherwise. For the first token:");
  const Tensor p = tg::select(m.P, 0, 0), dp = tg::select(by_tape(m.P), 0, 0);  // (T)
  const std::size_t T = p.size();
  const Tensor identity(Array(xt::eye<double>(T)));
  const Tensor column = tg::unsqueeze(p, 1), row = tg::unsqueeze(p, 0);  // (T, 1), (1, T)
  const Tensor J = identity * column - tg::matmul(column, row);          // diag(p) - p p^T, (T, T)
  show_together({{"p", p}, {"J = diag(p) - p p^T", J}, {"dp", dp}});
  see("J is symmetric and its rows sum to 0, because p sums to 1 for any s");
  show_together({{"ds = J dp", tg::matmul(J, dp)}, {"the tape's", tg::select(by_tape(m.S), 0, 0)}});
  see("no need to build J: J dp = p * (dp - sum(dp * p)), for all rows at once below");
}

void one_head_backward(const OneHead& m) {
  section("3. One head, backward",
          "From the loss back to the input. The backward pass of a matrix product C = A B is dA = dC B^T and "
          "dB = A^T dC, the only products with the right shapes.");
  const auto n = static_cast<double>(m.O.size());
  const Tensor dO = (m.O - m.Y) * (2 / n);
  const Tensor dWo = tg::matmul(transposed(m.Z), dO);
  const Tensor dZ = tg::matmul(dO, transposed(m.Wo));
  const Tensor dP = tg::matmul(dZ, transposed(m.V));
  const Tensor dV = tg::matmul(transposed(m.P), dZ);
  const Tensor dS = softmax_backward(m.P, dP);
  const Tensor dQ = tg::matmul(dS, m.K) * m.scale();
  const Tensor dK = tg::matmul(transposed(dS), m.Q) * m.scale();
  const Tensor dWq = tg::matmul(transposed(m.X), dQ);
  const Tensor dWk = tg::matmul(transposed(m.X), dK);
  const Tensor dWv = tg::matmul(transposed(m.X), dV);
  const Tensor dX =
      tg::matmul(dQ, transposed(m.Wq)) + tg::matmul(dK, transposed(m.Wk)) + tg::matmul(dV, transposed(m.Wv));

  show_together({{"dO", dO}, {"dZ", dZ}});
  show("dWo", dWo);
  show_together({{"dP", dP}, {"dS", dS}});
  see("rows of dS sum to 0: adding a constant to all scores of a row changes nothing");
  show_together({{"dQ", dQ}, {"dK", dK}, {"dV", dV}});
  show_together({{"dWq", dWq}, {"dWk", dWk}, {"dWv", dWv}});
  show("dX", dX);
  see("X feeds Q, K and V, so its gradient is the sum of three");

  say("Gradients by hand and by the tape:");
  Comparison table(1e-12);
  table.add("dO", "2/n (O - Y)", dO, by_tape(m.O));
  table.add("dWo", "Z^T dO", dWo, by_tape(m.Wo));
  table.add("dZ", "dO Wo^T", dZ, by_tape(m.Z));
  table.add("dP", "dZ V^T", dP, by_tape(m.P));
  table.add("dV", "P^T dZ", dV, by_tape(m.V));
  table.add("dS", "P * (dP - rowsum(dP * P))", dS, by_tape(m.S));
  table.add("dQ", "dS K / sqrt(D)", dQ, by_tape(m.Q));
  table.add("dK", "dS^T Q / sqrt(D)", dK, by_tape(m.K));
  table.add("dWq", "X^T dQ", dWq, by_tape(m.Wq));
  table.add("dWk", "X^T dK", dWk, by_tape(m.Wk));
  table.add("dWv", "X^T dV", dWv, by_tape(m.Wv));
  table.add("dX", "dQ Wq^T + dK Wk^T + dV Wv^T", dX, by_tape(m.X));
  finish(table);
}

// ---- several heads: a batch of B entries of T tokens of width D, H heads, a mask and biases -----------------------

struct SeveralHeads {
  std::size_t heads;
  tg::IntArray mask;            // (B, 1, T, T), 1 where a query may attend to a key
  Parameter X, Wq, Wk, Wv, Wo;  // (B, T, D), then (D, D)
  Parameter bq, bk, bv, bo;     // (D)
  Tensor Y;                     // (B, T, D)
  Tensor q, k, v, z;            // (B, T, D), the heads concatenated
  Tensor Q, K, V, S, M, P, Z;   // per head (B, H, T, D / H); S, M and P (B, H, T, T)
  Tensor O, L;                  // (B, T, D), ()

  SeveralHeads(tg::IntArray attend, std::size_t B, std::size_t T, std::size_t D, std::size_t H)
      : heads(H),
        mask(std::move(attend)),
        X(random_numbers<double>({B, T, D})),
        Wq(random_numbers<double>({D, D})),
        Wk(random_numbers<double>({D, D})),
        Wv(random_numbers<double>({D, D})),
        Wo(random_numbers<double>({D, D})),
        bq(random_numbers<double>({D})),
        bk(random_numbers<double>({D})),
        bv(random_numbers<double>({D})),
        bo(random_numbers<double>({D})),
        Y(random_numbers<double>({B, T, D})) {}

  double scale() const {
    const std::size_t width = X.shape()[2] / heads;
    return 1 / std::sqrt(static_cast<double>(width));
  }

  /// (B, T, D) -> (B, H, T, D / H)
  Tensor split(const Tensor& x) const {
    const auto& s = x.shape();
    return tg::transpose(tg::reshape(x, {s[0], s[1], heads, s[2] / heads}), 1, 2);
  }

  /// (B, H, T, D / H) -> (B, T, D)
  Tensor merge(const Tensor& x) const { return tg::reshape(tg::transpose(x, 1, 2), {x.shape()[0], x.shape()[2], -1}); }

  /// Zeroes the gradients of hidden scores.
  Tensor mask_gradient(const Tensor& dM) const { return tg::masked_fill(dM, xt::equal(mask, 0), 0); }

  /// Runs forward and the tape's backward pass.
  void run() {
    Y.set_name("Y");
    name_and_retain({{"X", &X}, {"Wq", &Wq}, {"Wk", &Wk}, {"Wv", &Wv}, {"Wo", &Wo}});
    name_and_retain({{"bq", &bq}, {"bk", &bk}, {"bv", &bv}, {"bo", &bo}});
    q = tg::matmul(X, Wq) + bq;
    k = tg::matmul(X, Wk) + bk;
    v = tg::matmul(X, Wv) + bv;
    Q = split(q);
    K = split(k);
    V = split(v);
    S = tg::matmul(Q, transposed(K)) * scale();
    M = tg::masked_fill(S, xt::equal(mask, 0), -1e20);
    P = tg::softmax(M, -1);
    Z = tg::matmul(P, V);
    z = merge(Z);
    O = tg::matmul(z, Wo) + bo;
    L = tg::mse_loss(O, Y);
    name_and_retain({{"q", &q}, {"k", &k}, {"v", &v}, {"Q", &Q}, {"K", &K}, {"V", &V}, {"S", &S}, {"M", &M}});
    name_and_retain({{"P", &P}, {"Z", &Z}, {"z", &z}, {"O", &O}, {"L", &L}});
    L.backward();
  }
};

tg::PageStep several_heads_on_page() {
  const tg::PageAxis batch{"batch"}, head{"head"}, token{"token"}, query{"query"}, key{"key"}, of_width{};
  tg::PageAxes axes;
  for (const char* name : {"X", "Y", "q", "k", "v", "z", "O"}) axes[name] = {batch, token, of_width};
  for (const char* name : {"Q", "K", "V", "Z"}) axes[name] = {batch, head, token, of_width};
  for (const char* name : {"S", "M", "P"}) axes[name] = {batch, head, query, key};
  return {.label = "several heads", .axes = axes};
}

void several_heads_forward(const SeveralHeads& m) {
  section("4. Several heads, with a batch, a mask and biases: forward",
          "Two sentences of three tokens, the second with one token of padding; width 4, two heads. Each token "
          "attends to itself and to previous tokens.");
  const Style tenths{.decimals = 1};
  show("X", m.X, tenths);
  show("Y", m.Y, tenths);
  show("mask", m.mask);
  show_together({{"Wq", m.Wq}, {"Wk", m.Wk}, {"Wv", m.Wv}, {"Wo", m.Wo}}, tenths);
  show_together({{"bq", m.bq}, {"bk", m.bk}, {"bv", m.bv}, {"bo", m.bo}}, tenths);
  show("P = softmax(masked S) [sentence, head]", m.P);
  show("O", m.O);
  show("L", m.L);
}

void several_heads_backward(const SeveralHeads& m) {
  section("5. Several heads: backward",
          "New here: a bias is added to every token of every sentence, so its gradient is the sum over tokens and "
          "sentences, and so is a weight's. Splitting and merging heads only move numbers; backward moves them back.");
  const auto n = static_cast<double>(m.O.size());
  const auto sum_over_tokens = [](const Tensor& d) { return tg::sum(d, {0, 1}); };                       // -> (D)
  const auto weight = [](const Tensor& x, const Tensor& d) { return tg::einsum("bti,btj->ij", x, d); };  // -> (D, D)

  const Tensor dO = (m.O - m.Y) * (2 / n);
  const Tensor dbo = sum_over_tokens(dO);
  const Tensor dWo = weight(m.z, dO);
  const Tensor dz = tg::matmul(dO, transposed(m.Wo));
  const Tensor dZ = m.split(dz);
  const Tensor dP = tg::matmul(dZ, transposed(m.V));
  const Tensor dV = tg::matmul(transposed(m.P), dZ);
  const Tensor dM = softmax_backward(m.P, dP);
  const Tensor dS = m.mask_gradient(dM);
  const Tensor dQ = tg::matmul(dS, m.K) * m.scale();
  const Tensor dK = tg::matmul(transposed(dS), m.Q) * m.scale();
  const Tensor dq = m.merge(dQ), dk = m.merge(dK), dv = m.merge(dV);
  const Tensor dbq = sum_over_tokens(dq), dbk = sum_over_tokens(dk), dbv = sum_over_tokens(dv);
  const Tensor dWq = weight(m.X, dq), dWk = weight(m.X, dk), dWv = weight(m.X, dv);
  const Tensor dX =
      tg::matmul(dq, transposed(m.Wq)) + tg::matmul(dk, transposed(m.Wk)) + tg::matmul(dv, transposed(m.Wv));

  show("dS [sentence, head]", dS);
  see("hidden scores get no gradient, and neither do the scores of a token that sees only itself");
  show_together({{"dbq", dbq}, {"dbk", dbk}, {"dbv", dbv}, {"dbo", dbo}});
  see("dbk is 0: a bias of the keys adds a constant to all scores of a query, which softmax cancels");
  show_together({{"dWq", dWq}, {"dWk", dWk}, {"dWv", dWv}, {"dWo", dWo}});
  show("dX", dX);

  say("Gradients by hand and by the tape. Lowercase: all heads next to each other; uppercase: split into heads:");
  Comparison table(1e-12);
  table.add("dO", "2/n (O - Y)", dO, by_tape(m.O));
  table.add("dbo", "sum of dO over sentences and tokens", dbo, by_tape(m.bo));
  table.add("dWo", "z^T dO, summed over sentences", dWo, by_tape(m.Wo));
  table.add("dz", "dO Wo^T", dz, by_tape(m.z));
  table.add("dZ", "dz split into heads", dZ, by_tape(m.Z));
  table.add("dP", "dZ V^T", dP, by_tape(m.P));
  table.add("dV", "P^T dZ", dV, by_tape(m.V));
  table.add("dM", "P * (dP - rowsum(dP * P))", dM, by_tape(m.M));
  table.add("dS", "dM, 0 where hidden", dS, by_tape(m.S));
  table.add("dQ", "dS K / sqrt(D / H)", dQ, by_tape(m.Q));
  table.add("dK", "dS^T Q / sqrt(D / H)", dK, by_tape(m.K));
  table.add("dq", "dQ merged", dq, by_tape(m.q));
  table.add("dk", "dK merged", dk, by_tape(m.k));
  table.add("dv", "dV merged", dv, by_tape(m.v));
  table.add("dbq", "sum of dq over sentences and tokens", dbq, by_tape(m.bq));
  table.add("dbk", "sum of dk over sentences and tokens", dbk, by_tape(m.bk));
  table.add("dbv", "sum of dv over sentences and tokens", dbv, by_tape(m.bv));
  table.add("dWq", "X^T dq, summed over sentences", dWq, by_tape(m.Wq));
  table.add("dWk", "X^T dk, summed over sentences", dWk, by_tape(m.Wk));
  table.add("dWv", "X^T dv, summed over sentences", dWv, by_tape(m.Wv));
  table.add("dX", "dq Wq^T + dk Wk^T + dv Wv^T", dX, by_tape(m.X));
  finish(table);
}

int main(int argc, char** argv) {
  const char* description =
      "The backward pass of attention by hand, each step compared with the tape's gradient: for one head with "
      "mse_loss, and for several heads with a batch, a mask and biases.";
  const tg::PageOptions options{.title = "Attention's backward pass"};
  return run_tutorial(argc, argv, "manual_backward", description, options, [](tg::Page& page) {
    OneHead one(3, 2, 4);
    as_step(page, one_head_on_page(), [&] { one.run(); });
    one_head_forward(one);
    one_head_through_the_softmax(one);
    one_head_backward(one);

    const tg::IntArray causal_without_padding{{{{1, 0, 0}, {1, 1, 0}, {1, 1, 1}}}, {{{1, 0, 0}, {1, 1, 0}, {1, 1, 0}}}};
    SeveralHeads several(causal_without_padding, 2, 3, 4, 2);
    as_step(page, several_heads_on_page(), [&] { several.run(); });
    several_heads_forward(several);
    several_heads_backward(several);
  });
}
