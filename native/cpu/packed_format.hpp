// The integer packings, as constants: shared by the code that packs, the kernels of all levels and the tests.
//
// A panel holds 16 outputs. Its scales region has, for each block of 32 inputs,
//   plain formats:  f16 d[16], then f16 m[16] for those with a minimum        value = d * (q - offset) [+ m]
// and for each super-block of 256 inputs
//   q4_k, q5_k:     f16 d[16], f16 n[16], u8 s[8][16], u8 m[8][16]            value = (d s) q + (n m), n = -dmin
//   q6_k:           f16 d[16], i8 s[16][16]                                   value = (d s) (q - 32), s for 16 inputs
// Its quants region has for each block 8 groups of 64 bytes, group j = [output][input 4j .. 4j + 3], as
//   4 bits: 4 x 64 bytes, byte v: group v in the low nibble, group v + 4 in the high one
//   5 bits: the same, then 64 bytes whose bit j is the fifth bit of group j
//   6 bits: the same, then 2 x 64 bytes: bits 2f, 2f+1 of byte h are the top bits of group 4h + f
//   8 bits: 8 x 64 bytes, q = value + 128
#pragma once

#include "native/cpu/kernel_table.hpp"

namespace fermata::cpu {

struct integer_format {
    int bits;
    int offset;
    bool minimum;
    bool super;              // scales by super-block
    int halves;              // scales per block of 32: 1, or 2
    std::size_t scale_bytes; // of a block, or of a super-block
    std::size_t quant_bytes; // of a block
};

template <packing form>
inline constexpr integer_format format_of{};
template <>
inline constexpr integer_format format_of<packing::q8_0>{8, 128, false, false, 1, 32, 512};
template <>
inline constexpr integer_format format_of<packing::q4_0>{4, 8, false, false, 1, 32, 256};
template <>
inline constexpr integer_format format_of<packing::q4_1>{4, 0, true, false, 1, 64, 256};
template <>
inline constexpr integer_format format_of<packing::q5_0>{5, 16, false, false, 1, 32, 320};
template <>
inline constexpr integer_format format_of<packing::q5_1>{5, 0, true, false, 1, 64, 320};
template <>
inline constexpr integer_format format_of<packing::q4_k>{4, 0, true, true, 1, 320, 256};
template <>
inline constexpr integer_format format_of<packing::q5_k>{5, 0, true, true, 1, 320, 320};
template <>
inline constexpr integer_format format_of<packing::q6_k>{6, 32, false, true, 2, 288, 384};

}  // namespace fermata::cpu
