/// Checkpoints as inputs. Header and data are plain bytes, open to mutations; the header's length is correct.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "../support/checkpoint_bytes.hpp"
#include "fuzz.hpp"

namespace fuzz {

/// The file of an input. The first line is the header, the rest the data. After a leading '=', the input is the file
/// itself, with any header length.
inline std::string file_of(std::string_view input) {
  if (input.starts_with('=')) return std::string(input.substr(1));
  const std::string header(take_until(input, '\n'));
  return checkpoint(header, std::string(input));
}

/// The input of a file. Its header must not contain a newline.
inline std::string input_of(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return file.substr(8, length) + '\n' + file.substr(8 + length);
}

// ---- saved models: the settings in the metadata are plain text, open to mutations, too -----------------------------

/// The file of an input. Line 1 has the settings, line 2 the header without metadata; the data follow.
inline std::string saved_model(std::string_view input, const std::string& program) {
  using nlohmann::json;
  const std::string settings(take_until(input, '\n'));
  std::string header(take_until(input, '\n'));
  const json metadata{{program, settings}};
  const std::string entry = "\"__metadata__\":" + metadata.dump(-1, ' ', true, json::error_handler_t::replace);
  if (header.starts_with('{')) header.insert(1, entry + (header.starts_with("{}") ? "" : ","));
  return checkpoint(header, std::string(input));
}

/// The input of a file saved by the program.
inline std::string input_of_saved(const std::string& file, const std::string& program) {
  const std::string input = input_of(file);
  const std::size_t header_end = input.find('\n');
  auto header = nlohmann::json::parse(input.substr(0, header_end));
  const std::string settings = header.at("__metadata__").at(program);
  header.erase("__metadata__");
  return settings + '\n' + header.dump() + input.substr(header_end);
}

}  // namespace fuzz
