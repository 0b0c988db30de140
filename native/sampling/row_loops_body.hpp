// The body of row_loops.hpp, included once per instruction set inside a namespace of its own, with FERMATA_LANES float
// lanes to a vector. Vector types of the compiler at the machine's own width and plain loops, no intrinsics and nothing
// from the standard library: an inline function compiled here for AVX2 and merged with another file's copy would run on
// machines that lack it.

using floats = float __attribute__((vector_size(4 * FERMATA_LANES)));
using ints = int __attribute__((vector_size(4 * FERMATA_LANES)));
using doubles = double __attribute__((vector_size(4 * FERMATA_LANES)));     // half as many lanes
using half_floats = float __attribute__((vector_size(2 * FERMATA_LANES)));  // as many as `doubles`

#define FERMATA_LOOP static inline __attribute__((always_inline))

enum : std::size_t { lanes = FERMATA_LANES, half_lanes = lanes / 2, sums = 16 / half_lanes };

template <class Vector>
FERMATA_LOOP Vector load(const float* p) {
    Vector out;
    __builtin_memcpy(&out, p, sizeof out);
    return out;
}

// As exp_of_negative in exact_math.hpp, operation by operation.
FERMATA_LOOP floats exp_of_negative(floats x) {
    const floats low = floats{} - 87.0f;
    const floats clamped = x < low ? low : x;
    const floats n = (clamped * 1.44269504f + 12582912.0f) - 12582912.0f;
    const floats r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
    floats e = floats{} + 1.98412698e-4f;
    e = e * r + 1.38888889e-3f;
    e = e * r + 8.33333333e-3f;
    e = e * r + 4.16666667e-2f;
    e = e * r + 1.66666667e-1f;
    e = e * r + 0.5f;
    e = e * r + 1.0f;
    e = e * r + 1.0f;
    const ints scale = (__builtin_convertvector(n, ints) + 127) << 23;
    return x < low ? floats{} : e * (floats)scale;
}

// Sixteen partial sums in double: element i of a run goes into sum i mod 16.
struct partial_sums {
    doubles part[sums];
};

FERMATA_LOOP void add_sixteen(partial_sums& to, const float* p) {
    for (std::size_t k = 0; k < sums; ++k)
        to.part[k] += __builtin_convertvector(load<half_floats>(p + k * half_lanes), doubles);
}

FERMATA_LOOP double tree(const partial_sums& of) {
    double s[16];
    __builtin_memcpy(s, &of, sizeof s);
    for (int width = 8; width > 0; width /= 2)
        for (int j = 0; j < width; ++j) s[j] += s[j + width];
    return s[0];
}

FERMATA_LOOP double sum_of(const float* p, std::size_t n) {
    partial_sums part{};
    std::size_t i = 0;
    for (; i + 16 <= n; i += 16) add_sixteen(part, p + i);
    if (i < n) {
        float last[16] = {};
        for (std::size_t j = 0; i + j < n; ++j) last[j] = p[i + j];
        add_sixteen(part, last);
    }
    return tree(part);
}

// Calls vectors(i) for whole vectors and hands what is left over, padded, to the same body through a buffer.
template <class Body>
FERMATA_LOOP void over_vectors(const float* x, std::size_t n, float fill, Body body) {
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes) body(load<floats>(x + i), i, lanes);
    if (i == n) return;
    float last[lanes];
    for (std::size_t j = 0; j < lanes; ++j) last[j] = i + j < n ? x[i + j] : fill;
    body(load<floats>(last), i, n - i);
}

FERMATA_LOOP bool any_set(ints mask) {
    long long words[sizeof mask / 8];
    __builtin_memcpy(words, &mask, sizeof mask);
    long long any = 0;
    for (long long each : words) any |= each;
    return any != 0;
}

static bool all_finite(const float* x, std::size_t n) {
    const ints exponent = ints{} + 0x7F800000;
    ints bad{};
    over_vectors(x, n, 0, [&](floats v, std::size_t, std::size_t) { bad |= ((ints)v & exponent) == exponent; });
    return !any_set(bad);
}

