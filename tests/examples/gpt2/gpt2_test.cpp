// Runs the program gpt2 like its users do, on the small models of fixtures/gpt2.json.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "../../../examples/common/text.hpp"
#include "../../../examples/gpt2/pretrained.hpp"
#include "../../gpt2/published.hpp"

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

TEST_CASE("gpt2 --tokens prints the ids of a text") {
  const Published published;
  const Run run = published.run("--tokens " + published.folder.write("text", "%~<|endoftext|>"));
  CHECK(run.status == 0);
  CHECK(run.out == "4 93 383\n");
}

TEST_CASE("gpt2 --train learns a text, and saves the trained model's folder") {
  for (const char* model : {"gpt2", "llama tied"}) {
    const Published published(model);
    const std::string saved = published.folder.path("saved"), page = published.folder.path("page");
    const Run run = published.run("--train " + kText + short_run() + "--page " + page + " --save " + saved);
    REQUIRE(run.status == 0);
    CHECK(contains(run.out, "web page of the step: " + page));
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
  const std::string moved = folder.write("moved", folder.read("model/merges.txt"));
  CHECK(published.run("--resume " + run + " --train " + moved).status == 0);
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

TEST_CASE(
    "gpt2 --page shows a step, and --explain the attention of as many tokens as fit into the context, and the next "
    "one") {
  const Published published;
  const std::string page = published.folder.path("step.html"), name = " --explain-to " + published.folder.path("map");
  const Run step = published.run("--page " + page + " 'The cat sat'");
  CHECK(step.status == 0);
  CHECK(published.folder.read("step.html").starts_with("<!"));
  const Run explained = published.run("--explain 'The cat sat' --explain-to " + published.folder.path("cat"));
  CHECK(contains(explained.out, "perplexity"));
  check_drawn(explained, published.folder.path("cat.png"));
  check_drawn(published.run("--explain '" + std::string(25, '!') + "'" + name), published.folder.path("map.png"));
  published.refuses("--explain '" + std::string(26, '!') + "'" + name,
                    "--explain: expected from 2 to 25 tokens, got 26");
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

// ---- output files: user files and training results are not lost -----------------------------------------------------

TEST_CASE("gpt2 overwrites no input, and refuses to save into folders with other files") {
  const Published published;
  const auto& folder = published.folder;
  const std::string weights = folder.read("model/model.safetensors");
  for (const char* read : {"model.safetensors", "config.json", "vocab.json"}) {
    const std::string file = published.model + '/' + read;
    published.refuses("--page " + file + " 'The cat'", "got an input file");
    published.refuses("--train " + kText + short_run(1) + "--checkpoint " + file, "got an input file");
  }
  const std::string adapter = folder.path("adapter"), learn = "--train " + kText + short_run(1);
  REQUIRE(published.run(learn + "--lora 2 --save " + adapter).status == 0);
  published.refuses("--adapter " + adapter + " --page " + adapter + "/adapter_model.safetensors 'The cat'",
                    "got an input file");
  published.refuses(learn + "--save " + adapter, "without adapter_config.json, which is not part of the model");
  published.refuses("--adapter " + adapter + " --merge --save " + adapter, "got the input folder");
  fs::create_directory(folder.path("other"));
  folder.write("other/tokenizer.json", "{}");
  published.refuses(learn + "--save " + folder.path("other"), "without tokenizer.json, which is not part of the model");
  published.refuses(learn + "--save " + folder.path("a") + " --best " + folder.path("b/../a"), "got this one twice");
  CHECK(folder.read("model/model.safetensors") == weights);
}

TEST_CASE("gpt2 refuses outputs that it could not save before it starts to work") {
  const Published published;
  const auto& folder = published.folder;
  const std::string weights = folder.read("model/model.safetensors"), mine = folder.path("mine"),
                    learn = "--train " + kText + short_run(1);
  fs::create_directory(mine);
  fs::create_symlink("../model/model.safetensors", mine + "/model.safetensors");
  published.refuses(learn + "--save " + mine,
                    "got another name of the input file " + published.model + "/model.safetensors");
  CHECK(folder.read("model/model.safetensors") == weights);
  fs::remove(mine + "/model.safetensors");
  fs::create_directory(mine + "/vocab.json");
  published.refuses(learn + "--best " + mine, mine + "/vocab.json: expected an output file, got a folder");
  fs::remove(mine + "/vocab.json");
  published.refuses(learn + "--save " + mine + " --checkpoint " + mine + "/model.safetensors", "got this one twice");
  published.refuses(learn + "--lora 2 --save " + mine + " --log " + mine + "/adapter_config.json",
                    "got this one twice");

  const std::string none = folder.path("none");
  for (const std::string option : {"--log ", "--checkpoint ", "--page "})
    for (const std::string below : {"", "/", "/below"})
      published.refuses(learn + option + none + " --save " + none + below,
                        none + ": expected an output file, got an output folder");
  fs::create_symlink("nowhere", folder / "link");
  published.refuses(learn + "--save " + folder.path("link"),
                    "link: expected an output folder, got a file or a broken link");
  published.refuses(learn + "--save " + folder.path("link/below"),
                    "below: expected an output folder, got a file or a broken link");
  published.refuses(learn + "--save " + kText + "/below", "below: expected an output folder, got a file");
  CHECK(folder.files() == 3);
}

TEST_CASE("--save and --best are different folders in any spelling, and each may be given alone") {
  const Published published;
  const auto& folder = published.folder;
  const std::string learn = "--train " + kText + short_run(1), mine = folder.path("mine"),
                    long_name = folder.path(std::string(300, 'x'));
  for (const std::string& other : {mine, mine + '/', folder.path("./mine"), folder.path("model/../mine")})
    published.refuses(learn + "--save " + other + " --best " + mine,
                      "mine: expected distinct output folders, got this one twice");
  const Run run =
      run_shell("cd " + folder.path("") + " && $examples/gpt2 model " + learn + "--save ./mine --best mine");
  check_message(run, "gpt2", "mine: expected distinct output folders, got this one twice");
  const Run alone = published.run(learn + "--save " + long_name);  // too long for the system
  check_message(alone, "gpt2", "File name too long");
  CHECK(folder.files() == 1);
}

TEST_CASE("An adapter is not saved into a folder with a whole model, which would be loaded with it") {
  const Published published, other;
  const std::string learn = "--train " + kText + short_run(1) + "--lora 2 --save ";
  published.refuses(
      learn + other.model,
      "model: expected an output folder without config.json, which is not part of the adapter; use another folder");
  fs::remove(other.model + "/config.json");
  published.refuses(learn + other.model, "without model.safetensors, which is not part of the adapter");
  fs::remove(other.model + "/model.safetensors");
  CHECK(published.run(learn + other.model).status == 0);  // next to the tokenizer, as saved by training with PEFT
}

TEST_CASE("On a full disk an adapter stays unchanged, and a tokenizer can be made later") {
  const Published published;
  const auto& folder = published.folder;
  const std::string adapter = folder.path("adapter"), learn = "--train " + kText + short_run(1) + "--lora 16 --save ";
  REQUIRE(published.run(learn + adapter).status == 0);
  const std::string settings = folder.read("adapter/adapter_config.json"),
                    weights = folder.read("adapter/adapter_model.safetensors");
  const Run full =
      run_shell("ulimit -f 40; $examples/gpt2 " + published.model + ' ' + learn + adapter + " --lora-alpha 100");
  CHECK(full.status == 1);
  CHECK(contains(full.err, "adapter_model.safetensors"));
  CHECK(folder.read("adapter/adapter_config.json") == settings);
  CHECK(folder.read("adapter/adapter_model.safetensors") == weights);

  const std::string made = folder.path("made");
  check_message(run_shell("ulimit -f 4; $examples/gpt2 " + made + " --train-tokenizer " + kText + " --vocabulary 384"),
                "gpt2", "[save_text] cannot write " + made + "/vocab.json: File too large");
  run_well("gpt2 " + made + " --train-tokenizer " + kText + " --vocabulary 384");
  CHECK(folder.read("made/vocab.json") == folder.read("model/vocab.json"));
}

TEST_CASE("The saved folder has the files as they were read, whatever happens to them meanwhile") {
  const Published published;
  const auto& folder = published.folder;
  const std::string vocabulary = folder.read("model/vocab.json");
  const Run run = run_shell("$examples/gpt2 " + published.model + " --train " + kText + short_run(1000000) + "--save " +
                            folder.path("mine") + " >" + folder.path("out") + " & program=$!\n" +
                            "until grep -qs '^step' " + folder.path("out") + "; do sleep 0.05; done\n" + "rm -r " +
                            published.model + "; kill -INT $program; wait $program");
  CHECK(run.status == 130);
  CHECK(folder.read("mine/vocab.json") == vocabulary);
  run_well("gpt2 " + folder.path("mine") + " --score " + kText);
}

TEST_CASE("A SIGTERM while a folder is saved ends gpt2 after its last file") {
  const Published published;
  const auto& folder = published.folder;
  const std::string both = folder.path("both"), weights = both + "/model.safetensors",
                    large = folder.write("model/chat_template.jinja", "");  // copied after the weights, slowly
  fs::resize_file(large, 100'000'000);
  REQUIRE(published.run("--train " + kText + short_run(1) + "--lora 2 --save " + folder.path("adapter")).status == 0);
  const Run run =
      run_shell("$examples/gpt2 " + published.model + " --adapter " + folder.path("adapter") + " --merge --save " +
                both + " & program=$!\nuntil test -e " + weights + "; do :; done; kill -TERM $program; wait $program");
  CHECK(run.status == 143);
  CHECK(fs::exists(both + "/config.json"));
}
