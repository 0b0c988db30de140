// A model folder in Hugging Face layout: which files it holds and how they are read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "native/weights/limits.hpp"

namespace fermata {

// Reads a small file of a folder (tokenizer.json, generation_config.json, ...) into `text`. False when it isn't there;
// throws model_file_error when it is larger than `bytes_max`, isn't a regular file or can't be read.
bool read_text_file(const std::string& folder, std::string_view name, std::string& text,
                    std::uint64_t bytes_max = weights::limits::text_bytes_max);

// Names of the regular files directly in a folder, sorted. Throws model_file_error when it isn't a readable folder.
std::vector<std::string> list_folder(const std::string& folder);

namespace weights {

std::string join_path(const std::string& folder, std::string_view name);

// The safetensors files of a folder and which of them each tensor is said to be in.
struct shard_index {
    std::vector<std::string> files;                               // plain names, in order of first mention
    std::vector<std::pair<std::string, std::size_t>> tensors;     // name, position in `files`; empty without an index
    std::string place;                                            // path of the index, for errors
};

// model.safetensors alone, or what model.safetensors.index.json names. Throws model_file_error when there is neither,
// and for shard names that would lead out of the folder.
shard_index find_shards(const std::string& folder);

}  // namespace weights
}  // namespace fermata
