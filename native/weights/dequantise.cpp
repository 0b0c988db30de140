#include "native/weights/dequantise.hpp"

#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>

#include "native/weights/half.hpp"

namespace fermata {
namespace {

static_assert(std::endian::native == std::endian::little, "model files are little-endian and read in place");

const std::uint8_t* as_bytes(const std::byte* data) { return reinterpret_cast<const std::uint8_t*>(data); }

template <typename T>
T load(const std::uint8_t* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

float half_at(const std::uint8_t* from) { return f16_to_f32(load<std::uint16_t>(from)); }

float signed_byte(std::uint8_t value) { return static_cast<float>(static_cast<std::int8_t>(value)); }

// 32 elements of 4 bits and a shared high bit each (0 for the 4-bit types): element i and i + 16 share a byte.
template <typename Store>
void for_each_nibble(const std::uint8_t* nibbles, std::uint32_t high_bits, Store store) {
    for (unsigned i = 0; i < 16; ++i) {
        store(i, static_cast<int>((nibbles[i] & 15u) | ((high_bits >> i & 1u) << 4)));
        store(i + 16, static_cast<int>(static_cast<unsigned>(nibbles[i] >> 4) | ((high_bits >> (i + 16) & 1u) << 4)));
    }
}

void decode_q8_0(const std::uint8_t* block, float* values) {
    const float scale = half_at(block);
    for (unsigned i = 0; i < 32; ++i) values[i] = scale * signed_byte(block[2 + i]);
}

void decode_q4_0(const std::uint8_t* block, float* values) {
    const float scale = half_at(block);
    for_each_nibble(block + 2, 0, [&](unsigned i, int q) { values[i] = scale * static_cast<float>(q - 8); });
}

void decode_q4_1(const std::uint8_t* block, float* values) {
    const float scale = half_at(block), minimum = half_at(block + 2);
    for_each_nibble(block + 4, 0, [&](unsigned i, int q) { values[i] = scale * static_cast<float>(q) + minimum; });
}

void decode_q5_0(const std::uint8_t* block, float* values) {
    const float scale = half_at(block);
    for_each_nibble(block + 6, load<std::uint32_t>(block + 2),
                    [&](unsigned i, int q) { values[i] = scale * static_cast<float>(q - 16); });
}

void decode_q5_1(const std::uint8_t* block, float* values) {
    const float scale = half_at(block), minimum = half_at(block + 2);
    for_each_nibble(block + 8, load<std::uint32_t>(block + 4),
                    [&](unsigned i, int q) { values[i] = scale * static_cast<float>(q) + minimum; });
}

// The 12 bytes of eight 6-bit scales and eight 6-bit minima: bytes 0..3 hold scales 0..3 in their low six bits,
// bytes 4..7 minima 0..3; bytes 8..11 hold the low four bits of scales (low nibble) and minima (high nibble) 4..7,
// whose upper two bits are the top bits of bytes 0..3 and 4..7.
struct scale_and_minimum {
    unsigned scale, minimum;
};

scale_and_minimum unpack_k(const std::uint8_t* packed, unsigned j) {
    if (j < 4) return {packed[j] & 63u, packed[j + 4] & 63u};
    return {(packed[j + 4] & 15u) | static_cast<unsigned>(packed[j - 4] >> 6) << 4,
            static_cast<unsigned>(packed[j + 4] >> 4) | static_cast<unsigned>(packed[j] >> 6) << 4};
}

// Q4_K and Q5_K: eight sub-blocks of 32; sub-blocks 2c and 2c + 1 are the low and high nibbles of 32 shared bytes.
// `high_bits` (Q5_K) has a byte per column whose bit j belongs to sub-block j; null for Q4_K.
void decode_k(const std::uint8_t* block, const std::uint8_t* high_bits, const std::uint8_t* nibbles, float* values) {
    const float scale = half_at(block), minimum = half_at(block + 2);
    for (unsigned j = 0; j < 8; ++j) {
        const auto packed = unpack_k(block + 4, j);
        const float sub_scale = scale * static_cast<float>(packed.scale);
        const float sub_minimum = minimum * static_cast<float>(packed.minimum);
        const std::uint8_t* const from = nibbles + std::size_t{j / 2} * 32;
        for (unsigned i = 0; i < 32; ++i) {
            unsigned q = (from[i] >> (4 * (j % 2))) & 15u;
            if (high_bits != nullptr) q |= (high_bits[i] >> j & 1u) << 4;
            values[j * 32 + i] = sub_scale * static_cast<float>(q) - sub_minimum;
        }
    }
}

// Q6_K: two halves of 128. In a half, 64 low bytes hold sub-rows 0, 1 (low nibbles) and 2, 3 (high nibbles) of 32;
// 32 high bytes hold two bits for each of the four sub-rows.
void decode_q6_k(const std::uint8_t* block, float* values) {
    const float scale = half_at(block + 208);
    for (unsigned half = 0; half < 2; ++half) {
        const std::uint8_t* const low = block + std::size_t{half} * 64;
        const std::uint8_t* const high = block + 128 + std::size_t{half} * 32;
        const std::uint8_t* const scales = block + 192 + std::size_t{half} * 8;
        for (unsigned i = 0; i < 128; ++i) {
            const unsigned row = i / 32, column = i % 32;
            const unsigned nibble = (low[(row % 2) * 32 + column] >> (4 * (row / 2))) & 15u;
            const unsigned top = (high[column] >> (2 * row)) & 3u;
            const int q = static_cast<int>(nibble | top << 4) - 32;
            values[half * 128 + i] = (scale * signed_byte(scales[i / 16])) * static_cast<float>(q);
        }
    }
}

void decode_block(dtype type, const std::uint8_t* block, float* values) {
    switch (type) {
        case dtype::f32: *values = load<float>(block); return;
        case dtype::f16: *values = half_at(block); return;
        case dtype::bf16: *values = bf16_to_f32(load<std::uint16_t>(block)); return;
        case dtype::q8_0: decode_q8_0(block, values); return;
        case dtype::q4_0: decode_q4_0(block, values); return;
        case dtype::q4_1: decode_q4_1(block, values); return;
        case dtype::q5_0: decode_q5_0(block, values); return;
        case dtype::q5_1: decode_q5_1(block, values); return;
        case dtype::q4_k: decode_k(block, nullptr, block + 16, values); return;
        case dtype::q5_k: decode_k(block, block + 16, block + 48, values); return;
        case dtype::q6_k: decode_q6_k(block, values); return;
    }
}

}  // namespace

void dequantise(dtype type, std::span<const std::byte> data, std::span<float> values) noexcept {
    const dtype_traits traits = traits_of(type);
    const std::size_t blocks = values.size() / traits.block_elements;
    assert(values.size() % traits.block_elements == 0 && data.size() >= blocks * traits.block_bytes);
    for (std::size_t b = 0; b < blocks; ++b)
        decode_block(type, as_bytes(data.data()) + b * traits.block_bytes, values.data() + b * traits.block_elements);
}

void dequantise_row(const tensor_view& tensor, std::size_t row, std::span<float> values) noexcept {
    assert(row < tensor.rows && values.size() == tensor.columns);
    const std::size_t bytes = row_bytes(tensor.type, tensor.columns);
    dequantise(tensor.type, tensor.data.subspan(row * bytes, bytes), values);
}

}  // namespace fermata
