// Products with weights. Lanes are outputs, so every output is summed in ascending order over its inputs (or blocks of
// 32 inputs, whose integer products are exact), whatever the number of rows handled together.
//
//   plain integer formats, block b:  acc = fma(float(sum of q * x), d * x.scale, acc)
//   with minimum, then:              acc = fma(m, x.scaled_sum, acc)
//   float weights, input k:          acc = fma(w, x, acc)
#pragma once

namespace fermata::cpu::FERMATA_LEVEL {

FERMATA_INLINE const std::uint16_t* halves_at(const std::byte* p) { return reinterpret_cast<const std::uint16_t*>(p); }

// A panel as it is stored.
template <packing form>
struct packed_panel {
    static constexpr integer_format format = format_of<form>;
    const std::byte* scales;
    const std::byte* quants;

    // Weights are read once from front to back and come from far away: ask for them early. Past the panel's end this
    // asks for the next panel, or for nothing.
    __attribute__((always_inline)) void prefetch(std::size_t block) const {
        constexpr std::size_t ahead = 3072 / format.quant_bytes;
        const std::byte* q = quants + (block + ahead) * format.quant_bytes;
#pragma GCC unroll 8
        for (std::size_t at = 0; at < format.quant_bytes; at += 64) __builtin_prefetch(q + at);
        if constexpr (!format.super) __builtin_prefetch(scales + (block + ahead) * format.scale_bytes);
    }
    __attribute__((always_inline)) void weights(std::size_t block, u8x64 (&w)[8]) const {
        const std::byte* q = quants + block * format.quant_bytes;
        if constexpr (format.bits == 8) {
#pragma GCC unroll 8
            for (int j = 0; j < 8; ++j) w[j] = load_u8(q + 64 * j);
        } else {
#pragma GCC unroll 4
            for (int v = 0; v < 4; ++v) {
                const u8x64 pair = load_u8(q + 64 * v);
                w[v] = low_bits<15>(pair);
                w[v + 4] = shifted<4, 15>(pair);
            }
            if constexpr (format.bits == 5) {
                const u8x64 h = load_u8(q + 256);
                w[0] = combine(w[0], shifted<-4, 16>(h));
                w[1] = combine(w[1], shifted<-3, 16>(h));
                w[2] = combine(w[2], shifted<-2, 16>(h));
                w[3] = combine(w[3], shifted<-1, 16>(h));
                w[4] = combine(w[4], low_bits<16>(h));
                w[5] = combine(w[5], shifted<1, 16>(h));
                w[6] = combine(w[6], shifted<2, 16>(h));
                w[7] = combine(w[7], shifted<3, 16>(h));
            } else if constexpr (format.bits == 6) {
#pragma GCC unroll 2
                for (int g = 0; g < 2; ++g) {
                    const u8x64 h = load_u8(q + 256 + 64 * g);
                    w[4 * g] = combine(w[4 * g], shifted<-4, 48>(h));
                    w[4 * g + 1] = combine(w[4 * g + 1], shifted<-2, 48>(h));
                    w[4 * g + 2] = combine(w[4 * g + 2], low_bits<48>(h));
                    w[4 * g + 3] = combine(w[4 * g + 3], shifted<2, 48>(h));
                }
            }
        }
    }
    __attribute__((always_inline)) f32x16 scale(std::size_t block, int half) const {
        if constexpr (!format.super) return load_f16(halves_at(scales + block * format.scale_bytes));
        const std::byte* s = scales + block / 8 * format.scale_bytes;
        const f32x16 d = load_f16(halves_at(s));
        if constexpr (format.halves == 2)
            return multiply(d, load_i8_floats(reinterpret_cast<const std::int8_t*>(s) + 32 + 16 * (block % 8 * 2 + static_cast<std::size_t>(half))));
        return multiply(d, load_u8_floats(reinterpret_cast<const std::uint8_t*>(s) + 64 + 16 * (block % 8)));
    }
    __attribute__((always_inline)) f32x16 minimum(std::size_t block) const {
        if constexpr (!format.super) return load_f16(halves_at(scales + block * format.scale_bytes + 32));
        const std::byte* s = scales + block / 8 * format.scale_bytes;
        return multiply(load_f16(halves_at(s + 32)),
                        load_u8_floats(reinterpret_cast<const std::uint8_t*>(s) + 192 + 16 * (block % 8)));
    }
};

// The same panel with one byte per weight and float32 scales, in scratch: for many rows.
template <packing form>
struct expanded_panel {
    static constexpr integer_format format = format_of<form>;
    static constexpr std::size_t block_bytes = 512 + 64 * format.halves + (format.minimum ? 64 : 0);
    const std::byte* data;

