// From a model file to a model: looks at the architecture and hands over to the family that knows it.
#pragma once

#include <memory>
#include <string>

#include "native/backend.hpp"
#include "native/model.hpp"
#include "native/weights/model_file.hpp"

namespace fermata {

struct load_options {
    kv_dtype kv = kv_dtype::f16;
    std::uint32_t page_tokens = 64;   // 16, 32, 64 or 128
    // No request will be longer: buffers are made for that. 0: what the model was trained for.
    std::uint32_t context_tokens_max = 0;
};

// Packs the weights into the backend's layout and releases the file's pages as it goes. The backend lives as long as
// the model. Throws model_file_error for a file that is wrong or of an unknown architecture, backend_error when the
// device can't hold it.
std::unique_ptr<model> load_model(const model_file& file, std::shared_ptr<backend> device, const load_options& options);

}  // namespace fermata
