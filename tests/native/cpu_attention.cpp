// Attention over pages: every level gives the scalar twin's bits, the values are those of plain double, and neither the
// company of other queries nor the page size changes a bit.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "native/backend.hpp"
#include "native/weights/half.hpp"
#include "tests/native/cpu_levels.hpp"

using namespace fermata;
using namespace fermata::cpu;
using namespace fermata::test;

namespace {

struct cache {
    kv_shape shape;
    std::vector<std::byte> pool;
    std::vector<std::uint32_t> pages;
    std::vector<float> keys, values;  // tokens x width, as stored (rounded)

    cache(kv_dtype type, std::uint32_t page_tokens, std::uint32_t width, std::size_t tokens) {
        shape = {type, page_tokens, 1, 1, width};
        const std::size_t count = (tokens + page_tokens - 1) / page_tokens;
        pool.assign(count * shape.page_bytes(), std::byte{0xff});  // NaN wherever nothing was written
        for (std::size_t p = 0; p < count; ++p) pages.push_back(static_cast<std::uint32_t>(count - 1 - p));
        keys = normal_floats(tokens * width, 1.0f, 31);
        values = normal_floats(tokens * width, 1.0f, 32);
        for (std::size_t t = 0; t < tokens; ++t) {
            std::byte* page = pool.data() + pages[t / page_tokens] * shape.page_bytes();
            const std::size_t block = t % page_tokens / 16 * 16 * width * element_bytes(type);
            scalar_table().store_kv(static_cast<std::uint8_t>(type), keys.data() + t * width, values.data() + t * width,
                                    width, t % 16, page + block, page + shape.values_offset() + block);
        }
        auto rounded = [&](float v) {
            if (type == kv_dtype::f16) return f16_to_f32(f32_to_f16(v));
            return type == kv_dtype::bf16 ? bf16_to_f32(f32_to_bf16(v)) : v;
        };
        for (float& v : keys) v = rounded(v);
        for (float& v : values) v = rounded(v);
    }

    // Queries first .. first + count - 1 of `queries`, which sit at `positions`.
    std::vector<float> run(const kernel_table& k, const std::vector<float>& queries,
                           const std::vector<std::uint32_t>& positions, std::size_t first, std::size_t count) const {
        const std::size_t width = shape.head_width, stride = (width + 15) / 16 * 16;
        std::vector<float> out(count * width, -7.0f);
        std::vector<const float*> in;
        std::vector<float*> to;
        for (std::size_t q = 0; q < count; ++q) {
            in.push_back(queries.data() + (first + q) * width);
            to.push_back(out.data() + q * width);
        }
        const std::size_t score_stride = (positions[first + count - 1] / 16 + 1) * 16;
        aligned_floats scores(count * score_stride), block(32 * stride + count * (16 + stride));
        attention_item item{};
        item.query = in.data();
        item.out = to.data();
        item.position = positions.data() + first;
        item.queries = count;
        item.head_width = width;
        item.scale = 0.125f;
        item.kv_type = static_cast<std::uint8_t>(shape.type);
        item.element_bytes = element_bytes(shape.type);
        item.pool = pool.data();
        item.pages = pages.data();
        item.page_bytes = shape.page_bytes();
        item.page_tokens = shape.page_tokens;
        item.values_offset = shape.values_offset();
        item.scores = scores.data();
        item.score_stride = score_stride;
        item.block = block.data();
        k.attention(item);
        return out;
    }
};

}  // namespace

TEST_CASE("attention: every level, type, width and length; alone or in company; values of double") {
    for (const kv_dtype type : {kv_dtype::f32, kv_dtype::f16, kv_dtype::bf16})
        for (const std::uint32_t width : {8u, 64u, 72u, 80u, 128u}) {
            const std::size_t tokens = 75;
            const cache c(type, 32, width, tokens);
            std::vector<std::uint32_t> positions;
            // Several queries a position (heads that share keys), from the first token on, over a block's border, the end.
            for (const std::uint32_t p : {0u, 0u, 1u, 14u, 15u, 15u, 15u, 16u, 17u, 31u, 32u, 33u, 40u, 47u, 48u, 63u, 64u, 73u, 74u, 74u})
                positions.push_back(p);
            const auto queries = normal_floats(positions.size() * width, 1.0f, 33);
            const auto right = c.run(scalar_table(), queries, positions, 0, positions.size());
            for (const level& l : levels_here()) {
                INFO("level " << l.description << " width " << width);
                CHECK(same_bits(c.run(*l.table, queries, positions, 0, positions.size()), right));
                for (std::size_t q = 0; q < positions.size(); ++q) {  // alone
                    const auto one = c.run(*l.table, queries, positions, q, 1);
                    CHECK(std::memcmp(one.data(), right.data() + q * width, width * 4) == 0);
                }
                const auto some = c.run(*l.table, queries, positions, 3, 11);
                CHECK(std::memcmp(some.data(), right.data() + 3 * width, 11 * width * 4) == 0);
            }
            for (std::size_t q = 0; q < positions.size(); ++q) {
                std::vector<double> weight;
                double total = 0;
                for (std::uint32_t t = 0; t <= positions[q]; ++t) {
                    double dot = 0;
                    for (std::size_t i = 0; i < width; ++i)
                        dot += static_cast<double>(queries[q * width + i]) * static_cast<double>(c.keys[t * width + i]);
                    weight.push_back(std::exp(dot * 0.125));
                    total += weight.back();
                }
                for (std::size_t i = 0; i < width; ++i) {
                    double sum = 0;
                    for (std::size_t t = 0; t < weight.size(); ++t) sum += weight[t] / total * static_cast<double>(c.values[t * width + i]);
                    CHECK(std::abs(static_cast<double>(right[q * width + i]) - sum) < 3e-6);
                }
            }
        }
}

TEST_CASE("attention walks blocks of 16 keys whatever the page size") {
    const std::uint32_t width = 64;
    std::vector<std::uint32_t> positions = {100, 101, 102, 129};
    const auto queries = normal_floats(positions.size() * width, 1.0f, 34);
    const cache reference(kv_dtype::f16, 16, width, 130);
    const auto right = reference.run(scalar_table(), queries, positions, 0, 4);
    for (const std::uint32_t page_tokens : {32u, 64u, 128u}) {
        const cache c(kv_dtype::f16, page_tokens, width, 130);
        for (const level& l : levels_here()) CHECK(same_bits(c.run(*l.table, queries, positions, 0, 4), right));
    }
}
