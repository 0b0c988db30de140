#include "native/models/load.hpp"

#include "native/models/llama/llama.hpp"
#include "native/weights/error.hpp"
#include "native/weights/hyperparameters.hpp"

namespace fermata {

std::unique_ptr<model> load_model(const model_file& file, std::shared_ptr<backend> device, const load_options& options) {
    const std::uint32_t tokens = options.page_tokens;
    if (tokens != 16 && tokens != 32 && tokens != 64 && tokens != 128)
        throw backend_error("--page-size " + std::to_string(tokens) + ": one of 16, 32, 64, 128");
    if (is_llama_like(file.architecture())) return load_llama(file, std::move(device), options);
    throw model_file_error(file.metadata_place() + ": has the architecture " + weights::shown(file.architecture()) +
                           ", which isn't in this version; llama, mistral, qwen2 and qwen3 are");
}

}  // namespace fermata
