// Prints one digest of every kernel's results on fixed inputs, for each level of the machine it runs on: two machines
// (or an emulator) agree to the bit when their lines do. tools/check_neon.sh compares AArch64 with x86 by it.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "native/backend.hpp"
#include "native/cpu/packed.hpp"
#include "native/cpu/rotary.hpp"
#include "tests/native/cpu_levels.hpp"
#include "tests/support/random_blocks.hpp"

using namespace fermata;
using namespace fermata::cpu;
using namespace fermata::test;

namespace {

class digest {
public:
    template <class T>
    void add(const std::vector<T>& values) {
        const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
        for (std::size_t i = 0; i < values.size() * sizeof(T); ++i) state_ = (state_ ^ bytes[i]) * 1099511628211ull;
    }
    unsigned long long value() const { return state_; }

private:
    unsigned long long state_ = 14695981039346656037ull;
};

void elementwise(const kernel_table& k, digest& d) {
    for (const std::size_t width : {5, 16, 40, 64, 577}) {
        const auto x = normal_floats(width, 3.0f, 1), y = normal_floats(width, 1.0f, 2);
        std::vector<float> out(width);
        k.rms_norm(x.data(), y.data(), 1e-5f, width, out.data());
        d.add(out);
        k.silu_multiply(x.data(), y.data(), width, out.data());
        d.add(out);
        k.exponential(x.data(), width, out.data());
        d.add(out);
        std::vector<float> c(width / 2), s(width / 2), turned = x;
        for (std::size_t i = 0; i < width / 2; ++i) sine_cosine(1.7 * static_cast<double>(i), s[i], c[i]);
        k.rotate(turned.data(), c.data(), s.data(), width / 2);
        d.add(turned);
    }
}

void linear(const kernel_table& k, digest& d) {
    constexpr std::size_t outputs = 35, inputs = 512, rows = 21;
    const auto x = normal_floats(rows * inputs, 2.0f, 3);
    std::vector<std::int8_t> q(rows * inputs);
    std::vector<float> scale(rows * inputs / 32), scaled(rows * inputs / 32);
    std::vector<std::int32_t> sums(rows * inputs / 16);
    for (std::size_t r = 0; r < rows; ++r)
        k.quantise(x.data() + r * inputs, inputs, q.data() + r * inputs, scale.data() + r * inputs / 32,
                   scaled.data() + r * inputs / 32, sums.data() + r * inputs / 16);
    d.add(q);
    d.add(scale);
    d.add(scaled);
    d.add(sums);
    const quantised_rows in{rows, inputs, q.data(), scale.data(), scaled.data(), sums.data()};
    for (const dtype type : test_support::all_dtypes()) {
        test_support::random_source random(4);
        const std::string bytes = test_support::random_tensor(type, outputs * inputs, 0.5f, random);
        panels layout{packing_of(type), outputs, inputs, 0, 0, nullptr};
        const panel_size size = size_of_panel(layout.form, inputs);
        layout.panel_bytes = size.bytes;
        layout.quants_offset = size.quants_offset;
        std::vector<std::byte> packed(3 * size.bytes);
        for (std::size_t p = 0; p < 3; ++p)
            pack_panel({"t", type, outputs, inputs, std::as_bytes(std::span(bytes))}, {}, layout, p, packed.data() + p * size.bytes);
        layout.data = packed.data();
        aligned_floats scratch(inputs * 16 + 1024);
        std::vector<float> out(rows * outputs);
        const linear_output to{out.data(), outputs, nullptr, nullptr, false};
        k.linear_float(layout, x.data(), to, 0, 3, 0, rows, scratch.bytes());
        d.add(out);
        if (!traits_of(type).quantised) continue;
        k.linear_quantised(layout, in, to, 0, 3, 0, rows, scratch.bytes());
        d.add(out);
    }
}

void attention(const kernel_table& k, digest& d) {
    for (const kv_dtype type : {kv_dtype::f32, kv_dtype::f16, kv_dtype::bf16})
        for (const std::uint32_t width : {64u, 72u, 128u}) {
            constexpr std::size_t tokens = 75, queries = 9;
            const kv_shape shape{type, 32, 1, 1, width};
            std::vector<std::byte> pool(3 * shape.page_bytes());
            const auto keys = normal_floats(tokens * width, 1.0f, 5), values = normal_floats(tokens * width, 1.0f, 6);
            for (std::size_t t = 0; t < tokens; ++t) {
                std::byte* page = pool.data() + t / 32 * shape.page_bytes();
                const std::size_t block = t % 32 / 16 * 16 * width * element_bytes(type);
                k.store_kv(static_cast<std::uint8_t>(type), keys.data() + t * width, values.data() + t * width, width,
                           t % 16, page + block, page + shape.values_offset() + block);
            }
            d.add(pool);
            const std::vector<std::uint32_t> pages = {0, 1, 2}, positions = {0, 3, 15, 16, 31, 40, 63, 64, 74};
            const auto in = normal_floats(queries * width, 1.0f, 7);
            std::vector<float> out(queries * width), scratch(64 * 1024);
            std::vector<const float*> from;
            std::vector<float*> to;
            for (std::size_t q = 0; q < queries; ++q) {
                from.push_back(in.data() + q * width);
                to.push_back(out.data() + q * width);
            }
            attention_item item{};
            item.query = from.data();
            item.out = to.data();
            item.position = positions.data();
            item.queries = queries;
            item.head_width = width;
            item.scale = 0.125f;
            item.kv_type = static_cast<std::uint8_t>(type);
            item.element_bytes = element_bytes(type);
            item.pool = pool.data();
            item.pages = pages.data();
            item.page_bytes = shape.page_bytes();
            item.page_tokens = 32;
            item.values_offset = shape.values_offset();
            item.scores = scratch.data();
            item.score_stride = 80;
            item.block = scratch.data() + queries * 80;
            k.attention(item);
            d.add(out);
        }
}

}  // namespace

int main() {
    for (const level& l : levels_here()) {
        digest first, second, third;
        elementwise(*l.table, first);
        linear(*l.table, second);
        attention(*l.table, third);
        std::printf("%016llx %016llx %016llx  %s\n", first.value(), second.value(), third.value(), l.description.c_str());
    }
    return 0;
}
