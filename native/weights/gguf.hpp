// The reader of one GGUF file (versions 2 and 3, little-endian), on bytes alone: no file, no allocation beyond the
// tables of keys and tensors, whose sizes are bounded by the bytes given. Everything it returns has been checked:
//   - every key, name and value lies inside the bytes; keys and tensor names are unique;
//   - every tensor's data lies inside the bytes, starts at a multiple of the alignment, overlaps no other tensor and
//     has exactly the size its shape and type ask for; rows are whole blocks of quantised types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "native/weights/file_tensor.hpp"
#include "native/weights/metadata.hpp"

namespace fermata::weights {

struct gguf_contents {
    std::uint32_t version = 0;
    std::uint64_t alignment_bytes = 32;
    std::uint64_t data_offset_bytes = 0;  // where tensor data begins
    metadata values;
    std::vector<file_tensor> tensors;  // in file order; views into the bytes
};

// `file` names the bytes in errors. Throws model_file_error.
gguf_contents read_gguf(std::span<const std::byte> bytes, std::string_view file);

// True when the bytes begin as a GGUF file does.
bool looks_like_gguf(std::span<const std::byte> bytes) noexcept;

}  // namespace fermata::weights
