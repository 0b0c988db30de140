// Reference dequantisation of every element type a model file may hold: scalar, portable, and the definition the fast
// kernels are tested against. The block formats are those of GGUF; all fields are little-endian:
//
//   Q8_0  32: f16 d, i8 q[32]                        w = d * q
//   Q4_0  32: f16 d, u4 q                            w = d * (q - 8)          low nibbles: elements 0..15, high: 16..31
//   Q4_1  32: f16 d, f16 m, u4 q                     w = d * q + m
//   Q5_0  32: f16 d, u32 h, u4 q                     w = d * (q + 16 h_i - 16)   bit i of h belongs to element i
//   Q5_1  32: f16 d, f16 m, u32 h, u4 q              w = d * (q + 16 h_i) + m
//   Q4_K 256: f16 d, f16 dmin, 6-bit s[8] m[8], u4 q    w = (d s) * q - (dmin m), sub-blocks of 32
//   Q5_K 256: f16 d, f16 dmin, 6-bit s[8] m[8], h, u4 q w = (d s) * (q + 16 h) - (dmin m)
//   Q6_K 256: u4 q, u2 h, i8 s[16], f16 d               w = (d s) * (q + 16 h - 32), sub-blocks of 16
//
// Products of a scale and an integer are exact in float32 (11 + 6 + 6 bits); only the last sum of the formats with a
// minimum rounds, once.
#pragma once

#include <cstddef>
#include <span>

#include "native/tensor/dtype.hpp"
#include "native/tensor/tensor_view.hpp"

namespace fermata {

// Decodes values.size() elements from the start of `data` (which may be unaligned). values.size() is a multiple of
// the type's block_elements, and data holds at least that many blocks.
void dequantise(dtype type, std::span<const std::byte> data, std::span<float> values) noexcept;

// Row `row` of a tensor; values.size() == tensor.columns.
void dequantise_row(const tensor_view& tensor, std::size_t row, std::span<float> values) noexcept;

// Bytes of one row of `columns` elements.
constexpr std::size_t row_bytes(dtype type, std::size_t columns) noexcept {
    const dtype_traits traits = traits_of(type);
    return columns / traits.block_elements * traits.block_bytes;
}

}  // namespace fermata
