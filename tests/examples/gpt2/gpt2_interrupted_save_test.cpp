// Processes killed while they save a model over another one: readers never see a mixture.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>

#include "../../../examples/gpt2/pretrained.hpp"
#include "../../gpt2/checkpoint_folder.hpp"
#include "sanitized.hpp"
#include "temporary_folder.hpp"

namespace fs = std::filesystem;
namespace tg = tapegrad;

namespace {

Pretrained pretrained(const fs::path& folder) { return with_weights(read_description(folder), folder); }

// The fixture's model with all parameters equal to this number, under this name in config.json.
Pretrained model_of(float number) {
  const TemporaryFolder folder;
  CheckpointFolder published("gpt2");
  published.write(folder / "model");
  Pretrained model = pretrained(folder / "model");
  for (const auto& parameter : tg::parameters(model.model))
    parameter->set_value(tg::Array<float>(parameter->shape(), number));
  model.config.json["name"] = number;
  return model;
}

// The number of all parameters that gradients reach; 0 for a mixture.
float number_in(const LanguageModel<>& model) {
  float number = 0;
  for (const auto& [name, parameter] : tg::named_parameters(model))
    for (const float x : parameter->value()) {
      if (number == 0) number = x;
      if (x != number) return 0;
    }
  return number;
}

}  // namespace

TEST_CASE("a process killed while it saves leaves the old model, the new one, or a folder that is refused") {
  const TemporaryFolder folder;
  const fs::path place = folder / "saved";
  const Pretrained one = model_of(1), two = model_of(2);
  const auto number = [&] {
    const Pretrained read = pretrained(place);
    return read.config.json["name"] == number_in(read.model) ? number_in(read.model) : 0;
  };
  save_pretrained(one, place);
  for (int i = 0; i < (kSanitized ? 20 : 200); ++i) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0)
      for (bool first = false;; first = !first) save_pretrained(first ? one : two, place);
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + 137 * i % 7000));  // a random time
    kill(child, SIGKILL);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    try {
      const float found = number();
      REQUIRE((found == 1 || found == 2));
    } catch (const std::runtime_error& refusal) {
      REQUIRE(std::string(refusal.what())
                  .find("saved: expected a complete model, got one whose saving was interrupted; save it again") !=
              std::string::npos);
    }
  }
  save_pretrained(one, place);
  CHECK(number() == 1);
}

TEST_CASE("a model that cannot be written leaves the old one in its folder") {
  const TemporaryFolder folder;
  const fs::path place = folder / "saved";
  save_pretrained(model_of(1), place);
  fs::remove(place / "model.safetensors");
  fs::create_directory(place / "model.safetensors");  // cannot be replaced by a file
  CHECK_THROWS_AS(save_pretrained(model_of(2), place), std::runtime_error);
  CHECK(nlohmann::json::parse(folder.read("saved/config.json"))["name"] == 1);
  CHECK_FALSE(fs::exists(place / "config.json.replaced"));
}
