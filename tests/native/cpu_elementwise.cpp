// Elementwise kernels: every level gives the scalar twin's bits, and the values are right against plain double.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "native/cpu/rotary.hpp"
#include "native/weights/half.hpp"
#include "tests/native/cpu_levels.hpp"

using namespace fermata;
using namespace fermata::cpu;
using namespace fermata::test;

namespace {

const std::size_t widths[] = {1, 5, 15, 16, 17, 31, 32, 40, 64, 80, 96, 128, 576, 577};

// Runs `call(table)` -> vector on every level and compares with the scalar one's.
template <class Call>
void all_levels_agree(Call&& call) {
    const auto expected = call(scalar_table());
    for (const level& l : levels_here()) {
        INFO("level " << l.description);
        CHECK(same_bits(call(*l.table), expected));
    }
}

}  // namespace

TEST_CASE("rms_norm: bits of the scalar twin, values of double") {
    for (const std::size_t width : widths) {
        const auto x = normal_floats(width, 2.0f, 1), scale = normal_floats(width, 1.0f, 2);
        auto call = [&](const kernel_table& k) {
            std::vector<float> out(width, -7.0f);
            k.rms_norm(x.data(), scale.data(), 1e-5f, width, out.data());
            return out;
        };
        all_levels_agree(call);
        double squares = 0;
        for (const float v : x) squares += static_cast<double>(v) * static_cast<double>(v);
        const double factor = 1 / std::sqrt(squares / static_cast<double>(width) + 1e-5);
        const auto out = call(scalar_table());
        for (std::size_t i = 0; i < width; ++i)
            CHECK(static_cast<double>(out[i]) == doctest::Approx(static_cast<double>(x[i]) * factor * static_cast<double>(scale[i])).epsilon(2e-6));
    }
}

TEST_CASE("rms_norm writes no further than its width") {
    const auto x = normal_floats(48, 1, 3);
    for (const level& l : levels_here()) {
        std::vector<float> out(48, -7.0f);
        l.table->rms_norm(x.data(), x.data(), 1e-5f, 21, out.data());
        CHECK(out[21] == -7.0f);
    }
}

TEST_CASE("exp: exactly 1 at 0, zero far below, NaN kept, 2 ulp of double between") {
    std::vector<float> x = {0.0f, -0.0f, -86.9f, -87.5f, -1000.0f, 88.0f, 1000.0f, -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::infinity(), 1e-20f, -1e-20f};
    for (int i = 0; i < 20000; ++i) x.push_back(-86.0f + 0.0085f * static_cast<float>(i));
    auto call = [&](const kernel_table& k) {
        std::vector<float> out(x.size());
        k.exponential(x.data(), x.size(), out.data());
        return out;
    };
    all_levels_agree(call);
    const auto out = call(scalar_table());
    CHECK(out[0] == 1.0f);
    CHECK(out[1] == 1.0f);
    CHECK(out[3] == 0.0f);
    CHECK(out[4] == 0.0f);
    CHECK(out[6] == out[5]);  // capped at exp(88)
    CHECK(out[7] == 0.0f);
    for (std::size_t i = 11; i < x.size(); ++i) {
        if (x[i] > 88.0f) continue;
        const double right = std::exp(static_cast<double>(x[i]));
        CHECK(std::abs(static_cast<double>(out[i]) - right) <= 2.4e-7 * right);
    }
    float nan = std::numeric_limits<float>::quiet_NaN(), result = 0;
    for (const level& l : levels_here()) {
        l.table->exponential(&nan, 1, &result);
        CHECK(std::isnan(result));
    }
}

TEST_CASE("silu times up") {
    for (const std::size_t width : widths) {
        const auto gate = normal_floats(width, 8.0f, 4), up = normal_floats(width, 1.0f, 5);
        auto call = [&](const kernel_table& k) {
            std::vector<float> out(width);
            k.silu_multiply(gate.data(), up.data(), width, out.data());
            return out;
        };
        all_levels_agree(call);
        const auto out = call(scalar_table());
        for (std::size_t i = 0; i < width; ++i) {
            const double g = static_cast<double>(gate[i]);
            CHECK(static_cast<double>(out[i]) == doctest::Approx(g / (1 + std::exp(-g)) * static_cast<double>(up[i])).epsilon(1e-6));
        }
    }
    // Far out on both sides nothing overflows.
    const std::vector<float> far = {-1e30f, -200.0f, 200.0f, 1e30f}, one = {1, 1, 1, 1};
    all_levels_agree([&](const kernel_table& k) {
        std::vector<float> out(4);
        k.silu_multiply(far.data(), one.data(), 4, out.data());
        CHECK(std::abs(out[1]) < 1e-30f);
        CHECK(out[2] == 200.0f);
        CHECK(out[3] == 1e30f);
        return out;
    });
}

TEST_CASE("rotate: pairs i and i + half turn by their angle") {
    for (const std::size_t half : {std::size_t{1}, std::size_t{4}, std::size_t{16}, std::size_t{20}, std::size_t{32}, std::size_t{40}, std::size_t{64}}) {
        const auto x = normal_floats(2 * half + 3, 1.0f, 6);
        std::vector<float> c(half), s(half);
        for (std::size_t i = 0; i < half; ++i) sine_cosine(0.37 * static_cast<double>(i + 1), s[i], c[i]);
        auto call = [&](const kernel_table& k) {
            std::vector<float> out = x;
            k.rotate(out.data(), c.data(), s.data(), half);
            return out;
        };
        all_levels_agree(call);
        const auto out = call(scalar_table());
        for (std::size_t i = 0; i < half; ++i) {
            const double angle = 0.37 * static_cast<double>(i + 1), a = static_cast<double>(x[i]), b = static_cast<double>(x[half + i]);
            CHECK(std::abs(static_cast<double>(out[i]) - (a * std::cos(angle) - b * std::sin(angle))) < 1e-6);
            CHECK(std::abs(static_cast<double>(out[half + i]) - (b * std::cos(angle) + a * std::sin(angle))) < 1e-6);
        }
        for (std::size_t i = 2 * half; i < x.size(); ++i) CHECK(out[i] == x[i]);
    }
}

