// Runs the program gpt2 like its users do, on the small models of fixtures/gpt2.json.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "../../../examples/common/text.hpp"
#include "../../../examples/gpt2/pretrained.hpp"
#include "../../gpt2/published.hpp"
#include "kept_options.hpp"

namespace fs = std::filesystem;
namespace tg = tapegrad;

namespace {

bool is_utf8(const std::string& bytes) {
  try {
    examples::decode(bytes);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

}  // namespace

TEST_CASE("gpt2 continues a prompt repeatably, in valid UTF-8") {
  for (const char* model : {"gpt2", "llama"}) {
    const Published published(model);
    const Run run = published.run("--prompt 'The cat, naïve 猫' --length 60");
    CHECK(run.status == 0);
    CHECK(run.out.starts_with("The cat, naïve 猫"));
    CHECK(run.out.size() > 40);
    CHECK(run.out.back() == '\n');
    CHECK(is_utf8(run.out));
    CHECK(published.run("--prompt 'The cat, naïve 猫' --length 60").out == run.out);
    CHECK(published.run("--prompt 'The cat, naïve 猫' --length 60 --seed 1").out != run.out);
    const std::string likeliest = published.run("--prompt The --temperature 0 --length 30").out;
    CHECK(published.run("--prompt The --top-k 1 --length 30 --seed 2").out == likeliest);
    CHECK(published.run("--prompt The --top-p 1e-9 --length 30 --seed 3").out == likeliest);
    CHECK(published.run("--length 5").status == 0);  // starting from the end-of-text token
  }
}

TEST_CASE("A text ends at the configuration's end token") {
  std::vector<int> all(384);
  std::iota(all.begin(), all.end(), 0);
  CheckpointFolder published("llama");
  published.config["eos_token_id"] = all;
  const TemporaryFolder folder;
  published.write(folder / "model");
  CHECK(run_example("gpt2 " + folder.path("model") + " --prompt The").out == "The\n");
}

TEST_CASE("gpt2 --score prints a text's perplexity, and bfloat16 weights change it by less than 1%") {
  for (const char* model : {"gpt2", "llama"}) {
    const Published published(model);
    const double perplexity = published.perplexity("");
    CHECK(perplexity > 1);
    CHECK(std::abs(published.perplexity("--weights bf16") / perplexity - 1) < 0.01);
  }
}

TEST_CASE("Non-finite weights are refused before training or scoring") {
  CheckpointFolder broken("gpt2");
  broken.tensors.at("ln_f.bias").numbers(0) = std::numeric_limits<float>::infinity();
  const TemporaryFolder folder;
  broken.write(folder / "model");
  for (const std::string& work : {"--train " + kText + short_run(), "--score " + kText})
    check_message(run_example("gpt2 " + folder.path("model") + ' ' + work), "gpt2",
                  "model.safetensors: expected weights with a finite loss on the text, got invalid ones");
}

TEST_CASE("gpt2 explains as many tokens as fit into the context, and the next one") {
  const Published published;
  const std::string name = " --explain-to " + published.folder.path("map");
  check_drawn(published.run("--explain '" + std::string(25, '!') + "'" + name), published.folder.path("map.png"));
  published.refuses("--explain '" + std::string(26, '!') + "'" + name,
                    "--explain: expected from 2 to 25 tokens, got 26");
}

TEST_CASE("gpt2 --tokens prints the ids of a text") {
  const Published published;
  const Run run = published.run("--tokens " + published.folder.write("text", "%~<|endoftext|>"));
  CHECK(run.status == 0);
  CHECK(run.out == "4 93 383\n");
}

TEST_CASE("gpt2 --train learns a text, and saves the trained model's folder") {
  for (const char* model : {"gpt2", "llama tied"}) {
    const Published published(model);
    const std::string saved = published.folder.path("saved");
    const Run run = published.run("--train " + kText + short_run() + "--save " + saved);
    REQUIRE(run.status == 0);
    CHECK(contains(run.out, "saved " + saved));
    const double before = published.perplexity(""),
                 after = Published::number(run_example("gpt2 " + saved + " --score " + kText), "perplexity ");
    CHECK(after < before / 2);
  }
}

TEST_CASE("A resumed fine-tuning reaches the same bits, and other texts, weights and options are refused") {
  const Published published;
  const auto& folder = published.folder;
  const std::string text = folder.write("text", folder.read("model/merges.txt")),
                    learn = "--train " + text + " --dropout 0.1";
  REQUIRE(published.run(learn + short_run() + "--save " + folder.path("whole")).status == 0);
  const std::string run = folder.path("run");
  REQUIRE(published.run(learn + short_run(9) + "--checkpoint " + run).status == 0);
  const Run more = published.run("--resume " + run + " --steps 20 --save " + folder.path("more"));
  CHECK(more.status == 0);
  CHECK(contains(more.out, "resuming at step 9\n"));
  CHECK(folder.read("more/model.safetensors") == folder.read("whole/model.safetensors"));
  published.refuses("--resume " + run + " --lr 0.02", "--lr: expected the same value as in the resumed run");
  published.refuses("--resume " + run + " --lora 2", "--lora: expected the same value as in the resumed run");
  const std::string config = folder.read("model/config.json");
  auto other = nlohmann::json::parse(config);
  other["layer_norm_epsilon"] = 0.5;
  folder.write("model/config.json", other.dump());
  published.refuses("--resume " + run, "a folder with the same config.json and tokenizer");
  folder.write("model/config.json", config);
  folder.write("text", "another text, which is longer than twenty tokens, and has no more to say than that");
  published.refuses("--resume " + run, "expected the run's training text");
}

TEST_CASE("A saved fine-tuning with options that the command line would refuse is refused") {
  const Published published;
  const std::string run = published.folder.path("run"), wrong = published.folder.path("wrong");
  REQUIRE(published.run("--train " + kText + short_run(2) + "--lora 2 --checkpoint " + run).status == 0);
  const auto refuses = [&](const std::string& pointer, const nlohmann::json& value, const std::string& message) {
    CAPTURE(pointer);
    change_kept_option(run, wrong, "gpt2 --checkpoint", pointer, value);
    published.refuses("--resume " + wrong, "wrong: " + message);
  };
  refuses("/training/batch_size", 0, "--batch-size: expected a whole number from 1 to 1000000, got '0'");
  refuses("/fine_tune/lora", 2000000, "--lora: expected a whole number from 1 to 1000000, got '2000000'");
  refuses("/fine_tune/context", -1, "expected settings saved by gpt2 --checkpoint, got others: /fine_tune/context");
}

TEST_CASE("gpt2 --lora trains few numbers, which --adapter loads and --merge adds to the weights") {
  for (const char* model : {"gpt2", "llama"}) {
    const Published published(model);
    const std::string adapter = published.folder.path("adapter"), merged = published.folder.path("merged"),
                      learn = "--train " + kText + short_run(40, 0.03) + "--lora 4 ";
    const Run run = published.run(learn + "--save " + adapter);
    REQUIRE(run.status == 0);
    REQUIRE(published.run(learn + "--merge --save " + merged).status == 0);
    const double before = published.perplexity(""), with_adapter = published.perplexity("--adapter " + adapter),
                 of_merged = Published::number(run_example("gpt2 " + merged + " --score " + kText), "perplexity ");
    CHECK(with_adapter < before / 1.5);
    CHECK(of_merged == doctest::Approx(with_adapter).epsilon(1e-3));
    CHECK(fs::file_size(adapter + "/adapter_model.safetensors") < fs::file_size(merged + "/model.safetensors") / 3);

    const std::string later = published.folder.path("later");  // merged without training
    const Run merging = published.run("--adapter " + adapter + " --merge --save " + later);
    CHECK(merging.out == "saved " + later + '\n');
    CHECK(Published::number(run_example("gpt2 " + later + " --score " + kText), "perplexity ") ==
          doctest::Approx(with_adapter).epsilon(1e-3));
  }
}

TEST_CASE("A resumed low-rank fine-tuning with --merge saves the merged weights") {
  const Published published;
  const auto& folder = published.folder;
  const std::string run = folder.path("run"), saved = folder.path("saved");
  REQUIRE(published.run("--train " + kText + short_run(3) + "--lora 2 --merge --save " + saved + " --checkpoint " + run)
              .status == 0);
  REQUIRE(published.run("--resume " + run + " --steps 6").status == 0);
  CHECK_FALSE(fs::exists(saved + "/adapter_config.json"));
  run_well("gpt2 " + saved + " --score " + kText);
}

TEST_CASE("gpt2 --page and --explain show a step and the attention of the heads") {
  const Published published;
  const std::string page = published.folder.path("step.html");
  const Run step = published.run("--page " + page + " 'The cat sat'");
  CHECK(step.status == 0);
  CHECK(published.folder.read("step.html").starts_with("<!"));
  const Run explained = published.run("--explain 'The cat sat' --explain-to " + published.folder.path("cat"));
  CHECK(contains(explained.out, "perplexity"));
  check_drawn(explained, published.folder.path("cat.png"));
}

TEST_CASE("gpt2 --train-tokenizer writes the tokenizer files that a folder lacks") {
  const Published published;
  for (const char* name : {"vocab.json", "merges.txt"}) fs::remove(published.model + '/' + name);
  const Run run = published.run("--train-tokenizer " + kText + " --vocabulary 384");
  CHECK(run.status == 0);
  for (const std::string name : {"vocab.json", "merges.txt"})
    CHECK(published.folder.read("model/" + name) == Published().folder.read("model/" + name));
  published.refuses("--train-tokenizer " + kText + " --vocabulary 384",
                    "expected a folder without a tokenizer, got one with vocab.json");
  for (const char* name : {"vocab.json", "merges.txt"}) fs::remove(published.model + '/' + name);
  published.folder.write("model/tokenizer.json", "{}");
  published.refuses("--train-tokenizer " + kText + " --vocabulary 384",
                    "expected a folder without a tokenizer, got one with tokenizer.json");
}

TEST_CASE("gpt2 reports unsupported requests in one line, before the work") {
  const Published published;
  const std::string none = published.folder.path("none"), train = "--train " + kText;
  const std::vector<Refused> of_model{
      {"--score " + none, "none: cannot be opened"},
      {"--score " + published.folder.write("short", "a"), "short: expected a text of at least two tokens"},
      {"--explain a", "--explain: expected from 2 to 25 tokens, got 1"},
      {"--prompt '" + std::string(300, 'a') + "' --explain '" + std::string(300, '!') + "'", "--explain: expected"},
      {"--lora 2", "--lora: requires --train"},
      {"--merge", "--merge: requires --save, and --lora or --adapter"},
      {train + " --lora 2 --merge", "--merge: requires --save"},
      {"--save " + published.folder.path("a"), "--save: requires --train, or --adapter and --merge"},
      {train + " --adapter a", "--adapter: not allowed with --train"},
      {"--score " + kText + " --top-k 3", "--top-k: requires --prompt or --length"},
      {"--tokens " + kText + " --seed 3", "--seed: not allowed with --tokens"},
      {train + " --score " + none, "none: cannot be opened"},
      {train + " --weights bf16", "--weights: not allowed with --train"},
      {train + " --context 25", "--context: expected at most 24"},
      {"--train " + published.folder.write("few", "a few"), "few: expected a text of at least 20 tokens"},
      {train + " --save " + published.model, "expected an output folder, got the input folder"},
      {train + " --save " + kText, "expected an output folder, got a file"},
      {"--tokens " + kText + " --prompt a", "--prompt: not allowed with --tokens"},
      {"--adapter " + none, "adapter_config.json: cannot be opened"}};
  check_refusals("gpt2 " + published.model, of_model);
  const std::string learn = " --train-tokenizer " + kText + " --vocabulary ";
  const std::vector<Refused> others{
      {none, "none: expected a folder with config.json"},
      {kText + learn + "300", "expected an output folder, got a file"},
      {published.folder.path("new") + learn + "100000", "text.txt: train_tokenizer: expected a vocabulary of at most"}};
  check_refusals("gpt2", others);
}
