// Sixteen lanes in two AVX2 registers, with FMA3 and F16C. See simd/scalar.hpp for the interface.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#define FERMATA_INLINE static inline __attribute__((always_inline))

namespace fermata::cpu::FERMATA_LEVEL {

inline constexpr int tile_rows_best = 4;
inline constexpr int expand_from = 2;
inline constexpr int key_blocks = 1;
inline constexpr int query_tile = 2;
inline constexpr bool signed_bytes = true;

struct f32x16 {
    __m256 lo, hi;
};
struct i32x16 {
    __m256i lo, hi;
};
struct u8x64 {
    __m256i lo, hi;
};

FERMATA_INLINE f32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
FERMATA_INLINE void store(float* p, f32x16 a) {
    _mm256_storeu_ps(p, a.lo);
    _mm256_storeu_ps(p + 8, a.hi);
}
// All ones in lanes below n - base.
FERMATA_INLINE __m256i lanes_below(std::size_t n, int base) {
    const __m256i index = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(base));
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n > 16 ? 16 : static_cast<int>(n)), index);
}
FERMATA_INLINE f32x16 load_first(const float* p, std::size_t n) {
    return {_mm256_maskload_ps(p, lanes_below(n, 0)), _mm256_maskload_ps(p + 8, lanes_below(n, 8))};
}
FERMATA_INLINE void store_first(float* p, f32x16 a, std::size_t n) {
    _mm256_maskstore_ps(p, lanes_below(n, 0), a.lo);
    _mm256_maskstore_ps(p + 8, lanes_below(n, 8), a.hi);
}
FERMATA_INLINE f32x16 broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
FERMATA_INLINE f32x16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
FERMATA_INLINE f32x16 add(f32x16 a, f32x16 b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
FERMATA_INLINE f32x16 subtract(f32x16 a, f32x16 b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
FERMATA_INLINE f32x16 multiply(f32x16 a, f32x16 b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
FERMATA_INLINE f32x16 divide(f32x16 a, f32x16 b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
FERMATA_INLINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) {
    return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
FERMATA_INLINE f32x16 maximum(f32x16 a, f32x16 b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
FERMATA_INLINE f32x16 minimum(f32x16 a, f32x16 b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
FERMATA_INLINE f32x16 select_less(f32x16 a, f32x16 b, f32x16 x, f32x16 y) {
    return {_mm256_blendv_ps(y.lo, x.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
            _mm256_blendv_ps(y.hi, x.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
}
FERMATA_INLINE f32x16 select_ordered(f32x16 a, f32x16 x, f32x16 y) {
    return {_mm256_blendv_ps(y.lo, x.lo, _mm256_cmp_ps(a.lo, a.lo, _CMP_ORD_Q)),
            _mm256_blendv_ps(y.hi, x.hi, _mm256_cmp_ps(a.hi, a.hi, _CMP_ORD_Q))};
}
FERMATA_INLINE f32x16 keep_first(f32x16 a, std::size_t n, float fill) {
    const __m256 f = _mm256_set1_ps(fill);
    return {_mm256_blendv_ps(f, a.lo, _mm256_castsi256_ps(lanes_below(n, 0))),
            _mm256_blendv_ps(f, a.hi, _mm256_castsi256_ps(lanes_below(n, 8)))};
}
FERMATA_INLINE float sum_tree(f32x16 a) {
    const __m256 eight = _mm256_add_ps(a.lo, a.hi);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
FERMATA_INLINE float largest(f32x16 a) {
    const __m256 eight = _mm256_max_ps(a.lo, a.hi);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
FERMATA_INLINE __m256 add_exponent8(__m256 p, __m256 t) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(t), 23)));
}
FERMATA_INLINE f32x16 add_exponent(f32x16 p, f32x16 t) { return {add_exponent8(p.lo, t.lo), add_exponent8(p.hi, t.hi)}; }
FERMATA_INLINE __m128i eight_halves(const std::uint16_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
FERMATA_INLINE f32x16 load_f16(const std::uint16_t* p) {
    return {_mm256_cvtph_ps(eight_halves(p)), _mm256_cvtph_ps(eight_halves(p + 8))};
}
FERMATA_INLINE __m256 widen_bf16(__m128i h) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
FERMATA_INLINE f32x16 load_bf16(const std::uint16_t* p) {
    return {widen_bf16(eight_halves(p)), widen_bf16(eight_halves(p + 8))};
}
FERMATA_INLINE void store_f16(std::uint16_t* p, f32x16 a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8),
                     _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
FERMATA_INLINE __m256i narrow_bf16(__m256 a) {  // in the low half of each lane
    const __m256i bits = _mm256_castps_si256(a);
    const __m256i high = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(rounded, _mm256_or_si256(high, _mm256_set1_epi32(0x40)), nan);
}
FERMATA_INLINE void store_bf16(std::uint16_t* p, f32x16 a) {
    const __m256i packed = _mm256_packus_epi32(narrow_bf16(a.lo), narrow_bf16(a.hi));  // quarters 0 2 1 3
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}

FERMATA_INLINE f32x16 load_u8_floats(const std::uint8_t* p) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(x)), _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(x, 8)))};
}
FERMATA_INLINE f32x16 load_i8_floats(const std::int8_t* p) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x)), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(x, 8)))};
}