TEST_CASE("sine and cosine: those of the C library, rounded, up to a million radians") {
    int off = 0;
    for (int i = 0; i < 40000; ++i) {
        const auto x = static_cast<double>(static_cast<float>(i < 20000 ? i * 0.01 : (i - 20000) * 52.3));
        float s, c;
        sine_cosine(x, s, c);
        if (s != static_cast<float>(std::sin(x)) || c != static_cast<float>(std::cos(x))) ++off;
        CHECK(std::abs(static_cast<double>(s) - std::sin(x)) < 1e-7);
        CHECK(std::abs(static_cast<double>(c) - std::cos(x)) < 1e-7);
    }
    CHECK(off <= 2);
}

TEST_CASE("quantise: nearest integers, sums, and what isn't finite") {
    const std::size_t inputs = 32 * 6;
    auto x = normal_floats(inputs, 3.0f, 7);
    for (std::size_t i = 32; i < 64; ++i) x[i] = 0.0f;                                   // an empty block
    for (std::size_t i = 64; i < 96; ++i) x[i] = (i % 2 == 0 ? 0.5f : 127.0f) * 1e-3f;   // ties
    x[96 + 5] = std::numeric_limits<float>::infinity();
    x[128 + 7] = std::numeric_limits<float>::quiet_NaN();
    for (std::size_t i = 160; i < 192; ++i) x[i] = 1e-38f;                               // vanishes
    struct result {
        std::vector<std::int8_t> q;
        std::vector<float> scale, scaled;
        std::vector<std::int32_t> sum;
    };
    auto call = [&](const kernel_table& k) {
        result r{std::vector<std::int8_t>(inputs), std::vector<float>(6), std::vector<float>(6), std::vector<std::int32_t>(12)};
        k.quantise(x.data(), inputs, r.q.data(), r.scale.data(), r.scaled.data(), r.sum.data());
        return r;
    };
    const result right = call(scalar_table());
    for (const level& l : levels_here()) {
        INFO("level " << l.description);
        const result r = call(*l.table);
        CHECK(same_bits(r.q, right.q));
        CHECK(same_bits(r.scale, right.scale));
        CHECK(same_bits(r.sum, right.sum));
        for (const std::size_t b : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{5}}) CHECK(r.scaled[b] == right.scaled[b]);
    }
    for (std::size_t b : {std::size_t{0}, std::size_t{2}}) {
        float most = 0;
        int sum = 0;
        for (std::size_t i = 32 * b; i < 32 * b + 32; ++i) most = std::max(most, std::abs(x[i]));
        CHECK(right.scale[b] == doctest::Approx(most / 127));
        for (std::size_t i = 32 * b; i < 32 * b + 32; ++i) {
            CHECK(std::abs(static_cast<float>(right.q[i]) * right.scale[b] - x[i]) <= right.scale[b] * 0.5001f);
            sum += right.q[i];
        }
        CHECK(right.sum[2 * b] + right.sum[2 * b + 1] == sum);
    }
    CHECK(right.scale[1] == 0.0f);
    CHECK(std::isnan(right.scale[3]));
    CHECK(std::isnan(right.scale[4]));
    CHECK(right.q[96] == 0);
    CHECK(right.scale[5] == 0.0f);
}

TEST_CASE("keys and values: their places in a page, and the conversions to 16 bits") {
    const std::size_t width = 80, slot = 5;
    auto key = normal_floats(width, 1.0f, 8), value = normal_floats(width, 1.0f, 9);
    key[0] = 1e6f;    // beyond f16: saturates
    key[1] = -1e6f;
    key[2] = 3e-8f;   // the smallest subnormal of f16 is 6e-8: a tie's neighbourhood
    key[3] = 65519.0f;
    key[4] = 1.00048828125f;  // exactly between two halves: to even
    for (const std::uint8_t type : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{2}}) {
        const std::size_t element = type == 0 ? 4 : 2;
        auto call = [&](const kernel_table& k) {
            std::vector<std::byte> blocks(2 * 16 * width * element);
            k.store_kv(type, key.data(), value.data(), width, slot, blocks.data(), blocks.data() + 16 * width * element);
            return blocks;
        };
        all_levels_agree(call);
        const auto blocks = call(scalar_table());
        for (std::size_t i = 0; i < width; ++i) {
            const std::byte* k = blocks.data() + (16 * i + slot) * element;
            const std::byte* v = blocks.data() + (16 * width + slot * width + i) * element;
            if (type == 0) {
                CHECK(std::memcmp(k, &key[i], 4) == 0);
                CHECK(std::memcmp(v, &value[i], 4) == 0);
                continue;
            }
            std::uint16_t hk, hv;
            std::memcpy(&hk, k, 2);
            std::memcpy(&hv, v, 2);
            if (type == 1) {
                const float capped = std::min(65504.0f, std::max(-65504.0f, key[i]));
                CHECK(hk == f32_to_f16(capped));
                CHECK(hv == f32_to_f16(value[i]));
            } else {
                CHECK(hk == f32_to_bf16(key[i]));
                CHECK(hv == f32_to_bf16(value[i]));
            }
        }
    }
}
