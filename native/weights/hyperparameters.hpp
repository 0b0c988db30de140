// Sizes and constants of a llama-like model (llama, mistral, qwen2, qwen3 and the text part of multimodal checkpoints
// built on them), read from either form of file into one struct. Keys absent from config.json take the defaults of
// the transformers library, keys absent from a GGUF those of llama.cpp. Every value has been checked: positive, below
// its limit (limits.hpp), finite, heads a multiple of KV heads; what the file asks for and this version can't
// compute exactly is an error that names the key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native/weights/model_file.hpp"

namespace fermata {

enum class rope_scaling_kind : std::uint8_t {
    none,
    linear,   // every frequency divided by `factor`
    llama3,   // by wavelength, with the four numbers below
    divisors  // GGUF: tensor rope_freqs.weight holds a divisor for each frequency (tensor_role::rope_divisors)
};

struct rope_scaling {
    rope_scaling_kind kind = rope_scaling_kind::none;
    double factor = 1;
    double low_frequency_factor = 1, high_frequency_factor = 4;  // llama3
    std::uint32_t original_context_tokens = 0;                   // llama3
};

struct llama_hyperparameters {
    std::string architecture;  // llama, mistral, qwen2, qwen3
    std::string name;          // general.name or _name_or_path; may be empty
    std::uint32_t vocabulary = 0;
    std::uint32_t width = 0;
    std::uint32_t layers = 0;
    std::uint32_t heads = 0, kv_heads = 0;
    std::uint32_t head_width = 0;
    std::uint32_t feed_forward_width = 0;
    std::uint32_t context_tokens = 0;         // trained for
    std::uint32_t sliding_window_tokens = 0;  // 0: none. Full attention is exact for contexts up to the window
    float rms_epsilon = 0;
    double rope_theta = 0;
    std::uint32_t rope_width = 0;  // dimensions of a head that rotate, even
    rope_scaling scaling;
    bool tied_head = false;             // the output head is the token embedding
    bool query_key_value_bias = false;
    bool attention_output_bias = false;
    bool feed_forward_bias = false;
    bool query_key_norm = false;  // RMS norm per head before RoPE (qwen3)
    // Row order of the query and key matrices (and biases). False: rotation pairs element i of a head with
    // i + rope_width / 2. True (GGUF architecture llama): the rows are permuted so that it pairs 2i with 2i + 1; see
    // unpermuted_row.
    bool query_key_rows_permuted = false;
    std::vector<std::string> notes;  // what a user may want to know, one line each
};

// True when read_llama_hyperparameters accepts this architecture name.
bool is_llama_like(std::string_view architecture) noexcept;

// Throws model_file_error.
llama_hyperparameters read_llama_hyperparameters(const model_file& file);

// Row (within a head of `head_width` rows) of a permuted matrix that holds row `row` of the unpermuted one:
// i -> 2i, i + head_width / 2 -> 2i + 1.
constexpr std::uint32_t permuted_row(std::uint32_t row, std::uint32_t head_width) noexcept {
    const std::uint32_t half = head_width / 2;
    return row < half ? 2 * row : 2 * (row - half) + 1;
}

}  // namespace fermata
