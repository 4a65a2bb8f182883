/// Fuzzes checkpoints: memory and files give the same result or error, and a failed load changes nothing.
#include <tapegrad/tapegrad.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../support/temporary_folder.hpp"
#include "checkpoints.hpp"

namespace tg = tapegrad;

namespace {

/// A field of each kind.
struct Run {
  tg::Parameter<float> weight{tg::Array<float>{{1.0f, 2.0f}, {3.0f, 4.0f}}};
  tg::Parameter<double> bias{tg::Array<double>{5.0}};
  std::optional<tg::Parameter<float>> extra{tg::Parameter<float>(tg::Array<float>{6.0f})};
  tg::IntArray ids{7, 8, 9};
  tg::BoolArray mask{true, false};
  std::vector<double> losses{0.5, 0.25};
  std::array<std::uint8_t, 2> codes{10, 11};
  std::map<std::string, std::vector<tg::Linear<>>> parts{{"a", {tg::Linear<>(1, 1)}}};
  std::optional<std::int64_t> best{12};
  std::int16_t phase = 13;
  bool done = true;
  std::string note = "note";
  std::optional<std::string> remark{"remark"};
  tg::Generator noise{14};
  TAPEGRAD_FIELDS(weight, bias, extra, ids, mask, losses, codes, parts, best, phase, done, note, remark, noise)

  bool is_new() const {
    const Run made;
    return weight.value() == made.weight.value() && bias.value() == made.bias.value() && extra.has_value() &&
           ids == made.ids && mask == made.mask && losses == made.losses && codes == made.codes && best == made.best &&
           phase == made.phase && done == made.done && note == made.note && remark == made.remark &&
           noise == made.noise;
  }
};

template <class Source> std::string load_refusal(const Source& source, const tg::LoadOptions& options = {}) {
  Run run;
  const std::string message = fuzz::refusal([&] { tg::load(run, source, options); });
  fuzz::expect(message.empty() || run.is_new(), "a load that was refused has changed the run");
  return message;
}

/// Reads each tensor as several number types.
void convert(const std::map<std::string, tg::StoredArray>& arrays) {
  for (const auto& entry : arrays) {
    const tg::StoredArray& array = entry.second;
    fuzz::refusal([&] { array.as<float>(); });
    fuzz::refusal([&] { array.as<double>(); });
    fuzz::refusal([&] { array.as<bool>(); });
    fuzz::refusal([&] { array.as<std::int64_t>(); });
    fuzz::refusal([&] { array.as<std::uint8_t>(); });
  }
}

/// The message without the name of the source.
std::string reason(const std::string& message) {
  const std::size_t end = message.find(": ");
  return end == message.npos ? message : message.substr(end);
}

}  // namespace

void fuzz::fuzz_one(std::string_view input) {
  const std::string bytes = file_of(input);
  const InMemory memory(bytes);
  const std::span<const std::byte> span = memory;
  const File file(bytes);
  const std::filesystem::path path = file.path();
  const auto expect_alike = [](const std::string& from_memory, const std::string& from_file) {
    expect(reason(from_memory) == reason(from_file),
           "from memory: \"" + from_memory + "\", from the file: \"" + from_file + '"');
  };

  expect_alike(refusal([&] { convert(tg::read_safetensors(span)); }),
               refusal([&] { convert(tg::read_safetensors(path)); }));
  expect_alike(refusal([&] { tg::load_metadata(span); }), refusal([&] { tg::load_metadata(path); }));
  expect_alike(load_refusal(span), load_refusal(path));
  const tg::LoadOptions options{.prefix = "model.", .allow_missing = {"*"}, .ignore = {"extra.*"}};
  expect_alike(load_refusal(span, options), load_refusal(path, options));
}

std::vector<std::string> fuzz::seeds() {
  const TemporaryFolder folder;
  tg::save(Run{}, folder / "run", {{"about", "a run"}});
  std::vector<std::string> inputs{input_of(bytes_of(folder / "run")), '=' + bytes_of(folder / "run"), "{}\n"};
  for (const char* dtype : {"BOOL", "U8", "I8", "U16", "I16", "F16", "BF16", "U32", "I32", "F32", "U64", "I64", "F64"})
    inputs.push_back(R"({"model.weight":{"dtype":")" + std::string(dtype) +
                     R"(","shape":[8],"data_offsets":[0,64]}})"
                     "\n" +
                     std::string(64, '\1'));
  return inputs;
}
