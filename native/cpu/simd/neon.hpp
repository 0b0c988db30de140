// Sixteen lanes in four NEON registers of AArch64. Integer products by SDOT where FERMATA_DOT is defined (ARMv8.2
// dotprod), else by 16-bit products. See simd/scalar.hpp for the interface.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#define FERMATA_INLINE static inline __attribute__((always_inline))

namespace fermata::cpu::FERMATA_LEVEL {

inline constexpr int tile_rows_best = 4;
inline constexpr int expand_from = 2;
inline constexpr int key_blocks = 1;
inline constexpr int query_tile = 4;
inline constexpr bool signed_bytes = true;

struct f32x16 {
    float32x4_t v[4];
};
struct i32x16 {
    int32x4_t v[4];
};
struct u8x64 {
    uint8x16_t v[4];
};

#define FERMATA_QUARTERS _Pragma("GCC unroll 4") for (int i = 0; i < 4; ++i)

FERMATA_INLINE f32x16 load(const float* p) {
    f32x16 r;
    FERMATA_QUARTERS r.v[i] = vld1q_f32(p + 4 * i);
    return r;
}
FERMATA_INLINE void store(float* p, f32x16 a) { FERMATA_QUARTERS vst1q_f32(p + 4 * i, a.v[i]); }
FERMATA_INLINE f32x16 load_first(const float* p, std::size_t n) {
    float whole[16] = {};
    for (std::size_t i = 0; i < n && i < 16; ++i) whole[i] = p[i];
    return load(whole);
}
FERMATA_INLINE void store_first(float* p, f32x16 a, std::size_t n) {
    float whole[16];
    store(whole, a);
    for (std::size_t i = 0; i < n && i < 16; ++i) p[i] = whole[i];
}
FERMATA_INLINE f32x16 broadcast(float x) {
    f32x16 r;
    FERMATA_QUARTERS r.v[i] = vdupq_n_f32(x);
    return r;
}
FERMATA_INLINE f32x16 zero() { return broadcast(0.0f); }
FERMATA_INLINE f32x16 add(f32x16 a, f32x16 b) {
    FERMATA_QUARTERS a.v[i] = vaddq_f32(a.v[i], b.v[i]);
    return a;
}
FERMATA_INLINE f32x16 subtract(f32x16 a, f32x16 b) {
    FERMATA_QUARTERS a.v[i] = vsubq_f32(a.v[i], b.v[i]);
    return a;
}
FERMATA_INLINE f32x16 multiply(f32x16 a, f32x16 b) {
    FERMATA_QUARTERS a.v[i] = vmulq_f32(a.v[i], b.v[i]);
    return a;
}
FERMATA_INLINE f32x16 divide(f32x16 a, f32x16 b) {
    FERMATA_QUARTERS a.v[i] = vdivq_f32(a.v[i], b.v[i]);
    return a;
}
FERMATA_INLINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) {
    FERMATA_QUARTERS c.v[i] = vfmaq_f32(c.v[i], a.v[i], b.v[i]);
    return c;
}
FERMATA_INLINE f32x16 maximum(f32x16 a, f32x16 b) {
    FERMATA_QUARTERS a.v[i] = vbslq_f32(vcgtq_f32(a.v[i], b.v[i]), a.v[i], b.v[i]);
    return a;
}
FERMATA_INLINE f32x16 minimum(f32x16 a, f32x16 b) {
    FERMATA_QUARTERS a.v[i] = vbslq_f32(vcltq_f32(a.v[i], b.v[i]), a.v[i], b.v[i]);
    return a;
}
FERMATA_INLINE f32x16 select_less(f32x16 a, f32x16 b, f32x16 x, f32x16 y) {
    FERMATA_QUARTERS x.v[i] = vbslq_f32(vcltq_f32(a.v[i], b.v[i]), x.v[i], y.v[i]);
    return x;
}
FERMATA_INLINE f32x16 select_ordered(f32x16 a, f32x16 x, f32x16 y) {
    FERMATA_QUARTERS x.v[i] = vbslq_f32(vceqq_f32(a.v[i], a.v[i]), x.v[i], y.v[i]);
    return x;
}
FERMATA_INLINE f32x16 keep_first(f32x16 a, std::size_t n, float fill) {
    const std::uint32_t index[4] = {0, 1, 2, 3};
    const uint32x4_t count = vdupq_n_u32(n > 16 ? 16u : static_cast<std::uint32_t>(n));
    FERMATA_QUARTERS {
        const uint32x4_t lane = vaddq_u32(vld1q_u32(index), vdupq_n_u32(static_cast<std::uint32_t>(4 * i)));
        a.v[i] = vbslq_f32(vcltq_u32(lane, count), a.v[i], vdupq_n_f32(fill));
    }
    return a;
}
FERMATA_INLINE float sum_tree(f32x16 a) {
    const float32x4_t four = vaddq_f32(vaddq_f32(a.v[0], a.v[2]), vaddq_f32(a.v[1], a.v[3]));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
FERMATA_INLINE float largest(f32x16 a) {
    float m[16];
    store(m, a);
    for (int width = 8; width >= 1; width /= 2)
        for (int i = 0; i < width; ++i) m[i] = m[i] > m[i + width] ? m[i] : m[i + width];
    return m[0];
}
FERMATA_INLINE f32x16 add_exponent(f32x16 p, f32x16 t) {
    FERMATA_QUARTERS p.v[i] = vreinterpretq_f32_u32(
        vaddq_u32(vreinterpretq_u32_f32(p.v[i]), vshlq_n_u32(vreinterpretq_u32_f32(t.v[i]), 23)));
    return p;
}
FERMATA_INLINE f32x16 load_f16(const std::uint16_t* p) {
    f32x16 r;
    FERMATA_QUARTERS r.v[i] = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i)));
    return r;
}
FERMATA_INLINE f32x16 load_bf16(const std::uint16_t* p) {
    f32x16 r;
    FERMATA_QUARTERS r.v[i] = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p + 4 * i), 16));
    return r;
}
FERMATA_INLINE void store_f16(std::uint16_t* p, f32x16 a) {
    FERMATA_QUARTERS vst1_u16(p + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(a.v[i])));
}
FERMATA_INLINE void store_bf16(std::uint16_t* p, f32x16 a) {
    FERMATA_QUARTERS {
        const uint32x4_t bits = vreinterpretq_u32_f32(a.v[i]);
        const uint32x4_t high = vshrq_n_u32(bits, 16);
        const uint32x4_t odd = vandq_u32(high, vdupq_n_u32(1));
        const uint32x4_t rounded = vshrq_n_u32(vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff))), 16);
        const uint32x4_t number = vceqq_f32(a.v[i], a.v[i]);
        vst1_u16(p + 4 * i, vmovn_u32(vbslq_u32(number, rounded, vorrq_u32(high, vdupq_n_u32(0x40)))));
    }
}

