// Pages written by the tutorials: --page FILE.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "page_data.hpp"
#include "run_example.hpp"

using page::named;

namespace {

using nlohmann::json;
using Names = std::set<std::string>;

/// The steps of a tutorial's page.
json steps_of(const std::string& program) {
  const TemporaryFolder folder;
  run_well(program + " --page " + folder.path("page.html"));
  return page_data(folder.read("page.html"))["steps"];
}

std::vector<std::string> labels_of(const json& steps) {
  std::vector<std::string> labels;
  for (const json& step : steps) labels.push_back(step["label"]);
  return labels;
}

/// The names of all values in a step.
Names names_in(const json& step) {
  Names names;
  for (const json& node : step["nodes"])
    if (node["name"] != "") names.insert(node["name"].get<std::string>());
  return names;
}

std::size_t nan_in(const json& node) { return node["value"]["statistics"]["nan"]; }

}  // namespace

TEST_CASE("A tutorial prints the same with and without a page, for any seed") {
  const TemporaryFolder folder;
  for (const std::string& program : kTutorials)
    for (const std::string seed : {" --seed 0", " --seed 7"}) {
      CAPTURE(program);
      CAPTURE(seed);
      const Run with = run_well(program + seed + " --page " + folder.path("page.html"));
      CHECK(with.out == run_example(program + seed).out);
      CHECK(folder.read("page.html").starts_with("<!DOCTYPE html>"));
    }
}

TEST_CASE("contextual_embedding's page leads from the table to attention, with the words of both sentences") {
  const json steps = steps_of("contextual_embedding");
  CHECK(labels_of(steps) ==
        std::vector<std::string>{
            "1. One vector for each word: the river bank", "1. One vector for each word: the money bank",
            "2. The mean of the context added: the river bank", "2. The mean of the context added: the money bank",
            "4. Softmax by hand: the river bank", "4. Large scores, wrong: as written",
            "4. Large scores, right: largest subtracted first", "5. Attention without projections: the river bank",
            "5. Attention without projections: the money bank", "6. Attention with projections: the river bank"});
  CHECK(names_in(steps[0]) == Names{"table", "X"});
  CHECK(names_in(steps[2]) == Names{"X", "mean", "output"});
  CHECK(names_in(steps[4]) == Names{"scores", "e", "sum", "weights"});
  CHECK(names_in(steps[7]) == Names{"X", "scores", "m", "e", "sum", "weights", "output"});
  CHECK(names_in(steps[9]) ==
        Names{"X", "Wq", "Wk", "Wv", "Q", "K", "V", "scores", "m", "e", "sum", "weights", "output"});
  CHECK(named(steps[0], "table")["axes"] ==
        json::parse(R"([["the", "river", "money", "bank"], ["water", "money", "grammar"]])"));
  CHECK(named(steps[1], "X")["axes"][0] == json{"the", "money", "bank"});
  CHECK(named(steps[9], "weights")["axes"] == json::parse(R"([["the", "river", "bank"], ["the", "river", "bank"]])"));
  CHECK(named(steps[9], "weights")["axis_names"] == json{"query", "key"});
  CHECK(nan_in(named(steps[5], "weights")) > 0);
  CHECK(nan_in(named(steps[6], "weights")) == 0);
}

TEST_CASE("masking's page shows each mistake next to the correct version, with their different gradients") {
  const json steps = steps_of("masking");
  CHECK(labels_of(steps) ==
        std::vector<std::string>{
            "1. Wrong: scores * mask", "1. Right: -inf where mask == 0", "2. fill -10000", "2. fill -1e20",
            "2. fill -inf", "2. masked_softmax", "3. The causal triangle: what the depends on",
            "3. The causal triangle: what cat depends on", "3. The causal triangle: what sat depends on",
            "3. The causal triangle: what down depends on", "4. Padding mask", "4. Padding mask * causal mask",
            "5. Wrong: scores == 0", "5. Right: mask == 0", "6. Wrong: a mask of (2, 3, 3)",
            "6. Right: a mask of (2, 1, 3, 3)"});
  CHECK(names_in(steps[0]) == Names{"scores", "mask", "masked", "weights", "V", "output"});
  CHECK(names_in(steps[1]) == Names{"scores", "masked", "weights", "V", "output"});
  CHECK(named(steps[0], "mask")["axes"] == json::parse(R"([["sat"], ["the", "cat", "sat", "[pad]"]])"));
  CHECK(named(steps[0], "V")["gradient"]["statistics"]["zeros"] == 0);
  CHECK(named(steps[1], "V")["gradient"]["statistics"]["zeros"] == 1);
  CHECK(nan_in(named(steps[4], "weights")) == 4);
  CHECK(nan_in(named(steps[5], "weights")) == 0);
  for (std::size_t word = 0; word < 4; ++word)  // two numbers for each later word
    CHECK(named(steps[6 + word], "X")["gradient"]["statistics"]["zeros"] == 2 * (3 - word));
  CHECK(named(steps[10], "scores")["axes"] == json::parse(R"([["the cat sat", "the dog ran home"], null, null])"));
  CHECK(named(steps[14], "weights")["axis_names"] == json{"batch", "head", "query", "key"});
}