    __attribute__((always_inline)) void prefetch(std::size_t) const {}
    __attribute__((always_inline)) void weights(std::size_t block, u8x64 (&w)[8]) const {
#pragma GCC unroll 8
        for (int j = 0; j < 8; ++j) w[j] = load_u8(data + block * block_bytes + 64 * j);
    }
    __attribute__((always_inline)) f32x16 scale(std::size_t block, int half) const {
        return load(reinterpret_cast<const float*>(data + block * block_bytes + 512 + 64 * half));
    }
    __attribute__((always_inline)) f32x16 minimum(std::size_t block) const {
        return load(reinterpret_cast<const float*>(data + block * block_bytes + 512 + 64 * format.halves));
    }
};

template <packing form>
static void expand(const packed_panel<form>& from, std::size_t blocks, std::byte* to) {
    constexpr integer_format format = format_of<form>;
    for (std::size_t b = 0; b < blocks; ++b, to += expanded_panel<form>::block_bytes) {
        u8x64 w[8];
        from.prefetch(b);
        from.weights(b, w);
#pragma GCC unroll 8
        for (int j = 0; j < 8; ++j) store_u8(to + 64 * j, w[j]);
        float* f = reinterpret_cast<float*>(to + 512);
        for (int h = 0; h < format.halves; ++h) store(f + 16 * h, from.scale(b, h));
        if constexpr (format.minimum) store(f + 16 * format.halves, from.minimum(b));
    }
}

template <packing form, int rows, class Panel>
FERMATA_INLINE void integer_tile(const Panel& panel, const quantised_rows& x, std::size_t row, f32x16 (&acc)[rows]) {
    constexpr integer_format format = format_of<form>;
    constexpr bool takes_offset = format.offset != 0 && !(format.bits == 8 && signed_bytes);
    const std::size_t blocks = x.inputs / 32;
    const std::int8_t* q = x.q + row * x.inputs;
    const float* xs = x.scale + row * blocks;
    const float* xm = x.scaled_sum + row * blocks;
    const std::int32_t* sums = x.sum + row * blocks * 2;
    for (std::size_t b = 0; b < blocks; ++b) {
        u8x64 w[8];
        panel.prefetch(b);
        panel.weights(b, w);
        i32x16 dot[rows];
        if constexpr (format.halves == 1) {
#pragma GCC unroll 8
            for (int r = 0; r < rows; ++r) {
                const std::int32_t* s = sums + static_cast<std::size_t>(r) * blocks * 2 + 2 * b;
                dot[r] = broadcast_i32(takes_offset ? -format.offset * (s[0] + s[1]) : 0);
            }
            tile_dot<rows, format.bits, 0, 8>(w, q + 32 * b, x.inputs, dot);
            const f32x16 scale = panel.scale(b, 0);
#pragma GCC unroll 8
            for (int r = 0; r < rows; ++r)
                acc[r] = fma(to_float(dot[r]), multiply(scale, broadcast(xs[static_cast<std::size_t>(r) * blocks + b])), acc[r]);
            if constexpr (format.minimum) {
                const f32x16 least = panel.minimum(b);
#pragma GCC unroll 8
                for (int r = 0; r < rows; ++r)
                    acc[r] = fma(least, broadcast(xm[static_cast<std::size_t>(r) * blocks + b]), acc[r]);
            }
        } else {
#pragma GCC unroll 2
            for (int h = 0; h < 2; ++h) {
#pragma GCC unroll 8
                for (int r = 0; r < rows; ++r)
                    dot[r] = broadcast_i32(-format.offset * sums[static_cast<std::size_t>(r) * blocks * 2 + 2 * b + static_cast<std::size_t>(h)]);
                if (h == 0)
                    tile_dot<rows, format.bits, 0, 4>(w, q + 32 * b, x.inputs, dot);
                else
                    tile_dot<rows, format.bits, 4, 4>(w, q + 32 * b, x.inputs, dot);
                const f32x16 scale = panel.scale(b, h);
#pragma GCC unroll 8
                for (int r = 0; r < rows; ++r)
                    acc[r] = fma(to_float(dot[r]), multiply(scale, broadcast(xs[static_cast<std::size_t>(r) * blocks + b])), acc[r]);
            }
        }
    }
}

FERMATA_INLINE void finish(f32x16 acc, const linear_output& out, std::size_t row, std::size_t first_output,
                           std::size_t outputs) {
    float* to = (out.rows != nullptr ? out.rows[row] : out.data + row * out.stride) + first_output;
    if (out.bias != nullptr) acc = add(acc, load(out.bias + first_output));
    const std::size_t n = outputs - first_output;
    if (n >= 16) {
        if (out.accumulate) acc = add(load(to), acc);
        store(to, acc);
    } else {
        if (out.accumulate) acc = add(load_first(to, n), acc);
        store_first(to, acc, n);
    }
}

template <packing form, int rows, class Panel>
static void integer_rows(const Panel& panel, const quantised_rows& x, const linear_output& out, std::size_t first_output,
                         std::size_t outputs, std::size_t row) {
    f32x16 acc[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) acc[r] = zero();
    integer_tile<form, rows>(panel, x, row, acc);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) finish(acc[r], out, row + static_cast<std::size_t>(r), first_output, outputs);
}

