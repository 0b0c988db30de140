// Own elementary functions and the elementwise kernels of a level.
#pragma once

// exp(x) to about 1 ulp: x = n ln2 + r with |r| <= ln2 / 2, a polynomial in r, and n added to the exponent. Below -87
// the result is 0 (its true value is below 2^-125), above 88 it is exp(88); exp(0) is exactly 1; NaN stays NaN.
namespace fermata::cpu::FERMATA_LEVEL {

FERMATA_INLINE f32x16 exponential(f32x16 x) {
    const f32x16 shift = broadcast(12582912.0f);  // 1.5 * 2^23: its sum with n has n in the low bits
    const f32x16 capped = minimum(broadcast(88.0f), x);
    const f32x16 shifted_n = fma(capped, broadcast(1.44269504f), shift);
    const f32x16 n = subtract(shifted_n, shift);
    f32x16 r = fma(n, broadcast(-0.693359375f), capped);
    r = fma(n, broadcast(2.12194440e-4f), r);
    f32x16 p = broadcast(1.9875691500e-4f);
    p = fma(p, r, broadcast(1.3981999507e-3f));
    p = fma(p, r, broadcast(8.3334519073e-3f));
    p = fma(p, r, broadcast(4.1665795894e-2f));
    p = fma(p, r, broadcast(1.6666665459e-1f));
    p = fma(p, r, broadcast(5.0000001201e-1f));
    p = fma(multiply(p, r), r, add(r, broadcast(1.0f)));
    p = add_exponent(p, shifted_n);
    p = select_less(x, broadcast(-87.0f), zero(), p);
    return select_ordered(x, p, x);
}

static void exponential_array(const float* x, std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; i += 16) store_first(out + i, exponential(load_first(x + i, count - i)), count - i);
}

// gate / (1 + exp(-gate)) * up
FERMATA_INLINE f32x16 silu_product(f32x16 gate, f32x16 up) {
    const f32x16 e = exponential(subtract(zero(), gate));
    return multiply(divide(gate, add(broadcast(1.0f), e)), up);
}

static void silu_multiply(const float* gate, const float* up, std::size_t count, float* out) {
    std::size_t i = 0;
    for (; i + 16 <= count; i += 16) store(out + i, silu_product(load(gate + i), load(up + i)));
    if (i < count)
        store_first(out + i, silu_product(load_first(gate + i, count - i), load_first(up + i, count - i)), count - i);
}

static void rms_norm(const float* x, const float* scale, float epsilon, std::size_t width, float* out) {
    f32x16 squares = zero();
    std::size_t i = 0;
    for (; i + 16 <= width; i += 16) {
        const f32x16 v = load(x + i);
        squares = fma(v, v, squares);
    }
    if (i < width) {
        const f32x16 v = load_first(x + i, width - i);
        squares = fma(v, v, squares);
    }
    const float mean = sum_tree(squares) / static_cast<float>(width);
    const f32x16 factor = broadcast(1.0f / __builtin_sqrtf(mean + epsilon));
    for (i = 0; i + 16 <= width; i += 16) store(out + i, multiply(multiply(load(x + i), factor), load(scale + i)));
    if (i < width) {
        const std::size_t n = width - i;
        store_first(out + i, multiply(multiply(load_first(x + i, n), factor), load_first(scale + i, n)), n);
    }
}

static void rotate(float* x, const float* cosine, const float* sine, std::size_t half) {
    for (std::size_t i = 0; i < half; i += 16) {
        const std::size_t n = half - i;
        const f32x16 a = load_first(x + i, n), b = load_first(x + half + i, n);
        const f32x16 c = load_first(cosine + i, n), s = load_first(sine + i, n);
        store_first(x + i, subtract(multiply(a, c), multiply(b, s)), n);
        store_first(x + half + i, add(multiply(b, c), multiply(a, s)), n);
    }
}

// A block whose largest magnitude isn't finite gets a NaN scale and zeros, one below 1e-30 gets zeros.
static void quantise(const float* x, std::size_t inputs, std::int8_t* q, float* scale, float* scaled_sum,
                     std::int32_t* sum) {
    for (std::size_t b = 0; b < inputs / 32; ++b) {
        const f32x16 lo = load(x + 32 * b), hi = load(x + 32 * b + 16);
        const float most = largest_magnitude(lo, hi);
        const bool finite = most <= 3.402823466e38f;
        const bool plain = finite && most >= 1e-30f;
        const f32x16 factor = broadcast(plain ? 127.0f / most : 0.0f);
        // Without a usable scale the inputs, which may be NaN, don't count.
        const i32x16 qlo = round_to_i32(plain ? multiply(lo, factor) : zero());
        const i32x16 qhi = round_to_i32(plain ? multiply(hi, factor) : zero());
        const std::int32_t s0 = store_i8(q + 32 * b, qlo), s1 = store_i8(q + 32 * b + 16, qhi);
        sum[2 * b] = s0;
        sum[2 * b + 1] = s1;
        scale[b] = finite ? (plain ? most * (1.0f / 127.0f) : 0.0f) : __builtin_nanf("");
        scaled_sum[b] = scale[b] * static_cast<float>(s0 + s1);
    }
}

}  // namespace fermata::cpu::FERMATA_LEVEL
