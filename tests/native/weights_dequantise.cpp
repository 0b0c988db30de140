// Dequantisation against the values that the Python package `gguf` computes for the same blocks
// (tools/fixtures/dequant_fixtures.py).
#include <doctest/doctest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "native/weights/dequantise.hpp"
#include "tests/support/gguf_builder.hpp"
#include "tests/support/random_blocks.hpp"

using namespace fermata;
using namespace fermata::test_support;

namespace {

struct fixture {
    std::string name;
    std::string blocks;
    std::vector<float> values;
};

std::vector<fixture> read_fixtures() {
    const std::string bytes = read_file(FERMATA_SOURCE_DIR "/tests/native/fixtures/dequant.bin");
    std::vector<fixture> result;
    std::size_t at = 0;
    while (at < bytes.size()) {
        std::uint32_t block_bytes = 0, values = 0;
        fixture entry;
        entry.name = bytes.substr(at, 8).c_str();
        std::memcpy(&block_bytes, bytes.data() + at + 8, 4);
        std::memcpy(&values, bytes.data() + at + 12, 4);
        at += 16;
        entry.blocks = bytes.substr(at, block_bytes);
        at += block_bytes;
        entry.values.resize(values);
        std::memcpy(entry.values.data(), bytes.data() + at, values * sizeof(float));
        at += values * sizeof(float);
        result.push_back(std::move(entry));
    }
    return result;
}

std::span<const std::byte> as_span(const std::string& bytes) {
    return std::as_bytes(std::span(bytes.data(), bytes.size()));
}

}  // namespace

TEST_CASE("dequantise: every format gives the reference's values to the bit") {
    const auto fixtures = read_fixtures();
    CHECK(fixtures.size() == all_dtypes().size());
    for (const fixture& entry : fixtures) {
        CAPTURE(entry.name);
        const dtype type = dtype_of_name(entry.name);
        REQUIRE(entry.blocks.size() == row_bytes(type, entry.values.size()));
        std::vector<float> values(entry.values.size());
        dequantise(type, as_span(entry.blocks), values);
        CHECK(std::memcmp(values.data(), entry.values.data(), values.size() * sizeof(float)) == 0);
    }
}

TEST_CASE("dequantise: data may be unaligned") {
    for (const fixture& entry : read_fixtures()) {
        const std::string shifted = "x" + entry.blocks;
        std::vector<float> values(entry.values.size());
        dequantise(dtype_of_name(entry.name), as_span(shifted).subspan(1), values);
        CHECK(std::memcmp(values.data(), entry.values.data(), values.size() * sizeof(float)) == 0);
    }
}

TEST_CASE("dequantise: a row of a tensor is that row") {
    for (const fixture& entry : read_fixtures()) {
        const dtype type = dtype_of_name(entry.name);
        const tensor_view tensor{"t", type, 4, entry.values.size() / 4, as_span(entry.blocks)};
        std::vector<float> row(tensor.columns);
        dequantise_row(tensor, 2, row);
        CHECK(std::memcmp(row.data(), entry.values.data() + 2 * tensor.columns, row.size() * sizeof(float)) == 0);
    }
}

TEST_CASE("dequantise: a Q4_K block by hand") {
    // d = 1, dmin = 1; sub-block 0: scale 2, minimum 3; sub-block 7: scale 0x21 = 33, minimum 0x12 = 18.
    std::string block(144, '\0');
    block[1] = block[3] = 0x3c;  // 1.0 as f16
    block[4] = 2;
    block[8] = 3;
    block[4 + 3] = static_cast<char>((33 >> 4) << 6);       // top bits of scale 7
    block[8 + 3] = static_cast<char>((18 >> 4) << 6);       // top bits of minimum 7
    block[12 + 3] = static_cast<char>((33 & 15) | (18 & 15) << 4);
    block[16] = 0x05;                                       // element 0: 5; element 32 (sub-block 1, scale 0): 0
    block[16 + 96 + 31] = static_cast<char>(0xa0);          // last byte: element 255 = 10
    std::vector<float> values(256);
    dequantise(dtype::q4_k, as_span(block), values);
    CHECK(values[0] == 2.0f * 5 - 3);
    CHECK(values[1] == -3.0f);
    CHECK(values[32] == 0.0f);
    CHECK(values[255] == 33.0f * 10 - 18);
    CHECK(values[254] == -18.0f);
}
