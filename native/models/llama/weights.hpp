// The weights of a llama-like model in a backend's layout, and how they get there.
#pragma once

#include <memory>
#include <vector>

#include "native/backend.hpp"
#include "native/weights/hyperparameters.hpp"
#include "native/weights/model_file.hpp"

namespace fermata::llama {

// Absent parts are null.
struct layer_weights {
    buffer attention_norm, feed_forward_norm;
    std::unique_ptr<weight> query, key, value, attention_output;
    buffer query_bias, key_bias, value_bias, attention_output_bias;
    buffer query_norm, key_norm;
    std::unique_ptr<weight> gate, up, down;
    buffer gate_bias, up_bias, down_bias;
};

struct weights {
    llama_hyperparameters sizes;
    std::vector<float> inverse_frequencies;  // rope_width / 2
    std::unique_ptr<weight> embedding;
    std::unique_ptr<weight> head;            // null: tied to the embedding
    buffer output_norm;
    std::vector<layer_weights> layers;
    std::size_t resident_bytes = 0;
    std::uint64_t parameters = 0;
};

// Queries and keys come out in the canonical order of rows: element i of a head rotates with i + rope_width / 2. Each
// tensor's pages of the file are given back once it is packed.
weights load_weights(const model_file& file, backend& device);

// theta^(-2i / rope_width) with the checkpoint's scaling; computed in double, rounded once. `divisors` is null unless
// the scaling is by divisors.
std::vector<float> inverse_frequencies(const llama_hyperparameters& sizes, const tensor_view* divisors);

}  // namespace fermata::llama
