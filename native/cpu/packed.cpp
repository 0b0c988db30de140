#include "native/cpu/packed.hpp"

#include <cmath>
#include <cstring>

#include "native/weights/half.hpp"

namespace fermata::cpu {
namespace {

using u8 = std::uint8_t;

u8 byte_at(const std::byte* p, std::size_t i) noexcept { return std::to_integer<u8>(p[i]); }

std::uint16_t half_at(const std::byte* p) noexcept {
    std::uint16_t h;
    std::memcpy(&h, p, 2);
    return h;
}

bool finite_half(std::uint16_t h) noexcept { return (h & 0x7c00u) != 0x7c00u; }

// ---- blocks of the file, taken apart. q[] are the unsigned quants before the offset is taken off.

// Q4_0, Q4_1: 32 nibbles, the first half low.
void nibbles_of_32(const std::byte* p, u8* q) noexcept {
    for (std::size_t i = 0; i < 16; ++i) {
        q[i] = byte_at(p, i) & 15u;
        q[i + 16] = byte_at(p, i) >> 4;
    }
}

void add_fifth_bits(const std::byte* p, u8* q) noexcept {
    std::uint32_t h;
    std::memcpy(&h, p, 4);
    for (std::size_t i = 0; i < 32; ++i) q[i] = static_cast<u8>(q[i] | ((h >> i & 1u) << 4));
}

// The 6-bit scales and minima of Q4_K and Q5_K, eight each in 12 bytes.
void scales_of_k(const std::byte* p, u8* scale, u8* least) noexcept {
    for (std::size_t j = 0; j < 4; ++j) {
        scale[j] = byte_at(p, j) & 63u;
        least[j] = byte_at(p, j + 4) & 63u;
        scale[j + 4] = static_cast<u8>((byte_at(p, j + 8) & 15u) | (static_cast<unsigned>(byte_at(p, j)) >> 6 << 4));
        least[j + 4] = static_cast<u8>((byte_at(p, j + 8) >> 4) | (static_cast<unsigned>(byte_at(p, j + 4)) >> 6 << 4));
    }
}

// Q4_K and Q5_K: 64 elements in 32 bytes, the first 32 in the low nibbles; `high` (Q5_K) has bit g for sub-block g.
void quants_of_k(const std::byte* p, const std::byte* high, u8* q) noexcept {
    for (std::size_t g = 0; g < 8; ++g)
        for (std::size_t i = 0; i < 32; ++i) {
            const u8 pair = byte_at(p, g / 2 * 32 + i);
            const unsigned nibble = g % 2 == 0 ? pair & 15u : pair >> 4;
            const unsigned fifth = high == nullptr ? 0u : (byte_at(high, i) >> g & 1u) << 4;
            q[32 * g + i] = static_cast<u8>(nibble | fifth);
        }
}

// Q6_K: two halves of 128; in each, ql has 64 bytes and qh 32.
void quants_of_q6(const std::byte* low, const std::byte* high, u8* q) noexcept {
    for (std::size_t half = 0; half < 2; ++half)
        for (std::size_t g = 0; g < 4; ++g)
            for (std::size_t i = 0; i < 32; ++i) {
                const u8 pair = byte_at(low, 64 * half + (g % 2) * 32 + i);
                const unsigned nibble = g < 2 ? pair & 15u : pair >> 4;
                const unsigned top = byte_at(high, 32 * half + i) >> (2 * g) & 3u;
                q[128 * half + 32 * g + i] = static_cast<u8>(nibble | top << 4);
            }
}

// ---- placing

void set_half(std::byte* region, std::size_t lane, std::uint16_t h) noexcept { std::memcpy(region + 2 * lane, &h, 2); }

// The 32 quants of a block for one lane.
void place_quants(const integer_format& format, std::byte* block, std::size_t lane, const u8* q) noexcept {
    for (std::size_t j = 0; j < 8; ++j)
        for (std::size_t i = 0; i < 4; ++i) {
            const unsigned value = q[4 * j + i];
            const std::size_t at = 4 * lane + i;
            auto merge = [&](std::size_t where, unsigned bits) { block[where] |= static_cast<std::byte>(bits); };
            if (format.bits == 8) {
                merge(64 * j + at, value);
                continue;
            }
            merge(64 * (j % 4) + at, (value & 15u) << (j < 4 ? 0 : 4));
            if (format.bits == 5) merge(256 + at, (value >> 4) << j);
            if (format.bits == 6) merge(256 + 64 * (j / 4) + at, (value >> 4) << (2 * (j % 4)));
        }
}

u8 quant_at(const integer_format& format, const std::byte* block, std::size_t lane, std::size_t input) noexcept {
    const std::size_t j = input / 4, at = 4 * lane + input % 4;
    if (format.bits == 8) return byte_at(block, 64 * j + at);
    unsigned value = byte_at(block, 64 * (j % 4) + at) >> (j < 4 ? 0 : 4) & 15u;
    if (format.bits == 5) value |= (byte_at(block, 256 + at) >> j & 1u) << 4;
    if (format.bits == 6) value |= (byte_at(block, 256 + 64 * (j / 4) + at) >> (2 * (j % 4)) & 3u) << 4;
    return static_cast<u8>(value);
}

// One block of 32 of the formats with plain scales.
bool pack_plain(dtype type, const std::byte* source, const integer_format& format, std::byte* scales, std::byte* quants,
                std::size_t lane) noexcept {
    u8 q[32];
    const std::uint16_t d = half_at(source);
    bool finite = finite_half(d);
    set_half(scales, lane, d);
    if (format.minimum) {
        const std::uint16_t m = half_at(source + 2);
        finite = finite && finite_half(m);
        set_half(scales + 32, lane, m);
    }
    const std::byte* body = source + (format.minimum ? 4 : 2);
    if (type == dtype::q8_0) {
        for (std::size_t i = 0; i < 32; ++i) q[i] = static_cast<u8>(byte_at(body, i) ^ 0x80u);
    } else if (format.bits == 4) {
        nibbles_of_32(body, q);
    } else {
        nibbles_of_32(body + 4, q);
        add_fifth_bits(body, q);
    }
    place_quants(format, quants, lane, q);
    return finite;
}

// One super-block of 256.
bool pack_super(dtype type, const std::byte* source, const integer_format& format, std::byte* scales, std::byte* quants,
                std::size_t lane) noexcept {
    u8 q[256];
    bool finite = true;
    if (type == dtype::q6_k) {
        quants_of_q6(source, source + 128, q);
        const std::uint16_t d = half_at(source + 208);
        finite = finite_half(d);
        set_half(scales, lane, d);
        for (std::size_t s = 0; s < 16; ++s) scales[32 + 16 * s + lane] = source[192 + s];
    } else {
        u8 scale[8], least[8];
        const std::uint16_t d = half_at(source), m = half_at(source + 2);
        finite = finite_half(d) && finite_half(m);
        set_half(scales, lane, d);
        set_half(scales + 32, lane, static_cast<std::uint16_t>(m ^ 0x8000u));
        scales_of_k(source + 4, scale, least);
        for (std::size_t s = 0; s < 8; ++s) {
            scales[64 + 16 * s + lane] = static_cast<std::byte>(scale[s]);
            scales[192 + 16 * s + lane] = static_cast<std::byte>(least[s]);
        }
        const bool five = type == dtype::q5_k;
        quants_of_k(source + (five ? 48 : 16), five ? source + 16 : nullptr, q);
    }
    for (std::size_t b = 0; b < 8; ++b) place_quants(format, quants + b * format.quant_bytes, lane, q + 32 * b);
    return finite;
}

bool pack_integer_row(dtype type, const std::byte* row, std::size_t inputs, const integer_format& format,
                      std::byte* scales, std::byte* quants, std::size_t lane) noexcept {
    const dtype_traits traits = traits_of(type);
    const std::size_t blocks = inputs / traits.block_elements;
    const std::size_t quant_bytes = format.quant_bytes * (format.super ? 8 : 1);
    bool finite = true;
    for (std::size_t b = 0; b < blocks; ++b) {
        const auto pack = format.super ? pack_super : pack_plain;
        finite = pack(type, row + b * traits.block_bytes, format, scales + b * format.scale_bytes,
                      quants + b * quant_bytes, lane) && finite;
    }
    return finite;
}

template <class Word, class Finite>
bool pack_float_row(const std::byte* row, std::size_t inputs, std::byte* to, std::size_t lane, Finite finite) noexcept {
    bool all = true;
    for (std::size_t k = 0; k < inputs; ++k) {
        Word w;
        std::memcpy(&w, row + k * sizeof(Word), sizeof(Word));
        all = finite(w) && all;
        std::memcpy(to + (16 * k + lane) * sizeof(Word), &w, sizeof(Word));
    }
    return all;
}

float integer_value(const panels& layout, const integer_format& format, const std::byte* panel, std::size_t lane,
                    std::size_t input) noexcept {
    const std::size_t block = input / 32;
    const u8 raw = quant_at(format, panel + layout.quants_offset + block * format.quant_bytes, lane, input % 32);
    const float q = static_cast<float>(static_cast<int>(raw) - format.offset);
    const std::byte* s = panel + (format.super ? block / 8 : block) * format.scale_bytes;
    const float d = f16_to_f32(half_at(s + 2 * lane));
    if (!format.super) return format.minimum ? d * q + f16_to_f32(half_at(s + 32 + 2 * lane)) : d * q;
    if (format.halves == 2) {
        const auto scale = static_cast<std::int8_t>(byte_at(s, 32 + 16 * (input % 256 / 16) + lane));
        return d * static_cast<float>(scale) * q;
    }
    const float scale = d * static_cast<float>(byte_at(s, 64 + 16 * (block % 8) + lane));
    const float least = f16_to_f32(half_at(s + 32 + 2 * lane)) * static_cast<float>(byte_at(s, 192 + 16 * (block % 8) + lane));
    return scale * q + least;  // the product is exact: one rounding, as fused
}

}  // namespace

packing packing_of(dtype type) noexcept {
    switch (type) {
        case dtype::f32: return packing::f32;
        case dtype::f16: return packing::f16;
        case dtype::bf16: return packing::bf16;
        case dtype::q8_0: return packing::q8_0;
        case dtype::q4_0: return packing::q4_0;
        case dtype::q4_1: return packing::q4_1;
        case dtype::q5_0: return packing::q5_0;
        case dtype::q5_1: return packing::q5_1;
        case dtype::q4_k: return packing::q4_k;
        case dtype::q5_k: return packing::q5_k;
        case dtype::q6_k: return packing::q6_k;
    }
    return packing::f32;
}

const integer_format& integer_format_of(packing form) noexcept {
    switch (form) {
        case packing::q4_0: return format_of<packing::q4_0>;
        case packing::q4_1: return format_of<packing::q4_1>;
        case packing::q5_0: return format_of<packing::q5_0>;
        case packing::q5_1: return format_of<packing::q5_1>;
        case packing::q4_k: return format_of<packing::q4_k>;
        case packing::q5_k: return format_of<packing::q5_k>;
        case packing::q6_k: return format_of<packing::q6_k>;
        default: return format_of<packing::q8_0>;
    }
}

panel_size size_of_panel(packing form, std::size_t inputs) noexcept {
    if (!is_integer(form)) return {round_up(inputs * 16 * (form == packing::f32 ? 4 : 2), 64), 0};
    const integer_format& format = integer_format_of(form);
    const std::size_t blocks = inputs / 32;
    const std::size_t scales = round_up((format.super ? blocks / 8 : blocks) * format.scale_bytes, 64);
    return {scales + blocks * format.quant_bytes, scales};
}

bool pack_panel(const tensor_view& tensor, std::span<const std::uint32_t> row_order, const panels& layout,
                std::size_t panel, std::byte* to) noexcept {
    const dtype_traits traits = traits_of(tensor.type);
    const std::size_t row_size = tensor.columns / traits.block_elements * traits.block_bytes;
    bool finite = true;
    for (std::size_t lane = 0; lane < 16 && 16 * panel + lane < layout.outputs; ++lane) {
        const std::size_t output = 16 * panel + lane;
        const std::size_t source = row_order.empty() ? output : row_order[output];
        const std::byte* row = tensor.data.data() + source * row_size;
        switch (layout.form) {
            case packing::f32:
                finite = pack_float_row<std::uint32_t>(row, tensor.columns, to, lane, [](std::uint32_t w) {
                    return (w & 0x7f800000u) != 0x7f800000u; }) && finite;
                break;
            case packing::f16:
                finite = pack_float_row<std::uint16_t>(row, tensor.columns, to, lane, finite_half) && finite;
                break;
            case packing::bf16:
                finite = pack_float_row<std::uint16_t>(row, tensor.columns, to, lane, [](std::uint16_t w) {
                    return (w & 0x7f80u) != 0x7f80u; }) && finite;
                break;
            default:
                finite = pack_integer_row(tensor.type, row, tensor.columns, integer_format_of(layout.form), to,
                                          to + layout.quants_offset, lane) && finite;
        }
    }
    return finite;
}

void unpack_row(const panels& layout, std::size_t output, float* to) noexcept {
    const std::byte* panel = layout.data + output / 16 * layout.panel_bytes;
    const std::size_t lane = output % 16;
    for (std::size_t k = 0; k < layout.inputs; ++k) {
        const std::size_t at = 16 * k + lane;
        if (layout.form == packing::f32)
            std::memcpy(to + k, panel + 4 * at, 4);
        else if (layout.form == packing::f16)
            to[k] = f16_to_f32(half_at(panel + 2 * at));
        else if (layout.form == packing::bf16)
            to[k] = bf16_to_f32(half_at(panel + 2 * at));
        else
            to[k] = integer_value(layout, integer_format_of(layout.form), panel, lane, k);
    }
}

}  // namespace fermata::cpu
