#include "kept_run.hpp"

#include "../common/settings.hpp"

KeptRun read_kept_run(const std::string& path) {
  return examples::make_from_settings(path, run_entry,
                                      [](const nlohmann::json& settings, std::size_t) -> KeptRun { return settings; });
}