static float best(const float* x, std::size_t n) {
    floats top[4];
    for (floats& each : top) each = floats{} + x[0];
    std::size_t i = 0;
    for (; i + 4 * lanes <= n; i += 4 * lanes)
        for (std::size_t k = 0; k < 4; ++k) {
            const floats v = load<floats>(x + i + k * lanes);
            top[k] = v > top[k] ? v : top[k];
        }
    float out = x[0];
    for (const floats& each : top)
        for (std::size_t j = 0; j < lanes; ++j) out = each[j] > out ? each[j] : out;
    for (; i < n; ++i) out = x[i] > out ? x[i] : out;
    return out;
}

static std::size_t first_equal(const float* x, std::size_t n, float value) {
    const floats wanted = floats{} + value;
    std::size_t i = 0;
    for (; i + 8 * lanes <= n; i += 8 * lanes) {
        ints hit{};
        for (std::size_t k = 0; k < 8; ++k) hit |= load<floats>(x + i + k * lanes) == wanted;
        if (any_set(hit)) break;
    }
    while (i < n && x[i] != value) ++i;
    return i;
}

static double sum_of_exp(const float* x, std::size_t n, float top) {
    partial_sums part{};
    float e[16];
    for (std::size_t i = 0; i < n; i += 16) {
        const std::size_t count = n - i < 16 ? n - i : 16;
        for (std::size_t j = count; j < 16; ++j) e[j] = 0;
        over_vectors(x + i, count, top, [&](floats v, std::size_t at, std::size_t used) {
            const floats w = exp_of_negative(v - top);
            if (used == lanes) __builtin_memcpy(e + at, &w, sizeof w);
            else
                for (std::size_t j = 0; j < used; ++j) e[at + j] = w[j];
        });
        add_sixteen(part, e);
    }
    return tree(part);
}

static double weigh(const float* x, std::size_t n, float top, float temperature, float smallest, float* weights,
                    double* blocks) {
    const floats floor = floats{} + smallest, divisor = floats{} + temperature;
    double total = 0;
    for (std::size_t b = 0; b * weight_block < n; ++b) {
        const std::size_t begin = b * weight_block;
        const std::size_t count = n - begin < weight_block ? n - begin : weight_block;
        over_vectors(x + begin, count, top, [&](floats v, std::size_t at, std::size_t used) {
            floats w = exp_of_negative((v - top) / divisor);
            w = w < floor ? floats{} : w;
            if (used == lanes) __builtin_memcpy(weights + begin + at, &w, sizeof w);
            else
                for (std::size_t j = 0; j < used; ++j) weights[begin + at + j] = w[j];
        });
        blocks[b] = sum_of(weights + begin, count);
        total += blocks[b];
    }
    return total;
}

static double mass_at_least(const float* weights, std::size_t n, float threshold) {
    const half_floats least = half_floats{} + threshold;
    partial_sums part{};
    std::size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (std::size_t k = 0; k < sums; ++k) {
            const half_floats w = load<half_floats>(weights + i + k * half_lanes);
            part.part[k] += __builtin_convertvector(w < least ? half_floats{} : w, doubles);
        }
    float last[16] = {};
    for (std::size_t j = 0; i + j < n; ++j) last[j] = weights[i + j] < threshold ? 0 : weights[i + j];
    add_sixteen(part, last);
    return tree(part);
}

static std::size_t collect_at_least(const float* x, std::size_t n, float threshold, int* out) {
    const floats least = floats{} + threshold;
    std::size_t count = 0, i = 0;
    const auto take = [&](std::size_t end) {
        for (; i < end; ++i) {
            out[count] = static_cast<int>(i);
            count += x[i] >= threshold ? 1 : 0;
        }
    };
    while (i + 4 * lanes <= n) {
        ints hit{};
        for (std::size_t k = 0; k < 4; ++k) hit |= load<floats>(x + i + k * lanes) >= least;
        if (any_set(hit)) take(i + 4 * lanes);
        else i += 4 * lanes;
    }
    take(n);
    return count;
}

static const row_loops table = {all_finite, best, first_equal, sum_of_exp, weigh, mass_at_least, collect_at_least};

#undef FERMATA_LOOP