TEST_CASE("attention_levels' page leads through the levels to the library's layer, with its tokens") {
  const json steps = steps_of("attention_levels");
  CHECK(labels_of(steps) ==
        std::vector<std::string>{"1. Level 1: three projections", "2. Level 2: one fused projection",
                                 "3. Level 3: a padding mask", "3. Level 3: dropout of the weights, in training",
                                 "4. Level 4: several heads", "5. Level 4 again, width 128", "5. The library's layer"});
  CHECK(named(steps[0], "X")["kind"] == "constant");
  CHECK(named(steps[0], "weights")["axis_names"] == json{"batch", "query", "key"});
  CHECK(named(steps[0], "weights")["axes"][2] == json{"token 0", "token 1"});
  CHECK(named(steps[4], "weights")["axis_names"] == json{"batch", "head", "query", "key"});
  CHECK(named(steps[4], "X")["gradient"].is_object());
  for (const json& node : steps[6]["nodes"]) {
    if (!node.contains("attention")) continue;
    CHECK(node["operation"] == "multi_head_attention");
    for (const char* side : {"queries", "keys"})
      CHECK(node["attention"][side][1] == json{"token 0", "token 1", "[pad]", "[pad]"});
  }
}

TEST_CASE("cross_attention's page names queries and keys, and ends with the library's layer") {
  const json steps = steps_of("cross_attention");
  CHECK(labels_of(steps) ==
        std::vector<std::string>{
            "1. Heads split and merged", "1. Wrong: one reshape",
            "2. Queries of one sequence, keys and values of another", "3. A valid length for each entry",
            "3. A valid length for each query", "4. Dropout 0.5 of the weights, in training", "5. The textbook's run",
            "6. By hand, lengths (batch,)", "6. The library's layer, lengths (batch,)",
            "6. By hand, lengths (batch, queries)", "6. The library's layer, lengths (batch, queries)"});
  CHECK(names_in(steps[0]) == Names{"X", "cut", "heads", "together", "merged"});
  CHECK(names_in(steps[2]) == Names{"queries", "keys", "W_q.weight", "W_k.weight", "W_v.weight", "W_o.weight", "cut",
                                    "q", "k", "v", "scores", "masked", "weights", "together", "output"});
  CHECK(named(steps[2], "scores")["axes"] ==
        json::parse(R"([null, null, ["query 0", "query 1"], ["key 0", "key 1", "key 2", "key 3"]])"));
  CHECK(named(steps[2], "queries")["axis_names"] == json{"batch", "query", ""});
  CHECK(named(steps[2], "keys")["axis_names"] == json{"batch", "key", ""});
  CHECK(named(steps[2], "scores")["shape"] == json{2, 2, 2, 4});
  CHECK(steps[2]["loss"] == -1);
  CHECK(named(steps[4], "keys")["gradient"].is_object());
  CHECK(named(steps[6], "Y")["kind"] == "constant");
  std::size_t layers = 0;
  for (const json& step : steps)
    for (const json& node : step["nodes"])
      if (node.contains("attention")) {
        ++layers;
        CHECK(node["attention"]["keys"][0][5] == "key 5");
      }
  CHECK(layers == 2);
}

TEST_CASE("manual_backward's page shows both computations, under the names of the tables") {
  const json steps = steps_of("manual_backward");
  CHECK(labels_of(steps) == std::vector<std::string>{"one head", "several heads"});
  CHECK(names_in(steps[0]) == Names{"X", "Wq", "Wk", "Wv", "Wo", "Q", "K", "V", "S", "P", "Z", "O", "Y", "L"});
  CHECK(names_in(steps[1]) == Names{"X", "Wq", "Wk", "Wv", "Wo", "bq", "bk", "bv", "bo", "q", "k", "v",
                                    "Q", "K",  "V",  "S",  "M",  "P",  "Z",  "z",  "O",  "Y", "L"});
  CHECK(named(steps[1], "bk")["gradient"]["statistics"]["norm"] < 1e-12);
}
