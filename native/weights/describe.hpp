// A summary of a model file for people: what `fermata inspect FILE` prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "native/weights/hyperparameters.hpp"
#include "native/weights/model_file.hpp"

namespace fermata {

struct type_usage {
    std::string type;  // "Q4_1"
    std::uint64_t tensors = 0, elements = 0, bytes = 0;
};

struct model_description {
    std::string format;  // "GGUF 3", "safetensors"
    std::string architecture, name;
    std::uint64_t files = 0, file_bytes = 0;
    std::uint64_t tensors = 0, parameters = 0, tensor_bytes = 0;
    std::vector<type_usage> types;                      // most bytes first
    std::optional<llama_hyperparameters> sizes;         // of a llama-like model
    std::string sizes_error;                            // why `sizes` is empty though the architecture is known
    std::string vocabulary_kind;                        // "gpt2/smollm", "tokenizer.json"; empty: none
    std::uint64_t vocabulary = 0;                       // tokens; 0 unknown
    bool chat_template = false;
};

model_description describe(const model_file& file);

// The same as lines "key: value" for a terminal.
std::string to_text(const model_description& description);

}  // namespace fermata
