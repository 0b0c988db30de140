// One tensor as a model file's header describes it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "native/tensor/tensor_view.hpp"
#include "native/weights/limits.hpp"

namespace fermata::weights {

struct file_tensor {
    // rows: the product of all dimensions but the innermost; columns: the innermost. The data may be unaligned
    // (safetensors) and is meaningless for kernels unless `readable`.
    tensor_view view;
    std::array<std::uint64_t, limits::dimensions_max> shape{};  // outermost first; first `dimensions` entries
    unsigned dimensions = 0;
    std::string_view type_name;  // as the file has it: "Q4_1", "BF16", "I64", "IQ4_XS"
    bool readable = false;       // the type is one of `dtype`
    std::uint32_t part = 0;      // which file of a split set or of the shards
};

}  // namespace fermata::weights