template <packing form, class Panel>
static void integer_panel(const Panel& panel, const quantised_rows& x, const linear_output& out,
                          std::size_t first_output, std::size_t outputs, std::size_t row, std::size_t row_last) {
    constexpr std::size_t best = tile_rows_best;
    for (; row + best <= row_last; row += best)
        integer_rows<form, tile_rows_best>(panel, x, out, first_output, outputs, row);
    if constexpr (best > 4)
        for (; row + 4 <= row_last; row += 4) integer_rows<form, 4>(panel, x, out, first_output, outputs, row);
    if constexpr (best > 1)
        for (; row + 2 <= row_last; row += 2) integer_rows<form, 2>(panel, x, out, first_output, outputs, row);
    for (; row < row_last; ++row) integer_rows<form, 1>(panel, x, out, first_output, outputs, row);
}

template <packing form>
static void integer_panels(const panels& m, const quantised_rows& x, const linear_output& out, std::size_t first,
                           std::size_t last, std::size_t row_first, std::size_t row_last, std::byte* scratch) {
    for (std::size_t p = first; p < last; ++p) {
        const std::byte* data = m.data + p * m.panel_bytes;
        const packed_panel<form> panel{data, data + m.quants_offset};
        if (tile_rows_best > 1 && row_last - row_first >= tile_rows_best * expand_from) {
            expand<form>(panel, m.inputs / 32, scratch);
            integer_panel<form>(expanded_panel<form>{scratch}, x, out, 16 * p, m.outputs, row_first, row_last);
        } else {
            integer_panel<form>(panel, x, out, 16 * p, m.outputs, row_first, row_last);
        }
    }
}

static void linear_quantised(const panels& m, const quantised_rows& x, const linear_output& out, std::size_t first,
                             std::size_t last, std::size_t row_first, std::size_t row_last, std::byte* scratch) {
    switch (m.form) {
#define FERMATA_CASE(name) \
    case packing::name: return integer_panels<packing::name>(m, x, out, first, last, row_first, row_last, scratch)
        FERMATA_CASE(q8_0);
        FERMATA_CASE(q4_0);
        FERMATA_CASE(q4_1);
        FERMATA_CASE(q5_0);
        FERMATA_CASE(q5_1);
        FERMATA_CASE(q4_k);
        FERMATA_CASE(q5_k);
        FERMATA_CASE(q6_k);
#undef FERMATA_CASE
        default: return;
    }
}

// ---- float activations

template <packing form>
FERMATA_INLINE f32x16 load_weights(const std::byte* data, std::size_t input) {
    if constexpr (form == packing::f32) return load(reinterpret_cast<const float*>(data) + 16 * input);
    if constexpr (form == packing::f16) return load_f16(halves_at(data) + 16 * input);
    if constexpr (form == packing::bf16) return load_bf16(halves_at(data) + 16 * input);
}

// `rows` rows times `count` panels.
template <packing form, int rows, int count>
static void float_rows(const std::byte* data, std::size_t panel_bytes, std::size_t inputs, const float* x,
                       const linear_output& out, std::size_t first_output, std::size_t outputs, std::size_t row) {
    f32x16 acc[rows][count];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
        for (int c = 0; c < count; ++c) acc[r][c] = zero();
    const float* in = x + row * inputs;
    for (std::size_t k = 0; k < inputs; ++k)
#pragma GCC unroll 4
        for (int c = 0; c < count; ++c) {
            const f32x16 w = load_weights<form>(data + static_cast<std::size_t>(c) * panel_bytes, k);
#pragma GCC unroll 8
            for (int r = 0; r < rows; ++r)
                acc[r][c] = fma(w, broadcast(in[static_cast<std::size_t>(r) * inputs + k]), acc[r][c]);
        }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
        for (int c = 0; c < count; ++c)
            finish(acc[r][c], out, row + static_cast<std::size_t>(r), first_output + 16 * static_cast<std::size_t>(c), outputs);
}

