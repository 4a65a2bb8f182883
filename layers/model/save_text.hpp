/// Files of one's own beside a checkpoint, such as a configuration, written as safely.
///
///     tg::save(model, "mine/model.safetensors");
///     tg::save_text(config.dump(2), "mine/config.json");
#pragma once

#include <filesystem>
#include <string>

namespace tapegrad {

/// Writes a text, which may be any bytes, in place of the file that was there. Throws std::runtime_error naming the
/// file when it cannot be written; what was there before is then still there, also after a crash.
void save_text(const std::string& text, const std::filesystem::path& path);

}  // namespace tapegrad
