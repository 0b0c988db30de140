// Where tests find the demo model: $FERMATA_MODEL (which tools/test.sh sets), a file of its name in $MODEL_DIR, or in
// models/ of the source tree.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace fermata::test_support {

// Empty when the model isn't there.
inline std::string demo_model_path(const std::string& source_folder) {
    const auto setting = [](const char* name) {
        const char* const value = std::getenv(name);
        return std::string(value != nullptr ? value : "");
    };
    std::string path = setting("FERMATA_MODEL");
    if (path.empty()) {
        const std::string chosen = setting("MODEL_DIR");
        path = (chosen.empty() ? source_folder + "/models" : chosen) + "/SmolLM2-135M-Instruct.Q4_1.gguf";
    }
    std::error_code ignored;
    return std::filesystem::is_regular_file(path, ignored) ? path : std::string();
}

}  // namespace fermata::test_support
