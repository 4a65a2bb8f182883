#include "weights.hpp"

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "../common/progress.hpp"
#include "file_names.hpp"
#include "files.hpp"
#include "layout.hpp"

namespace fs = std::filesystem;
namespace tg = tapegrad;

namespace {

/// Parameters by their names in the file.
using Stored = std::map<std::string, tg::Parameter<float>>;
using ParameterHandles = std::map<std::string, tg::ParameterHandle<const tg::Parameter<float>>>;

ParameterHandles parameters_by_name(const LanguageModel<>& model) {
  ParameterHandles parameters;
  for (const auto& [name, parameter] : tg::named_parameters(model)) parameters.emplace(name, parameter);
  return parameters;
}

/// The shape of a tensor in the file: (out, in), (in, out) if transposed, or (out).
tg::Shape shape_in_file(const StoredParameter& stored, const ParameterHandles& parameters) {
  tg::Shape shape = parameters.at(stored.parameters.front())->shape();
  shape.front() = 0;
  for (const std::string& name : stored.parameters) shape.front() += parameters.at(name)->shape().front();
  if (stored.transposed) std::swap(shape.front(), shape.back());
  return shape;
}

/// Adds the prefix missing from names in files of the model without its head.
std::string full_name(const std::string& name, Family family) {
  const std::string prefix = prefix_of(family);
  return name.starts_with(prefix) || name.starts_with("lm_head.") ? name : prefix + name;
}

/// Throws for large models published in several files.
void require_one_file(const fs::path& folder) {
  const fs::path list = folder / "model.safetensors.index.json";
  std::error_code none;
  if (fs::exists(list, none) && !fs::exists(folder / file_names::weights, none))
    throw std::runtime_error(list.string() +
                             ": expected all weights in one model.safetensors, got a checkpoint in several files");
}

/// Throws if the file is too small for the weights and their header entries, so a corrupt configuration cannot cause
/// large allocations.
void require_room(const Config& config, const fs::path& folder) {
  constexpr double of_number = 2, of_entry = 50, entries_of_block = 9;  // minimum bytes; minimum tensors
  const ModelOptions& model = config.model;
  const auto width = static_cast<double>(model.width), layers = static_cast<double>(model.layers);
  const double rows = static_cast<double>(config.vocabulary) * (model.tie ? 1 : 2) +
                      (model.positions == Positions::learned ? static_cast<double>(model.context) : 0);
  const double min_bytes =
      of_number * (rows * width + layers * numbers_in_block(model)) + of_entry * entries_of_block * layers;
  const fs::path file = folder / file_names::weights;
  check_input_file(file);
  const std::uintmax_t bytes = fs::file_size(file);
  if (min_bytes <= static_cast<double>(bytes)) return;
  throw std::runtime_error((folder / file_names::config).string() + ": expected sizes of a model that fits in " +
                           file_names::weights + " (" + examples::with_commas(bytes) + " bytes), got a larger one");
}

}  // namespace

LanguageModel<> load_model(const Config& config, const std::filesystem::path& folder) {
  require_one_file(folder);
  require_room(config, folder);
  const tg::SkipInitialization skip;
  LanguageModel<> model(config.vocabulary, config.model);
  const std::vector<StoredParameter> layout = layout_of(config);
  const ParameterHandles parameters = parameters_by_name(model);
  Stored read;
  for (const StoredParameter& stored : layout)
    read.emplace(stored.name, tg::Array<float>(shape_in_file(stored, parameters)));
  tg::load(read, folder / file_names::weights,
           {.rename = [&](const std::string& name) { return full_name(name, config.family); },
            .ignore = ignored_names(config)});

  std::map<std::string, tg::ParameterHandle<tg::Parameter<float>>> places;
  for (const auto& [name, parameter] : tg::named_parameters(model)) places.emplace(name, parameter);
  for (const StoredParameter& stored : layout) {
    tg::Tensor<float> whole = read.extract(stored.name).mapped().detach();  // frees memory for the next ones
    if (stored.transposed) whole = tg::transpose(whole, 0, 1);              // (out, ...)
    std::size_t first = 0;
    for (const std::string& name : stored.parameters) {
      tg::Parameter<float>& parameter = *places.at(name);
      const std::size_t outputs = parameter.shape().front();
      const bool is_whole = outputs == whole.shape().front();
      parameter.share_value((is_whole ? whole : tg::narrow(whole, 0, std::ptrdiff_t(first), outputs)).shared_value());
      first += outputs;
    }
  }
  return model;
}

void save_weights(const LanguageModel<>& model, const Config& config, const std::filesystem::path& folder) {
  const ParameterHandles parameters = parameters_by_name(model);
  Stored written;
  for (const StoredParameter& stored : layout_of(config)) {
    if (stored.parameters.size() == 1 && !stored.transposed) {
      written.emplace(stored.name, *parameters.at(stored.parameters.front()));  // shares the array
      continue;
    }
    std::vector<tg::Tensor<float>> parts;
    for (const std::string& name : stored.parameters) {
      const tg::Tensor<float> part = parameters.at(name)->detach();
      parts.push_back(stored.transposed ? tg::transpose(part, 0, 1) : part);
    }
    written.emplace(stored.name, tg::Array<float>(tg::cat(parts, stored.transposed ? 1 : 0).value()));
  }
  tg::save(written, folder / file_names::weights, {{"format", "pt"}});
}
