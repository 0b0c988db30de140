#include "tests/support/random_blocks.hpp"

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "native/weights/half.hpp"

namespace fermata::test_support {
namespace {

void put_half(std::string& to, float value) {
    const std::uint16_t bits = f32_to_f16(value);
    to.push_back(static_cast<char>(bits & 255u));
    to.push_back(static_cast<char>(bits >> 8));
}

void put_random_bytes(std::string& to, std::size_t count, random_source& random) {
    for (std::size_t i = 0; i < count; ++i) to.push_back(static_cast<char>(random.below(256)));
}

// Integers spread evenly over 2^bits values have a standard deviation of 0.289 * 2^bits.
float scale_for(float deviation, unsigned bits, random_source& random) {
    return deviation / (0.289f * static_cast<float>(1u << bits)) * random.uniform(0.7f, 1.3f);
}

// Eight 6-bit scales and minima in 12 bytes; see the format notes in native/weights/dequantise.hpp.
void put_packed_scales(std::string& to, const std::uint32_t (&scales)[8], const std::uint32_t (&minima)[8]) {
    const auto put = [&](std::uint32_t value) { to.push_back(static_cast<char>(value & 255u)); };
    for (int j = 0; j < 4; ++j) put(scales[j] | (scales[j + 4] >> 4) << 6);
    for (int j = 0; j < 4; ++j) put(minima[j] | (minima[j + 4] >> 4) << 6);
    for (int j = 0; j < 4; ++j) put((scales[j + 4] & 15u) | (minima[j + 4] & 15u) << 4);
}

void put_k_block(std::string& to, unsigned bits, float deviation, random_source& random) {
    constexpr float mean_scale = 32;
    const float scale = scale_for(deviation, bits, random) / mean_scale;
    const float middle = (static_cast<float>(1u << bits) - 1) / 2;
    put_half(to, scale);
    put_half(to, scale * middle);  // with minima like the scales, values centre on zero
    std::uint32_t scales[8], minima[8];
    for (int j = 0; j < 8; ++j) {
        scales[j] = 8 + random.below(56);
        minima[j] = std::min<std::uint32_t>(63, scales[j] + random.below(3));
    }
    put_packed_scales(to, scales, minima);
    put_random_bytes(to, bits == 5 ? 32 + 128 : 128, random);
}

void put_q6_k_block(std::string& to, float deviation, random_source& random) {
    put_random_bytes(to, 128 + 64, random);
    for (int i = 0; i < 16; ++i) {
        const int magnitude = 8 + static_cast<int>(random.below(56));
        to.push_back(static_cast<char>(random.below(2) != 0 ? magnitude : -magnitude));
    }
    put_half(to, scale_for(deviation, 6, random) / 32);
}

void put_block(std::string& to, dtype type, float deviation, random_source& random) {
    const float sign = random.below(2) != 0 ? 1.0f : -1.0f;
    switch (type) {
        case dtype::f32: {
            const float value = random.uniform(-1.73f, 1.73f) * deviation;
            to.append(reinterpret_cast<const char*>(&value), sizeof value);
            return;
        }
        case dtype::f16: put_half(to, random.uniform(-1.73f, 1.73f) * deviation); return;
        case dtype::bf16: {
            const std::uint16_t bits = f32_to_bf16(random.uniform(-1.73f, 1.73f) * deviation);
            to.append(reinterpret_cast<const char*>(&bits), sizeof bits);
            return;
        }
        case dtype::q8_0:
            put_half(to, scale_for(deviation, 8, random));
            for (int i = 0; i < 32; ++i) to.push_back(static_cast<char>(static_cast<int>(random.below(255)) - 127));
            return;
        case dtype::q4_0:
            put_half(to, sign * scale_for(deviation, 4, random));
            put_random_bytes(to, 16, random);
            return;
        case dtype::q5_0:
            put_half(to, sign * scale_for(deviation, 5, random));
            put_random_bytes(to, 4 + 16, random);
            return;
        case dtype::q4_1:
        case dtype::q5_1: {
            const unsigned bits = type == dtype::q4_1 ? 4 : 5;
            const float scale = scale_for(deviation, bits, random);
            put_half(to, scale);
            put_half(to, -scale * (static_cast<float>(1u << bits) - 1) / 2);
            put_random_bytes(to, bits == 4 ? 16 : 4 + 16, random);
            return;
        }
        case dtype::q4_k: return put_k_block(to, 4, deviation, random);
        case dtype::q5_k: return put_k_block(to, 5, deviation, random);
        case dtype::q6_k: return put_q6_k_block(to, deviation, random);
    }
}

}  // namespace

std::uint64_t random_source::next() noexcept {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

std::uint32_t random_source::below(std::uint32_t bound) noexcept {
    return static_cast<std::uint32_t>((next() >> 32) * bound >> 32);
}

float random_source::uniform(float low, float high) noexcept {
    return low + (high - low) * (static_cast<float>(next() >> 40) / 16777216.0f);
}

std::string random_tensor(dtype type, std::size_t elements, float deviation, random_source& random) {
    const dtype_traits traits = traits_of(type);
    if (elements % traits.block_elements != 0)
        throw std::invalid_argument("rows should be multiples of " + std::to_string(traits.block_elements));
    std::string bytes;
    bytes.reserve(elements / traits.block_elements * traits.block_bytes);
    for (std::size_t i = 0; i < elements; i += traits.block_elements) put_block(bytes, type, deviation, random);
    return bytes;
}

std::string random_vector(std::size_t elements, float center, float spread, random_source& random) {
    std::string bytes;
    for (std::size_t i = 0; i < elements; ++i) {
        const float value = random.uniform(center - spread, center + spread);
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    return bytes;
}

std::uint32_t gguf_type_number(dtype type) noexcept {
    switch (type) {
        case dtype::f32: return 0;
        case dtype::f16: return 1;
        case dtype::q4_0: return 2;
        case dtype::q4_1: return 3;
        case dtype::q5_0: return 6;
        case dtype::q5_1: return 7;
        case dtype::q8_0: return 8;
        case dtype::q4_k: return 12;
        case dtype::q5_k: return 13;
        case dtype::q6_k: return 14;
        case dtype::bf16: return 30;
    }
    return 0;
}

const std::vector<dtype>& all_dtypes() {
    static const std::vector<dtype> all = {dtype::f32,  dtype::f16,  dtype::bf16, dtype::q8_0, dtype::q4_0, dtype::q4_1,
                                           dtype::q5_0, dtype::q5_1, dtype::q4_k, dtype::q5_k, dtype::q6_k};
    return all;
}

dtype dtype_of_name(std::string_view name) {
    std::string upper(name);
    std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    for (const dtype type : all_dtypes())
        if (traits_of(type).name == upper) return type;
    throw std::invalid_argument("no weight format is called " + std::string(name));
}

}  // namespace fermata::test_support
