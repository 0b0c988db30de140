// Products with weights: all formats, odd sizes, any number of rows. Every level gives the scalar twin's bits; values
// are those of plain double over the reference dequantisation.
#include <doctest/doctest.h>

#include <cmath>

#include "native/cpu/packed.hpp"
#include "native/weights/dequantise.hpp"
#include "tests/native/cpu_levels.hpp"
#include "tests/support/random_blocks.hpp"

using namespace fermata;
using namespace fermata::cpu;
using namespace fermata::test;

namespace {

struct packed_case {
    std::string bytes;
    tensor_view view;
    std::vector<std::byte> storage;
    panels layout{};
    std::vector<float> values;  // outputs x inputs

    packed_case(dtype type, std::size_t outputs, std::size_t inputs, std::uint64_t seed,
                std::span<const std::uint32_t> order = {}) {
        test_support::random_source random(seed);
        bytes = test_support::random_tensor(type, outputs * inputs, 0.5f, random);
        view = {"t", type, outputs, inputs, std::as_bytes(std::span(bytes))};
        layout.form = packing_of(type);
        layout.outputs = outputs;
        layout.inputs = inputs;
        const panel_size size = size_of_panel(layout.form, inputs);
        layout.panel_bytes = size.bytes;
        layout.quants_offset = size.quants_offset;
        const std::size_t count = (outputs + 15) / 16;
        storage.resize(count * size.bytes);
        layout.data = storage.data();
        for (std::size_t p = 0; p < count; ++p) CHECK(pack_panel(view, order, layout, p, storage.data() + p * size.bytes));
        values.resize(outputs * inputs);
        for (std::size_t r = 0; r < outputs; ++r)
            dequantise_row(view, order.empty() ? r : order[r], std::span(values).subspan(r * inputs, inputs));
    }
};

struct quantised_case {
    std::vector<std::int8_t> q;
    std::vector<float> scale, scaled;
    std::vector<std::int32_t> sum;
    quantised_rows rows{};
    quantised_case(const std::vector<float>& x, std::size_t count, std::size_t inputs)
        : q(count * inputs), scale(count * inputs / 32), scaled(count * inputs / 32), sum(count * inputs / 16) {
        const std::size_t blocks = inputs / 32;
        for (std::size_t r = 0; r < count; ++r)
            scalar_table().quantise(x.data() + r * inputs, inputs, q.data() + r * inputs, scale.data() + r * blocks,
                                    scaled.data() + r * blocks, sum.data() + r * 2 * blocks);
        rows = {count, inputs, q.data(), scale.data(), scaled.data(), sum.data()};
    }
};

std::vector<float> run(const kernel_table& k, const packed_case& m, const quantised_case& x, const linear_output& how) {
    std::vector<float> out(x.rows.rows * m.layout.outputs, 0.25f);
    aligned_floats scratch(m.layout.inputs * 16 + 1024);
    linear_output to = how;
    to.data = out.data();
    to.stride = m.layout.outputs;
    k.linear_quantised(m.layout, x.rows, to, 0, (m.layout.outputs + 15) / 16, 0, x.rows.rows, scratch.bytes());
    return out;
}

std::vector<float> run(const kernel_table& k, const packed_case& m, const std::vector<float>& x, std::size_t rows) {
    std::vector<float> out(rows * m.layout.outputs, 0.25f);
    aligned_floats scratch(m.layout.inputs * 16 + 1024);
    const linear_output to{out.data(), m.layout.outputs, nullptr, nullptr, false};
    k.linear_float(m.layout, x.data(), to, 0, (m.layout.outputs + 15) / 16, 0, rows, scratch.bytes());
    return out;
}

}  // namespace

TEST_CASE("packing keeps every value, rows in the order asked for") {
    for (const dtype type : test_support::all_dtypes()) {
        INFO("type " << traits_of(type).name);
        std::vector<std::uint32_t> order;
        for (std::uint32_t i = 0; i < 37; ++i) order.push_back((i * 7) % 37);
        const packed_case m(type, 37, 512, 3, order);
        std::vector<float> row(512);
        for (std::size_t r = 0; r < 37; ++r) {
            unpack_row(m.layout, r, row.data());
            CHECK(std::memcmp(row.data(), m.values.data() + r * 512, 512 * 4) == 0);
        }
    }
}

TEST_CASE("packed weights take no more room than the file's, but for half a bit") {
    for (const dtype type : test_support::all_dtypes()) {
        const double bits = static_cast<double>(size_of_panel(packing_of(type), 4096).bytes) * 8 / (16 * 4096);
        const dtype_traits t = traits_of(type);
        CHECK(bits <= static_cast<double>(t.block_bytes) * 8 / static_cast<double>(t.block_elements) + 0.51);
    }
}

TEST_CASE("a scale or value that isn't finite is seen while packing") {
    for (const dtype type : test_support::all_dtypes()) {
        INFO("type " << traits_of(type).name);
        packed_case m(type, 3, 256, 5);
        std::string bytes = m.bytes;
        const std::size_t row = bytes.size() / 3;
        const bool q6 = type == dtype::q6_k;
        const std::size_t at = row + (q6 ? 208 : 0);
        if (type == dtype::f32) bytes.replace(at, 4, std::string("\x00\x00\xc0\x7f", 4));
        else if (type == dtype::bf16) bytes.replace(at, 2, std::string("\x80\x7f", 2));
        else bytes.replace(at, 2, std::string("\x00\x7c", 2));
        const tensor_view view{"t", type, 3, 256, std::as_bytes(std::span(bytes))};
        std::vector<std::byte> to(m.layout.panel_bytes);
        CHECK_FALSE(pack_panel(view, {}, m.layout, 0, to.data()));
    }
}

