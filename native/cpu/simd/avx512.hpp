// Sixteen lanes in one AVX-512 register (F, BW, VL, DQ). Integer products by VNNI where FERMATA_VNNI is defined, else
// by 16-bit pairs; both are exact. See simd/scalar.hpp for the interface.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#define FERMATA_INLINE static inline __attribute__((always_inline))

namespace fermata::cpu::FERMATA_LEVEL {

inline constexpr int tile_rows_best = 8;
inline constexpr int expand_from = 1;
inline constexpr int key_blocks = 2;
inline constexpr int query_tile = 4;

using f32x16 = __m512;
struct i32x16 {
    __m512i v;
};
struct u8x64 {
    __m512i v;
};

FERMATA_INLINE __mmask16 first_lanes(std::size_t n) {
    return static_cast<__mmask16>(n >= 16 ? 0xffffu : (1u << n) - 1u);
}

FERMATA_INLINE f32x16 load(const float* p) { return _mm512_loadu_ps(p); }
FERMATA_INLINE void store(float* p, f32x16 a) { _mm512_storeu_ps(p, a); }
FERMATA_INLINE f32x16 load_first(const float* p, std::size_t n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
FERMATA_INLINE void store_first(float* p, f32x16 a, std::size_t n) { _mm512_mask_storeu_ps(p, first_lanes(n), a); }
FERMATA_INLINE f32x16 broadcast(float x) { return _mm512_set1_ps(x); }
FERMATA_INLINE f32x16 zero() { return _mm512_setzero_ps(); }
FERMATA_INLINE f32x16 add(f32x16 a, f32x16 b) { return _mm512_add_ps(a, b); }
FERMATA_INLINE f32x16 subtract(f32x16 a, f32x16 b) { return _mm512_sub_ps(a, b); }
FERMATA_INLINE f32x16 multiply(f32x16 a, f32x16 b) { return _mm512_mul_ps(a, b); }
FERMATA_INLINE f32x16 divide(f32x16 a, f32x16 b) { return _mm512_div_ps(a, b); }
FERMATA_INLINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) { return _mm512_fmadd_ps(a, b, c); }
FERMATA_INLINE f32x16 maximum(f32x16 a, f32x16 b) { return _mm512_max_ps(a, b); }
FERMATA_INLINE f32x16 minimum(f32x16 a, f32x16 b) { return _mm512_min_ps(a, b); }
FERMATA_INLINE f32x16 select_less(f32x16 a, f32x16 b, f32x16 x, f32x16 y) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}
FERMATA_INLINE f32x16 select_ordered(f32x16 a, f32x16 x, f32x16 y) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, a, _CMP_ORD_Q), y, x);
}
FERMATA_INLINE f32x16 keep_first(f32x16 a, std::size_t n, float fill) {
    return _mm512_mask_blend_ps(first_lanes(n), _mm512_set1_ps(fill), a);
}
FERMATA_INLINE float sum_tree(f32x16 a) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
FERMATA_INLINE float largest(f32x16 a) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
FERMATA_INLINE f32x16 add_exponent(f32x16 p, f32x16 t) {
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), _mm512_slli_epi32(_mm512_castps_si512(t), 23)));
}
FERMATA_INLINE f32x16 load_f16(const std::uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
FERMATA_INLINE f32x16 load_bf16(const std::uint16_t* p) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
FERMATA_INLINE void store_f16(std::uint16_t* p, f32x16 a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
FERMATA_INLINE void store_bf16(std::uint16_t* p, f32x16 a) {
    const __m512i bits = _mm512_castps_si512(a);
    const __m512i high = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    const __m512i chosen = _mm512_mask_or_epi32(rounded, nan, high, _mm512_set1_epi32(0x40));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(chosen));
}

FERMATA_INLINE f32x16 load_u8_floats(const std::uint8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
FERMATA_INLINE f32x16 load_i8_floats(const std::int8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}

FERMATA_INLINE i32x16 broadcast_i32(std::int32_t x) { return {_mm512_set1_epi32(x)}; }
FERMATA_INLINE i32x16 round_to_i32(f32x16 a) {
    return {_mm512_cvt_roundps_epi32(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
FERMATA_INLINE f32x16 to_float(i32x16 a) { return _mm512_cvtepi32_ps(a.v); }
FERMATA_INLINE std::int32_t store_i8(std::int8_t* p, i32x16 a) {
    const __m128i bytes = _mm512_cvtepi32_epi8(a.v);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
    const __m128i sums = _mm_sad_epu8(_mm_xor_si128(bytes, _mm_set1_epi8(-128)), _mm_setzero_si128());
    return _mm_cvtsi128_si32(_mm_add_epi32(sums, _mm_unpackhi_epi64(sums, sums))) - 16 * 128;
}
FERMATA_INLINE float largest_magnitude(f32x16 a, f32x16 b) {
    const __m512i mask = _mm512_set1_epi32(0x7fffffff);
    const __m512i x = _mm512_and_si512(_mm512_castps_si512(a), mask), y = _mm512_and_si512(_mm512_castps_si512(b), mask);
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(_mm512_reduce_max_epi32(_mm512_max_epi32(x, y)))));
}

FERMATA_INLINE u8x64 load_u8(const void* p) { return {_mm512_loadu_si512(p)}; }
FERMATA_INLINE void store_u8(void* p, u8x64 a) { _mm512_storeu_si512(p, a.v); }
template <int mask>
FERMATA_INLINE u8x64 low_bits(u8x64 a) {
    return {_mm512_and_si512(a.v, _mm512_set1_epi8(static_cast<char>(mask)))};
}
template <int n, int mask>
FERMATA_INLINE u8x64 shifted(u8x64 a) {
    const __m512i m = _mm512_set1_epi8(static_cast<char>(mask));
    if constexpr (n >= 0)
        return {_mm512_and_si512(_mm512_srli_epi16(a.v, n), m)};
    else
        return {_mm512_and_si512(_mm512_slli_epi16(a.v, -n), m)};
}
FERMATA_INLINE u8x64 combine(u8x64 a, u8x64 b) { return {_mm512_or_si512(a.v, b.v)}; }
template <int byte>
FERMATA_INLINE i32x16 lane_byte(u8x64 a) {
    return {_mm512_and_si512(_mm512_srli_epi32(a.v, 8 * byte), _mm512_set1_epi32(0xff))};
}

FERMATA_INLINE __m512i four_inputs(const std::int8_t* p) {
    std::int32_t x;
    __builtin_memcpy(&x, p, 4);
    return _mm512_set1_epi32(x);
}

#if defined(FERMATA_VNNI)
inline constexpr bool signed_bytes = false;

template <int rows, int bits, int first, int count>
FERMATA_INLINE void tile_dot(const u8x64 (&w)[8], const std::int8_t* a, std::size_t stride, i32x16 (&acc)[rows]) {
    if constexpr (rows <= 2) {  // two chains a row: one would wait for itself
        i32x16 odd[rows];
#pragma GCC unroll 2
        for (int r = 0; r < rows; ++r) odd[r].v = _mm512_setzero_si512();
#pragma GCC unroll 4
        for (int j = first; j < first + count; j += 2)
#pragma GCC unroll 2
            for (int r = 0; r < rows; ++r) {
                const std::int8_t* x = a + static_cast<std::size_t>(r) * stride + 4 * j;
                acc[r].v = _mm512_dpbusd_epi32(acc[r].v, w[j].v, four_inputs(x));
                odd[r].v = _mm512_dpbusd_epi32(odd[r].v, w[j + 1].v, four_inputs(x + 4));
            }
#pragma GCC unroll 2
        for (int r = 0; r < rows; ++r) acc[r].v = _mm512_add_epi32(acc[r].v, odd[r].v);
    } else {
#pragma GCC unroll 8
        for (int j = first; j < first + count; ++j)
#pragma GCC unroll 8
            for (int r = 0; r < rows; ++r)
                acc[r].v =
                    _mm512_dpbusd_epi32(acc[r].v, w[j].v, four_inputs(a + static_cast<std::size_t>(r) * stride + 4 * j));
    }
}
#else
// Pairs in 16 bits: 2 * (2^bits - 1) * 127 each, so 8, 4 or 2 of them add up without overflow (8 * 3810 = 30480,
// 4 * 7874 = 31496, 2 * 16002 = 32004). Eight-bit weights could overflow a single pair (64770): they are made signed,
// and the sign moves to the activation (128 * 127 * 2 = 32512).
inline constexpr bool signed_bytes = true;

template <int rows, int bits, int first, int count>
FERMATA_INLINE void tile_dot(const u8x64 (&w)[8], const std::int8_t* a, std::size_t stride, i32x16 (&acc)[rows]) {
    const __m512i ones16 = _mm512_set1_epi16(1);
    constexpr int run = bits <= 4 ? 8 : bits == 5 ? 4 : bits == 6 ? 2 : 1;
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
        const std::int8_t* x = a + static_cast<std::size_t>(r) * stride;
        __m512i pairs = _mm512_setzero_si512();
#pragma GCC unroll 8
        for (int j = first; j < first + count; ++j) {
            const __m512i in = four_inputs(x + 4 * j);
            if constexpr (bits == 8) {
                const __m512i top = _mm512_set1_epi8(static_cast<char>(-128));
                const __m512i s = _mm512_xor_si512(w[j].v, top);
                const __m512i turned = _mm512_mask_sub_epi8(in, _mm512_movepi8_mask(s), _mm512_setzero_si512(), in);
                const __m512i part = _mm512_maddubs_epi16(_mm512_abs_epi8(s), turned);
                acc[r].v = _mm512_add_epi32(acc[r].v, _mm512_madd_epi16(part, ones16));
            } else {
                pairs = _mm512_add_epi16(pairs, _mm512_maddubs_epi16(w[j].v, in));
                if ((j - first) % run == run - 1 || j == first + count - 1) {
                    acc[r].v = _mm512_add_epi32(acc[r].v, _mm512_madd_epi16(pairs, ones16));
                    pairs = _mm512_setzero_si512();
                }
            }
        }
    }
}
#endif

}  // namespace fermata::cpu::FERMATA_LEVEL
