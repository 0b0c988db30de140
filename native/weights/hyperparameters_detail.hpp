// What the two readers of hyperparameters (GGUF keys, config.json) share. Not for use outside native/weights.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "native/weights/hyperparameters.hpp"

namespace fermata::weights {

struct gguf_variant;
struct folder_variant;
const gguf_variant* find_gguf_variant(std::string_view architecture) noexcept;
const folder_variant* find_folder_variant(std::string_view architecture) noexcept;

llama_hyperparameters read_gguf_hyperparameters(const model_file& file);
llama_hyperparameters read_folder_hyperparameters(const model_file& file);

// Checks ranges and relations, applies the sliding window's limit. Throws model_file_error.
void finish(llama_hyperparameters& sizes, const std::string& place);

// A 64-bit value from a file as a size, or an error naming the key.
std::uint32_t to_size(std::uint64_t value, std::string_view key, const std::string& place);

// One error for all architectures that this version doesn't know.
[[noreturn]] void unknown_architecture(const std::string& place, std::string_view architecture);

}  // namespace fermata::weights