TEST_CASE("quantised products: bits of the scalar twin for every level, format and number of rows") {
    for (const dtype type : test_support::all_dtypes()) {
        if (!traits_of(type).quantised) continue;
        INFO("type " << traits_of(type).name);
        const std::size_t step = traits_of(type).block_elements;
        for (const std::size_t inputs : {step, 3 * step, std::size_t{512}}) {
            const packed_case m(type, 51, inputs, 11);
            const std::size_t most = 37;
            const auto x = normal_floats(most * inputs, 2.0f, 12);
            const auto bias = normal_floats(64, 1.0f, 13);
            const quantised_case all(x, most, inputs);
            const linear_output plain{nullptr, 0, nullptr, nullptr, false}, full{nullptr, 0, nullptr, bias.data(), true};
            const auto right = run(scalar_table(), m, all, plain), right_full = run(scalar_table(), m, all, full);
            for (const level& l : levels_here()) {
                INFO("level " << l.description);
                CHECK(same_bits(run(*l.table, m, all, plain), right));
                CHECK(same_bits(run(*l.table, m, all, full), right_full));
                for (const std::size_t rows : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 9U, 15U, 16U, 17U, 33U}) {
                    const quantised_case some(x, rows, inputs);
                    auto out = run(*l.table, m, some, plain);
                    out.resize(rows * 51);
                    CHECK(std::memcmp(out.data(), right.data(), out.size() * 4) == 0);
                }
            }
            // Double over the dequantised weights and activations.
            for (const std::size_t r : {std::size_t{0}, std::size_t{7}, most - 1})
                for (std::size_t o = 0; o < 51; ++o) {
                    double sum = 0, size = 0;
                    for (std::size_t k = 0; k < inputs; ++k) {
                        const double v = static_cast<double>(m.values[o * inputs + k]) * all.q[r * inputs + k] * static_cast<double>(all.scale[r * inputs / 32 + k / 32]);
                        sum += v;
                        size += std::abs(v);
                    }
                    CHECK(std::abs(static_cast<double>(right[r * 51 + o]) - sum) <= 1e-6 * size + 1e-6);
                }
        }
    }
}

TEST_CASE("extreme quants: no step of any level overflows") {
    // All quants of a block at their ends, activations at +-127.
    for (const dtype type : test_support::all_dtypes()) {
        const dtype_traits t = traits_of(type);
        if (!t.quantised) continue;
        for (const char fill : {'\xff', '\x00', '\x80', '\x7f'}) {
            std::string bytes(16 * 512 / t.block_elements * t.block_bytes, fill);
            const std::size_t d = type == dtype::q6_k ? 208 : 0;
            for (std::size_t b = 0; b < bytes.size(); b += t.block_bytes) {
                bytes.replace(b + d, 2, std::string("\x00\x3c", 2));  // 1.0
                if (type != dtype::q6_k && type != dtype::q8_0 && type != dtype::q4_0 && type != dtype::q5_0)
                    bytes.replace(b + 2, 2, std::string("\x00\x3c", 2));
            }
            packed_case m(type, 16, 512, 1);
            const tensor_view view{"t", type, 16, 512, std::as_bytes(std::span(bytes))};
            std::fill(m.storage.begin(), m.storage.end(), std::byte{0});
            REQUIRE(pack_panel(view, {}, m.layout, 0, m.storage.data()));
            for (const float sign : {1.0f, -1.0f}) {
                std::vector<float> x(9 * 512, sign);
                for (std::size_t i = 0; i < x.size(); i += 3) x[i] = -x[i];
                for (std::size_t i = 0; i < 512; ++i) x[i] = sign;  // all alike in the first row
                const quantised_case q(x, 9, 512);
                const linear_output plain{nullptr, 0, nullptr, nullptr, false};
                const auto right = run(scalar_table(), m, q, plain);
                double sum = 0;
                std::vector<float> row(512);
                dequantise_row(view, 0, row);
                for (const float v : row) sum += static_cast<double>(v * sign);
                CHECK(static_cast<double>(right[0]) == doctest::Approx(sum).epsilon(1e-5));
                for (const level& l : levels_here()) {
                    INFO("type " << t.name << " level " << l.description << " fill " << static_cast<int>(fill));
                    CHECK(same_bits(run(*l.table, m, q, plain), right));
                }
            }
        }
    }
}

TEST_CASE("float activations: bits of the scalar twin, values of double, all formats") {
    for (const dtype type : test_support::all_dtypes()) {
        INFO("type " << traits_of(type).name);
        const std::size_t inputs = traits_of(type).quantised ? 512 : 75;
        const packed_case m(type, 83, inputs, 21);
        const auto x = normal_floats(19 * inputs, 1.5f, 22);
        const auto right = run(scalar_table(), m, x, 19);
        for (const level& l : levels_here()) {
            INFO("level " << l.description);
            for (const std::size_t rows : {1U, 2U, 3U, 4U, 5U, 8U, 9U, 19U}) {
                const auto out = run(*l.table, m, x, rows);
                CHECK(std::memcmp(out.data(), right.data(), out.size() * 4) == 0);
            }
        }
        for (std::size_t r = 0; r < 19; r += 6)
            for (std::size_t o = 0; o < 83; ++o) {
                double sum = 0, size = 0;
                for (std::size_t k = 0; k < inputs; ++k) {
                    const double v = static_cast<double>(m.values[o * inputs + k]) * static_cast<double>(x[r * inputs + k]);
                    sum += v;
                    size += std::abs(v);
                }
                CHECK(std::abs(static_cast<double>(right[r * 83 + o]) - sum) <= 2e-6 * size);
            }
    }
}
