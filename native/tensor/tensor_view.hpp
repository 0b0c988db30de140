// A read-only look at one tensor of a model file. Row-major; `rows` x `columns`, columns contiguous (a vector has
// one row). The bytes belong to the file it came from and live as long as that file's mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "native/tensor/dtype.hpp"

namespace fermata {

struct tensor_view {
    std::string_view name;  // for error messages
    dtype type = dtype::f32;
    std::size_t rows = 0;     // output features of a matrix
    std::size_t columns = 0;  // input features; a multiple of the type's block_elements
    std::span<const std::byte> data;  // rows * columns / block_elements * block_bytes bytes
};

}  // namespace fermata