FERMATA_INLINE i32x16 broadcast_i32(std::int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
FERMATA_INLINE i32x16 round_to_i32(f32x16 a) {  // the rounding mode is never changed: nearest, ties to even
    return {_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)};
}
FERMATA_INLINE f32x16 to_float(i32x16 a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }
FERMATA_INLINE std::int32_t store_i8(std::int8_t* p, i32x16 a) {
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.lo, a.hi), 0xd8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
    const __m128i sums = _mm_sad_epu8(_mm_xor_si128(bytes, _mm_set1_epi8(-128)), _mm_setzero_si128());
    return _mm_cvtsi128_si32(_mm_add_epi32(sums, _mm_unpackhi_epi64(sums, sums))) - 16 * 128;
}
FERMATA_INLINE float largest_magnitude(f32x16 a, f32x16 b) {
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    const __m256i x = _mm256_max_epi32(_mm256_and_si256(_mm256_castps_si256(a.lo), mask),
                                       _mm256_and_si256(_mm256_castps_si256(a.hi), mask));
    const __m256i y = _mm256_max_epi32(_mm256_and_si256(_mm256_castps_si256(b.lo), mask),
                                       _mm256_and_si256(_mm256_castps_si256(b.hi), mask));
    const __m256i eight = _mm256_max_epi32(x, y);
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1));
    return _mm_cvtss_f32(_mm_castsi128_ps(four));
}

FERMATA_INLINE u8x64 load_u8(const void* p) {
    const __m256i* q = static_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
}
FERMATA_INLINE void store_u8(void* p, u8x64 a) {
    __m256i* q = static_cast<__m256i*>(p);
    _mm256_storeu_si256(q, a.lo);
    _mm256_storeu_si256(q + 1, a.hi);
}
template <int mask>
FERMATA_INLINE u8x64 low_bits(u8x64 a) {
    const __m256i m = _mm256_set1_epi8(static_cast<char>(mask));
    return {_mm256_and_si256(a.lo, m), _mm256_and_si256(a.hi, m)};
}
template <int n, int mask>
FERMATA_INLINE u8x64 shifted(u8x64 a) {
    if constexpr (n >= 0)
        return low_bits<mask>(u8x64{_mm256_srli_epi16(a.lo, n), _mm256_srli_epi16(a.hi, n)});
    else
        return low_bits<mask>(u8x64{_mm256_slli_epi16(a.lo, -n), _mm256_slli_epi16(a.hi, -n)});
}
FERMATA_INLINE u8x64 combine(u8x64 a, u8x64 b) {
    return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
template <int byte>
FERMATA_INLINE i32x16 lane_byte(u8x64 a) {
    const __m256i m = _mm256_set1_epi32(0xff);
    return {_mm256_and_si256(_mm256_srli_epi32(a.lo, 8 * byte), m),
            _mm256_and_si256(_mm256_srli_epi32(a.hi, 8 * byte), m)};
}

FERMATA_INLINE __m256i four_inputs(const std::int8_t* p) {
    std::int32_t x;
    __builtin_memcpy(&x, p, 4);
    return _mm256_set1_epi32(x);
}

// Pairs in 16 bits: 2 * (2^bits - 1) * 127 each, so 8, 4 or 2 of them add up without overflow (8 * 3810 = 30480,
// 4 * 7874 = 31496, 2 * 16002 = 32004). Eight-bit weights could overflow a single pair (64770): they are made signed,
// and the sign moves to the activation (128 * 127 * 2 = 32512).
template <int rows, int bits, int first, int count>
FERMATA_INLINE void tile_dot(const u8x64 (&w)[8], const std::int8_t* a, std::size_t stride, i32x16 (&acc)[rows]) {
    const __m256i ones = _mm256_set1_epi16(1);
    if constexpr (bits == 8) {
        const __m256i top = _mm256_set1_epi8(static_cast<char>(-128));
#pragma GCC unroll 8
        for (int j = first; j < first + count; ++j) {
            const __m256i slo = _mm256_xor_si256(w[j].lo, top), shi = _mm256_xor_si256(w[j].hi, top);
            const __m256i alo = _mm256_abs_epi8(slo), ahi = _mm256_abs_epi8(shi);
#pragma GCC unroll 4
            for (int r = 0; r < rows; ++r) {
                const __m256i in = four_inputs(a + static_cast<std::size_t>(r) * stride + 4 * j);
                const __m256i plo = _mm256_maddubs_epi16(alo, _mm256_sign_epi8(in, slo));
                const __m256i phi = _mm256_maddubs_epi16(ahi, _mm256_sign_epi8(in, shi));
                acc[r].lo = _mm256_add_epi32(acc[r].lo, _mm256_madd_epi16(plo, ones));
                acc[r].hi = _mm256_add_epi32(acc[r].hi, _mm256_madd_epi16(phi, ones));
            }
        }
    } else {
        constexpr int run = bits <= 4 ? 8 : bits == 5 ? 4 : 2;
        constexpr int step = run < count ? run : count;
        static_assert(count % step == 0);
#pragma GCC unroll 4
        for (int start = first; start < first + count; start += step) {
            __m256i lo[rows], hi[rows];
#pragma GCC unroll 4
            for (int r = 0; r < rows; ++r) lo[r] = hi[r] = _mm256_setzero_si256();
#pragma GCC unroll 8
            for (int j = start; j < start + step; ++j)
#pragma GCC unroll 4
                for (int r = 0; r < rows; ++r) {
                    const __m256i in = four_inputs(a + static_cast<std::size_t>(r) * stride + 4 * j);
                    lo[r] = _mm256_add_epi16(lo[r], _mm256_maddubs_epi16(w[j].lo, in));
                    hi[r] = _mm256_add_epi16(hi[r], _mm256_maddubs_epi16(w[j].hi, in));
                }
#pragma GCC unroll 4
            for (int r = 0; r < rows; ++r) {
                acc[r].lo = _mm256_add_epi32(acc[r].lo, _mm256_madd_epi16(lo[r], ones));
                acc[r].hi = _mm256_add_epi32(acc[r].hi, _mm256_madd_epi16(hi[r], ones));
            }
        }
    }
}

}  // namespace fermata::cpu::FERMATA_LEVEL