FERMATA_INLINE f32x16 load_u8_floats(const std::uint8_t* p) {
    const uint8x16_t x = vld1q_u8(p);
    const uint16x8_t lo = vmovl_u8(vget_low_u8(x)), hi = vmovl_u8(vget_high_u8(x));
    return {{vcvtq_f32_u32(vmovl_u16(vget_low_u16(lo))), vcvtq_f32_u32(vmovl_u16(vget_high_u16(lo))),
             vcvtq_f32_u32(vmovl_u16(vget_low_u16(hi))), vcvtq_f32_u32(vmovl_u16(vget_high_u16(hi)))}};
}
FERMATA_INLINE f32x16 load_i8_floats(const std::int8_t* p) {
    const int8x16_t x = vld1q_s8(p);
    const int16x8_t lo = vmovl_s8(vget_low_s8(x)), hi = vmovl_s8(vget_high_s8(x));
    return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(lo))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(lo))),
             vcvtq_f32_s32(vmovl_s16(vget_low_s16(hi))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(hi)))}};
}

FERMATA_INLINE i32x16 broadcast_i32(std::int32_t x) {
    i32x16 r;
    FERMATA_QUARTERS r.v[i] = vdupq_n_s32(x);
    return r;
}
FERMATA_INLINE i32x16 round_to_i32(f32x16 a) {
    i32x16 r;
    FERMATA_QUARTERS r.v[i] = vcvtnq_s32_f32(a.v[i]);
    return r;
}
FERMATA_INLINE f32x16 to_float(i32x16 a) {
    f32x16 r;
    FERMATA_QUARTERS r.v[i] = vcvtq_f32_s32(a.v[i]);
    return r;
}
FERMATA_INLINE std::int32_t store_i8(std::int8_t* p, i32x16 a) {
    const int16x8_t lo = vcombine_s16(vmovn_s32(a.v[0]), vmovn_s32(a.v[1]));
    const int16x8_t hi = vcombine_s16(vmovn_s32(a.v[2]), vmovn_s32(a.v[3]));
    vst1q_s8(p, vcombine_s8(vmovn_s16(lo), vmovn_s16(hi)));
    return vaddvq_s32(vaddq_s32(vaddq_s32(a.v[0], a.v[1]), vaddq_s32(a.v[2], a.v[3])));
}
FERMATA_INLINE float largest_magnitude(f32x16 a, f32x16 b) {
    const int32x4_t mask = vdupq_n_s32(0x7fffffff);
    int32x4_t m = vdupq_n_s32(0);
    FERMATA_QUARTERS {
        m = vmaxq_s32(m, vandq_s32(vreinterpretq_s32_f32(a.v[i]), mask));
        m = vmaxq_s32(m, vandq_s32(vreinterpretq_s32_f32(b.v[i]), mask));
    }
    const std::int32_t bits = vmaxvq_s32(m);
    float x;
    __builtin_memcpy(&x, &bits, 4);
    return x;
}

