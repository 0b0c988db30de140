// What a model file may ask of its reader. Each limit is far above what real checkpoints hold and low enough that a
// file can't make the reader work or allocate out of proportion to its own size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fermata::weights::limits {

// GGUF header.
inline constexpr std::uint64_t metadata_entries_max = 1u << 16;
inline constexpr std::uint64_t tensors_max = 1u << 18;         // the largest mixture checkpoints have 4 * 10^4
inline constexpr std::uint64_t key_bytes_max = (1u << 16) - 1;  // as the GGUF specification has it
inline constexpr std::uint64_t tensor_name_bytes_max = 512;
inline constexpr unsigned array_nesting_max = 4;
inline constexpr unsigned gguf_dimensions_max = 4;
inline constexpr std::uint64_t alignment_bytes_min = 8, alignment_bytes_max = 1u << 20;
inline constexpr std::uint64_t split_files_max = 4096;
// Either form.
inline constexpr unsigned dimensions_max = 8;
inline constexpr std::uint64_t elements_max = std::uint64_t{1} << 50;

// Safetensors: the reference library refuses headers beyond 100 MB too.
inline constexpr std::uint64_t safetensors_header_bytes_max = 100'000'000;
inline constexpr std::uint64_t shards_max = 4096;

// Text files of a folder.
inline constexpr std::uint64_t config_bytes_max = 4u << 20;
inline constexpr std::uint64_t config_keys_max = 1u << 14;
inline constexpr std::uint64_t index_bytes_max = 64u << 20;
inline constexpr std::uint64_t text_bytes_max = 256u << 20;  // tokenizer.json of large vocabularies has 30 MB
inline constexpr unsigned json_nesting_max = 64;

// Hyperparameters.
inline constexpr std::uint64_t vocabulary_max = 1u << 22;
inline constexpr std::uint64_t width_max = 1u << 17;
inline constexpr std::uint64_t feed_forward_width_max = 1u << 20;
inline constexpr std::uint64_t layers_max = 1024;
inline constexpr std::uint64_t heads_max = 4096;
inline constexpr std::uint64_t head_width_max = 1024;
inline constexpr std::uint64_t context_tokens_max = 1u << 30;

}  // namespace fermata::weights::limits
