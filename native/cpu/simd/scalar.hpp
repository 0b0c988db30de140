// Sixteen lanes in plain C++: the definition that every other level must equal to the bit. Compiled twice, with and
// without hardware fused multiply-add; both round once.
//
// The constants tile_rows_best, query_tile, key_blocks: rows, queries and blocks of keys handled together, as many as
// the registers hold. expand_from: full tiles from which a panel is expanded first.
//
// The interface of all levels (simd/*.hpp), in namespace fermata::cpu::FERMATA_LEVEL:
//   f32x16   load store load_first store_first broadcast zero add subtract multiply divide fma(a,b,c)=a*b+c
//            maximum(a,b)=a>b?a:b minimum(a,b)=a<b?a:b select_less(a,b,x,y)=a<b?x:y select_ordered(a,x,y)=a==a?x:y
//            keep_first(v,n,fill) sum_tree(8-4-2-1) largest load_f16 load_bf16 store_f16 store_bf16
//            load_u8_floats load_i8_floats (16 small integers, exact)
//            add_exponent(p,t): bits of p plus (bits of t shifted left by 23)
//   i32x16   broadcast_i32 round_to_i32 to_float store_i8 (values within +-127; returns their sum) largest_magnitude
//   u8x64    load_u8 store_u8 low_bits<mask> shifted<n, mask> combine lane_byte<i>
//   tile_dot<rows, bits, first, count>: integer products of 4 * count inputs. Where `signed_bytes` is set, weights of
//            8 bits count as w - 128 there; elsewhere the caller takes 128 * (sum of inputs) off.
#pragma once

#include <cstddef>
#include <cstdint>

#define FERMATA_INLINE static inline __attribute__((always_inline))

namespace fermata::cpu::FERMATA_LEVEL {

inline constexpr int tile_rows_best = 1;
inline constexpr int expand_from = 1;
inline constexpr int key_blocks = 1;
inline constexpr int query_tile = 1;
inline constexpr bool signed_bytes = false;

struct f32x16 {
    float v[16];
};
struct i32x16 {
    std::int32_t v[16];
};
struct u8x64 {
    std::uint8_t v[64];
};

template <class To, class From>
FERMATA_INLINE To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    __builtin_memcpy(&to, &from, sizeof(To));
    return to;
}

#define FERMATA_LANES for (int i = 0; i < 16; ++i)

FERMATA_INLINE f32x16 load(const float* p) {
    f32x16 r;
    FERMATA_LANES r.v[i] = p[i];
    return r;
}
FERMATA_INLINE void store(float* p, f32x16 a) { FERMATA_LANES p[i] = a.v[i]; }
FERMATA_INLINE f32x16 load_first(const float* p, std::size_t n) {
    f32x16 r;
    FERMATA_LANES r.v[i] = static_cast<std::size_t>(i) < n ? p[i] : 0.0f;
    return r;
}
FERMATA_INLINE void store_first(float* p, f32x16 a, std::size_t n) {
    for (std::size_t i = 0; i < n && i < 16; ++i) p[i] = a.v[i];
}
FERMATA_INLINE f32x16 broadcast(float x) {
    f32x16 r;
    FERMATA_LANES r.v[i] = x;
    return r;
}
FERMATA_INLINE f32x16 zero() { return broadcast(0.0f); }
FERMATA_INLINE f32x16 add(f32x16 a, f32x16 b) {
    FERMATA_LANES a.v[i] += b.v[i];
    return a;
}
FERMATA_INLINE f32x16 subtract(f32x16 a, f32x16 b) {
    FERMATA_LANES a.v[i] -= b.v[i];
    return a;
}
FERMATA_INLINE f32x16 multiply(f32x16 a, f32x16 b) {
    FERMATA_LANES a.v[i] *= b.v[i];
    return a;
}
FERMATA_INLINE f32x16 divide(f32x16 a, f32x16 b) {
    FERMATA_LANES a.v[i] /= b.v[i];
    return a;
}
FERMATA_INLINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) {
    FERMATA_LANES c.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
    return c;
}
FERMATA_INLINE f32x16 maximum(f32x16 a, f32x16 b) {
    FERMATA_LANES a.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
    return a;
}
FERMATA_INLINE f32x16 minimum(f32x16 a, f32x16 b) {
    FERMATA_LANES a.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i];
    return a;
}
FERMATA_INLINE f32x16 select_less(f32x16 a, f32x16 b, f32x16 x, f32x16 y) {
    FERMATA_LANES x.v[i] = a.v[i] < b.v[i] ? x.v[i] : y.v[i];
    return x;
}
FERMATA_INLINE f32x16 select_ordered(f32x16 a, f32x16 x, f32x16 y) {
    FERMATA_LANES x.v[i] = a.v[i] == a.v[i] ? x.v[i] : y.v[i];
    return x;
}
FERMATA_INLINE f32x16 keep_first(f32x16 a, std::size_t n, float fill) {
    FERMATA_LANES a.v[i] = static_cast<std::size_t>(i) < n ? a.v[i] : fill;
    return a;
}
FERMATA_INLINE float sum_tree(f32x16 a) {
    for (int width = 8; width >= 1; width /= 2)
        for (int i = 0; i < width; ++i) a.v[i] += a.v[i + width];
    return a.v[0];
}
FERMATA_INLINE float largest(f32x16 a) {
    for (int width = 8; width >= 1; width /= 2)
        for (int i = 0; i < width; ++i) a.v[i] = a.v[i] > a.v[i + width] ? a.v[i] : a.v[i + width];
    return a.v[0];
}
FERMATA_INLINE f32x16 add_exponent(f32x16 p, f32x16 t) {
    FERMATA_LANES p.v[i] = bits_as<float>(bits_as<std::uint32_t>(p.v[i]) + (bits_as<std::uint32_t>(t.v[i]) << 23));
    return p;
}

