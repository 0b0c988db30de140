// Small llama-like models with random weights and a byte-level vocabulary, written as a GGUF file or as a folder in
// Hugging Face layout: for tests of exactness over all weight formats, for parity and as seeds of fuzzers. Equal
// options give equal bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native/tensor/dtype.hpp"
#include "tests/support/gguf_builder.hpp"

namespace fermata::test_support {

struct random_model_options {
    std::string architecture = "llama";  // llama, mistral (folder only), qwen2 (with biases), qwen3 (with QK norm)
    dtype format = dtype::f32;           // of matrices; a folder takes F32, F16, BF16 only
    dtype embedding_format = dtype::f32;
    bool embedding_as_format = true;  // embedding (and head) in `format` instead
    std::uint32_t layers = 2, width = 512, heads = 8, kv_heads = 2, head_width = 64, feed_forward_width = 1024;
    std::uint32_t context_tokens = 4096;
    std::uint32_t vocabulary = 0;  // rows of the embedding; 0: as many as there are tokens
    float rope_theta = 10000, rms_epsilon = 1e-5f;
    bool tied_head = true;
    bool rope_divisors = false;  // GGUF: a tensor rope_freqs.weight; folder: RoPE scaling llama3
    std::uint64_t seed = 1;
    // GGUF
    std::uint32_t version = 3;
    std::uint64_t alignment_bytes = 32;
    bool with_tensors = true;  // false: a vocabulary alone
    // folder
    std::uint32_t shards = 1;
    bool multimodal = false;  // text_config, prefix model.language_model., and a vision tensor to be skipped
};

// The tokens of these models: 256 bytes (ids 0 .. 255), a few merges, then <|endoftext|>, <|im_start|>, <|im_end|>.
struct random_vocabulary {
    std::vector<std::string> tokens;
    std::vector<std::string> merges;
    std::int32_t end_of_text = 0, turn_start = 0, turn_end = 0;
};
const random_vocabulary& the_random_vocabulary();
extern const char* const random_model_template;  // a chat template in ChatML

byte_string random_gguf(const random_model_options& options);
void write_random_gguf(const std::string& path, const random_model_options& options);
// PREFIX-00001-of-0000N.gguf and so on; returns the first path.
std::string write_random_split_gguf(const std::string& prefix, const random_model_options& options,
                                    std::uint32_t parts);
// Creates `folder`.
void write_random_folder(const std::string& folder, const random_model_options& options);

}  // namespace fermata::test_support
