// The llama family: llama, mistral, qwen2, qwen3. Full attention in every layer with rotary positions, grouped queries,
// SwiGLU; with biases, norms of queries and keys, and tied heads where the checkpoint has them. No recurrent state:
// whatever is covered by keys and values can be resumed.
#pragma once

#include <memory>

#include "native/backend.hpp"
#include "native/model.hpp"
#include "native/models/load.hpp"
#include "native/weights/model_file.hpp"

namespace fermata {

// Throws model_file_error (what is wrong with the file) or backend_error.
std::unique_ptr<model> load_llama(const model_file& file, std::shared_ptr<backend> device, const load_options& options);

}  // namespace fermata