FERMATA_INLINE u8x64 load_u8(const void* p) {
    u8x64 r;
    FERMATA_QUARTERS r.v[i] = vld1q_u8(static_cast<const std::uint8_t*>(p) + 16 * i);
    return r;
}
FERMATA_INLINE void store_u8(void* p, u8x64 a) {
    FERMATA_QUARTERS vst1q_u8(static_cast<std::uint8_t*>(p) + 16 * i, a.v[i]);
}
template <int mask>
FERMATA_INLINE u8x64 low_bits(u8x64 a) {
    FERMATA_QUARTERS a.v[i] = vandq_u8(a.v[i], vdupq_n_u8(mask));
    return a;
}
template <int n, int mask>
FERMATA_INLINE u8x64 shifted(u8x64 a) {
    FERMATA_QUARTERS {
        if constexpr (n > 0)
            a.v[i] = vandq_u8(vshrq_n_u8(a.v[i], n), vdupq_n_u8(mask));
        else if constexpr (n == 0)
            a.v[i] = vandq_u8(a.v[i], vdupq_n_u8(mask));
        else
            a.v[i] = vandq_u8(vshlq_n_u8(a.v[i], -n), vdupq_n_u8(mask));
    }
    return a;
}
FERMATA_INLINE u8x64 combine(u8x64 a, u8x64 b) {
    FERMATA_QUARTERS a.v[i] = vorrq_u8(a.v[i], b.v[i]);
    return a;
}
template <int byte>
FERMATA_INLINE i32x16 lane_byte(u8x64 a) {
    i32x16 r;
    FERMATA_QUARTERS {
        uint32x4_t x = vreinterpretq_u32_u8(a.v[i]);
        if constexpr (byte != 0) x = vshrq_n_u32(x, 8 * byte);
        r.v[i] = vreinterpretq_s32_u32(vandq_u32(x, vdupq_n_u32(0xff)));
    }
    return r;
}

// Weights below 2^7 are their own signed value; those of 8 bits count as w - 128. A product is at most 128 * 127 in
// magnitude, so two fit 16 bits (32512).
template <int rows, int bits, int first, int count>
FERMATA_INLINE void tile_dot(const u8x64 (&w)[8], const std::int8_t* a, std::size_t stride, i32x16 (&acc)[rows]) {
#pragma GCC unroll 8
    for (int j = first; j < first + count; ++j)
#pragma GCC unroll 4
        for (int q = 0; q < 4; ++q) {
            int8x16_t s = vreinterpretq_s8_u8(w[j].v[q]);
            if constexpr (bits == 8) s = veorq_s8(s, vdupq_n_s8(-128));
#pragma GCC unroll 4
            for (int r = 0; r < rows; ++r) {
                std::int32_t four;
                __builtin_memcpy(&four, a + static_cast<std::size_t>(r) * stride + 4 * j, 4);
                const int8x16_t in = vreinterpretq_s8_s32(vdupq_n_s32(four));
#if defined(FERMATA_DOT)
                acc[r].v[q] = vdotq_s32(acc[r].v[q], s, in);
#else
                const int16x8_t lo = vmull_s8(vget_low_s8(s), vget_low_s8(in));    // outputs 0, 1
                const int16x8_t hi = vmull_s8(vget_high_s8(s), vget_high_s8(in));  // outputs 2, 3
                acc[r].v[q] = vaddq_s32(acc[r].v[q], vpaddq_s32(vpaddlq_s16(lo), vpaddlq_s16(hi)));
#endif
            }
        }
}

#undef FERMATA_QUARTERS

}  // namespace fermata::cpu::FERMATA_LEVEL
