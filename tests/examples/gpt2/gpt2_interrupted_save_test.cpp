// Processes killed while they save a model or an adapter over another one: readers never see a mixture.
#include <tapegrad/tapegrad.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "../../../examples/gpt2/adapter.hpp"
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

// Kills a process that saves again and again, at random times; then `number` must be 1 or 2, or throw this error.
void check_kills(const std::function<void(float)>& save, const std::function<float()>& number,
                 const std::string& error) {
  int whole = 0, refused = 0;
  save(1);
  for (int i = 0; i < (kSanitized ? 20 : 200); ++i) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0)
      for (float next = 2;; next = 3 - next) save(next);
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + 137 * i % 7000));
    kill(child, SIGKILL);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    try {
      const float found = number();
      REQUIRE((found == 1 || found == 2));
      ++whole;
    } catch (const std::runtime_error& refusal) {
      const std::string what = refusal.what();
      REQUIRE(what.find(error) != std::string::npos);
      ++refused;
    }
  }
  CHECK(whole + refused > 0);
  save(1);
  CHECK(number() == 1);
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
  check_kills([&](float next) { save_pretrained(next == 1 ? one : two, place); }, number,
              "saved: expected a complete model, got one whose saving was interrupted; save it again");
}

TEST_CASE("a process killed while it saves an adapter leaves the old one, the new one, or a folder that is refused") {
  const TemporaryFolder folder;
  const fs::path place = folder / "saved";
  const Pretrained base = model_of(0);
  const auto adapted = [&](float number) {
    Pretrained model = base;
    add_updates(model.model, 1, number);
    for (const auto& parameter : trained_parameters(model.model))
      parameter->set_value(tg::Array<float>(parameter->shape(), number));
    return model;
  };
  const Pretrained one = adapted(1), two = adapted(2);
  const auto number = [&] {  // weights change by number^3, the product of alpha, A and B
    Pretrained read = base;
    load_adapter(read, place);
    float largest = 0;
    const Pretrained with_updates = merged(read);
    for (const auto& [name, parameter] : tg::named_parameters(with_updates.model))
      for (const float x : parameter->value()) largest = std::max(largest, x);
    return std::cbrt(largest);
  };
  check_kills([&](float next) { save_adapter(next == 1 ? one : two, place); }, number,
              "saved: expected a complete model, got one whose saving was interrupted; save it again");
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