// Half precision by integer arithmetic: exact to float32; from float32 to nearest, ties to even.
FERMATA_INLINE float half_to_float(std::uint16_t h) {
    const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
    const std::uint32_t rest = h & 0x7fffu;
    if (rest >= 0x7c00u) return bits_as<float>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13) | ((rest & 0x3ffu) != 0 ? 0x400000u : 0u));
    if (rest >= 0x400u) return bits_as<float>(sign | ((rest << 13) + (112u << 23)));
    // Below 2^-14 the value is rest * 2^-24: a product of two powers and an 10-bit integer, exact.
    const float magnitude = static_cast<float>(static_cast<std::int32_t>(rest)) * 5.9604644775390625e-8f;
    return bits_as<float>(sign | bits_as<std::uint32_t>(magnitude));
}
FERMATA_INLINE std::uint16_t float_to_half(float x) {
    const std::uint32_t bits = bits_as<std::uint32_t>(x);
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    const std::uint32_t rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | ((rest >> 13) & 0x3ffu));
    if (rest >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
    if (rest >= 0x38800000u)
        return static_cast<std::uint16_t>(sign | ((rest - (112u << 23) + 0xfffu + ((rest >> 13) & 1u)) >> 13));
    // Adding 0.5 puts the unit of the last place at 2^-24, the step of the subnormal halves; the addition rounds.
    const float shifted = bits_as<float>(rest) + 0.5f;
    return static_cast<std::uint16_t>(sign | (bits_as<std::uint32_t>(shifted) - 0x3f000000u));
}
FERMATA_INLINE f32x16 load_f16(const std::uint16_t* p) {
    f32x16 r;
    FERMATA_LANES r.v[i] = half_to_float(p[i]);
    return r;
}
FERMATA_INLINE f32x16 load_bf16(const std::uint16_t* p) {
    f32x16 r;
    FERMATA_LANES r.v[i] = bits_as<float>(static_cast<std::uint32_t>(p[i]) << 16);
    return r;
}
FERMATA_INLINE void store_f16(std::uint16_t* p, f32x16 a) { FERMATA_LANES p[i] = float_to_half(a.v[i]); }
FERMATA_INLINE void store_bf16(std::uint16_t* p, f32x16 a) {
    FERMATA_LANES {
        const std::uint32_t bits = bits_as<std::uint32_t>(a.v[i]);
        const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
        p[i] = static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
    }
}

