// What a level (scalar, AVX2, AVX-512, NEON) provides: plain functions over plain pointers. One table a level; all
// tables compute the same bits. The sources of the levels are compiled for instruction sets that the machine may lack,
// so this header, which they include, holds no inline function and no template of the standard library: the linker
// could otherwise keep the wrong copy of it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fermata::cpu {

// How the 16 outputs of a panel are stored. Integer formats: value = scale * (q - offset) - or + minimum.
enum class packing : std::uint8_t { f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k, q6_k };

// A matrix in panels of 16 outputs. Float panels: [input][16]. Integer panels: first the scales of all blocks, then
// (at quants_offset) the quants of all blocks; see packed.hpp.
struct panels {
    packing form;
    std::size_t outputs;
    std::size_t inputs;
    std::size_t panel_bytes;
    std::size_t quants_offset;
    const std::byte* data;
};

// Activations of `rows` tokens in blocks of 32: q = round(x / scale), |q| <= 127.
struct quantised_rows {
    std::size_t rows;
    std::size_t inputs;           // a multiple of 32
    const std::int8_t* q;         // [rows][inputs]
    const float* scale;           // [rows][inputs / 32]
    const float* scaled_sum;      // [rows][inputs / 32]: scale * sum of q
    const std::int32_t* sum;      // [rows][inputs / 16]: sums of q over 16
};

struct linear_output {
    float* data;             // row r at data + r * stride, unless `rows` is set
    std::size_t stride;
    float* const* rows;      // null, or where each row goes
    const float* bias;       // null, or padded to a multiple of 16
    bool accumulate;
};

// One attention item: `queries` query vectors of one sequence that share a KV head.
struct attention_item {
    const float* const* query;        // each head_width floats
    float* const* out;                // each head_width floats
    const std::uint32_t* position;    // keys 0 .. position are seen; ascending
    std::size_t queries;
    std::size_t head_width;
    float scale;
    std::uint8_t kv_type;             // 0 f32, 1 f16, 2 bf16
    std::size_t element_bytes;
    const std::byte* pool;
    const std::uint32_t* pages;
    std::size_t page_bytes;
    std::size_t page_tokens;
    std::size_t keys_offset;          // of this layer and head, inside a page
    std::size_t values_offset;
    float* scores;                    // queries x score_stride floats of scratch
    std::size_t score_stride;         // >= (last position + 16) rounded down to 16
    float* block;                     // scratch: w (32 + queries) + 16 queries floats, w = head_width rounded up to 16
};

struct kernel_table {
    const char* name;
    std::size_t tile_rows;  // rows that a linear kernel handles at once at its best

    void (*rms_norm)(const float* x, const float* scale, float epsilon, std::size_t width, float* out);
    // rotated: x[i], x[i + half] by the angles' cosines and sines
    void (*rotate)(float* x, const float* cosine, const float* sine, std::size_t half);
    void (*silu_multiply)(const float* gate, const float* up, std::size_t count, float* out);
    void (*exponential)(const float* x, std::size_t count, float* out);
    // Blocks of 32 of one row.
    void (*quantise)(const float* x, std::size_t inputs, std::int8_t* q, float* scale, float* scaled_sum,
                     std::int32_t* sum);
    // Panels [first, last) for rows [row_first, row_last). scratch: inputs * 16 floats + 4 KiB, aligned to 64.
    void (*linear_quantised)(const panels& matrix, const quantised_rows& x, const linear_output& out, std::size_t first,
                             std::size_t last, std::size_t row_first, std::size_t row_last, std::byte* scratch);
    void (*linear_float)(const panels& matrix, const float* x, const linear_output& out, std::size_t first,
                         std::size_t last, std::size_t row_first, std::size_t row_last, std::byte* scratch);
    // One token's keys and values of one KV head into their places; slot = position in the block of 16.
    void (*store_kv)(std::uint8_t kv_type, const float* key, const float* value, std::size_t head_width,
                     std::size_t slot, std::byte* key_block, std::byte* value_block);
    void (*attention)(const attention_item& item);
};

const kernel_table& scalar_table() noexcept;
#if defined(__x86_64__)
const kernel_table& scalar_fma_table() noexcept;
const kernel_table& avx2_table() noexcept;
const kernel_table& avx512_table() noexcept;
const kernel_table& avx512_vnni_table() noexcept;
#elif defined(__aarch64__)
const kernel_table& neon_table() noexcept;
const kernel_table& neon_dot_table() noexcept;
#endif

}  // namespace fermata::cpu
