// Output files of the program gpt2: it loses neither user files nor training results.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "../../gpt2/published.hpp"

namespace fs = std::filesystem;

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

TEST_CASE("A run saves the names of its files, which must be UTF-8") {
  const Published published;
  const auto& folder = published.folder;
  const std::string learn = "--train " + kText + short_run(1), name = folder.path("x") + "$(printf '\\377')";
  for (const std::string option : {"--save ", "--best ", "--log "})
    published.refuses(learn + "--checkpoint " + folder.path("run") + ' ' + option + name,
                      option.substr(0, option.size() - 1) + ": expected UTF-8, got the byte 0xff");
  published.refuses(learn + "--checkpoint " + name, "--checkpoint: expected UTF-8");
  CHECK(run_shell("cp " + kText + ' ' + name + "\n$examples/gpt2 " + published.model + " --train " + name +
                  short_run(1) + "--save " + name + "s")
            .status == 0);  // names not stored in the file may be any bytes
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