FERMATA_INLINE f32x16 load_u8_floats(const std::uint8_t* p) {
    f32x16 r;
    FERMATA_LANES r.v[i] = static_cast<float>(p[i]);
    return r;
}
FERMATA_INLINE f32x16 load_i8_floats(const std::int8_t* p) {
    f32x16 r;
    FERMATA_LANES r.v[i] = static_cast<float>(p[i]);
    return r;
}

FERMATA_INLINE i32x16 broadcast_i32(std::int32_t x) {
    i32x16 r;
    FERMATA_LANES r.v[i] = x;
    return r;
}
// To nearest, ties to even, for |x| < 2^22: the sum with 1.5 * 2^23 has the integer in its low bits.
FERMATA_INLINE i32x16 round_to_i32(f32x16 a) {
    i32x16 r;
    FERMATA_LANES r.v[i] = bits_as<std::int32_t>(a.v[i] + 12582912.0f) - 0x4b400000;
    return r;
}
FERMATA_INLINE f32x16 to_float(i32x16 a) {
    f32x16 r;
    FERMATA_LANES r.v[i] = static_cast<float>(a.v[i]);
    return r;
}
FERMATA_INLINE std::int32_t store_i8(std::int8_t* p, i32x16 a) {
    std::int32_t sum = 0;
    FERMATA_LANES {
        p[i] = static_cast<std::int8_t>(a.v[i]);
        sum += a.v[i];
    }
    return sum;
}
// The largest |x| of both, compared as integers, so that a NaN is larger than everything.
FERMATA_INLINE float largest_magnitude(f32x16 a, f32x16 b) {
    std::int32_t m = 0;
    FERMATA_LANES {
        const std::int32_t x = bits_as<std::int32_t>(a.v[i]) & 0x7fffffff, y = bits_as<std::int32_t>(b.v[i]) & 0x7fffffff;
        m = x > m ? x : m;
        m = y > m ? y : m;
    }
    return bits_as<float>(m);
}

FERMATA_INLINE u8x64 load_u8(const void* p) {
    u8x64 r;
    __builtin_memcpy(r.v, p, 64);
    return r;
}
FERMATA_INLINE void store_u8(void* p, u8x64 a) { __builtin_memcpy(p, a.v, 64); }
template <int mask>
FERMATA_INLINE u8x64 low_bits(u8x64 a) {
    for (int i = 0; i < 64; ++i) a.v[i] = static_cast<std::uint8_t>(a.v[i] & mask);
    return a;
}
// (a >> n) & mask in every byte; a negative n shifts left.
template <int n, int mask>
FERMATA_INLINE u8x64 shifted(u8x64 a) {
    for (int i = 0; i < 64; ++i) {
        const unsigned x = a.v[i];
        if constexpr (n >= 0)
            a.v[i] = static_cast<std::uint8_t>((x >> n) & mask);
        else
            a.v[i] = static_cast<std::uint8_t>((x << -n) & mask);
    }
    return a;
}
FERMATA_INLINE u8x64 combine(u8x64 a, u8x64 b) {
    for (int i = 0; i < 64; ++i) a.v[i] = static_cast<std::uint8_t>(a.v[i] | b.v[i]);
    return a;
}
template <int byte>
FERMATA_INLINE i32x16 lane_byte(u8x64 a) {
    i32x16 r;
    FERMATA_LANES r.v[i] = a.v[4 * i + byte];
    return r;
}

// acc[r] += sum over j in [first, first + count), i in [0, 4) of w[j][lane][i] * a[r * stride + 4 * j + i].
// w holds values below 2^bits; a within +-127.
template <int rows, int bits, int first, int count>
FERMATA_INLINE void tile_dot(const u8x64 (&w)[8], const std::int8_t* a, std::size_t stride, i32x16 (&acc)[rows]) {
    for (int r = 0; r < rows; ++r) {
        const std::int8_t* x = a + static_cast<std::size_t>(r) * stride;
        for (int j = first; j < first + count; ++j)
            FERMATA_LANES {
                const std::uint8_t* u = w[j].v + 4 * i;
                acc[r].v[i] += u[0] * x[4 * j] + u[1] * x[4 * j + 1] + u[2] * x[4 * j + 2] + u[3] * x[4 * j + 3];
            }
    }
}

#undef FERMATA_LANES

}  // namespace fermata::cpu::FERMATA_LEVEL
