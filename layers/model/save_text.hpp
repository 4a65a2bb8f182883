/// Writes other files next to a checkpoint, such as a configuration, with the same safety.
///
///     tg::save(model, "mine/model.safetensors");
///     tg::save_text(config.dump(2), "mine/config.json");
#pragma once

#include <filesystem>
#include <string>

namespace tapegrad {

/// Replaces a file by these bytes. Throws std::runtime_error naming the file if it cannot be written. After an error or
/// a crash the previous file is intact.
void save_text(const std::string& text, const std::filesystem::path& path);

}  // namespace tapegrad