template <packing form, int count>
static void float_panel(const std::byte* data, std::size_t panel_bytes, std::size_t inputs, const float* x,
                        const linear_output& out, std::size_t first_output, std::size_t outputs, std::size_t row,
                        std::size_t row_last) {
    constexpr int best = count == 1 ? tile_rows_best : 1;
    for (; row + best <= row_last; row += best)
        float_rows<form, best, count>(data, panel_bytes, inputs, x, out, first_output, outputs, row);
    if constexpr (best > 2)
        for (; row + 2 <= row_last; row += 2)
            float_rows<form, 2, count>(data, panel_bytes, inputs, x, out, first_output, outputs, row);
    for (; row < row_last; ++row)
        float_rows<form, 1, count>(data, panel_bytes, inputs, x, out, first_output, outputs, row);
}

template <packing form>
static void float_panels(const panels& m, const float* x, const linear_output& out, std::size_t first, std::size_t last,
                         std::size_t row_first, std::size_t row_last) {
    std::size_t p = first;
    constexpr int together = tile_rows_best > 1 ? 4 : 1;
    if (row_last - row_first < 4)  // few rows: more panels at once keep the units busy
        for (; p + together <= last; p += together)
            float_panel<form, together>(m.data + p * m.panel_bytes, m.panel_bytes, m.inputs, x, out, 16 * p, m.outputs,
                                 row_first, row_last);
    for (; p < last; ++p)
        float_panel<form, 1>(m.data + p * m.panel_bytes, m.panel_bytes, m.inputs, x, out, 16 * p, m.outputs, row_first,
                             row_last);
}

// A panel of integers as float32 [input][16]: (scale * q) is exact, adding the minimum rounds once.
template <packing form>
static void to_floats(const packed_panel<form>& from, std::size_t blocks, float* to) {
    constexpr integer_format format = format_of<form>;
    for (std::size_t b = 0; b < blocks; ++b) {
        u8x64 w[8];
        from.weights(b, w);
        for (int j = 0; j < 8; ++j, to += 64) {
            const f32x16 scale = from.scale(b, format.halves == 2 ? j / 4 : 0);
            const f32x16 offset = broadcast(static_cast<float>(format.offset));
            f32x16 v[4] = {to_float(lane_byte<0>(w[j])), to_float(lane_byte<1>(w[j])), to_float(lane_byte<2>(w[j])),
                           to_float(lane_byte<3>(w[j]))};
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) {
                const f32x16 q = subtract(v[i], offset);
                if constexpr (format.minimum)
                    store(to + 16 * i, fma(scale, q, from.minimum(b)));
                else
                    store(to + 16 * i, multiply(scale, q));
            }
        }
    }
}

template <packing form>
static void dequantised_panels(const panels& m, const float* x, const linear_output& out, std::size_t first,
                               std::size_t last, std::size_t row_first, std::size_t row_last, std::byte* scratch) {
    for (std::size_t p = first; p < last; ++p) {
        const std::byte* data = m.data + p * m.panel_bytes;
        to_floats(packed_panel<form>{data, data + m.quants_offset}, m.inputs / 32, reinterpret_cast<float*>(scratch));
        float_panel<packing::f32, 1>(scratch, 0, m.inputs, x, out, 16 * p, m.outputs, row_first, row_last);
    }
}

static void linear_float(const panels& m, const float* x, const linear_output& out, std::size_t first, std::size_t last,
                         std::size_t row_first, std::size_t row_last, std::byte* scratch) {
    switch (m.form) {
        case packing::f32: return float_panels<packing::f32>(m, x, out, first, last, row_first, row_last);
        case packing::f16: return float_panels<packing::f16>(m, x, out, first, last, row_first, row_last);
        case packing::bf16: return float_panels<packing::bf16>(m, x, out, first, last, row_first, row_last);
#define FERMATA_CASE(name) \
    case packing::name: return dequantised_panels<packing::name>(m, x, out, first, last, row_first, row_last, scratch)
        FERMATA_CASE(q8_0);
        FERMATA_CASE(q4_0);
        FERMATA_CASE(q4_1);
        FERMATA_CASE(q5_0);
        FERMATA_CASE(q5_1);
        FERMATA_CASE(q4_k);
        FERMATA_CASE(q5_k);
        FERMATA_CASE(q6_k);
#undef FERMATA_CASE
    }
}

}  // namespace fermata::cpu::FERMATA_LEVEL
