// Causal attention over paged keys and values, in blocks of 16 keys at positions 16 b, whatever the page size.
//
// Scores: lanes are keys; 16 partial sums over the dimensions (i mod 16), then the tree 8-4-2-1. The softmax takes the
// exact maximum first; its sum runs over 16 partial sums (key mod 16) and the tree. Weighted sums of values: lanes are
// dimensions, keys ascending. A query never reads a value beyond its own position; keys beyond it are computed in
// lanes that are then masked.
#pragma once

namespace fermata::cpu::FERMATA_LEVEL {

template <std::uint8_t type>
FERMATA_INLINE f32x16 load_kv(const std::byte* base, std::size_t index) {
    if constexpr (type == 0) return load(reinterpret_cast<const float*>(base) + index);
    if constexpr (type == 1) return load_f16(reinterpret_cast<const std::uint16_t*>(base) + index);
    if constexpr (type == 2) return load_bf16(reinterpret_cast<const std::uint16_t*>(base) + index);
}

// 16 values of a 16-bit type; f16 saturates at its largest finite value.
template <std::uint8_t type>
FERMATA_INLINE void narrow(f32x16 v, std::uint16_t (&to)[16]) {
    if constexpr (type == 1)
        store_f16(to, minimum(broadcast(65504.0f), maximum(broadcast(-65504.0f), v)));
    else
        store_bf16(to, v);
}

template <std::uint8_t type>
static void store_kv_as(const float* key, const float* value, std::size_t width, std::size_t slot, std::byte* key_block,
                        std::byte* value_block) {
    if constexpr (type == 0) {
        float* k = reinterpret_cast<float*>(key_block) + slot;
        float* v = reinterpret_cast<float*>(value_block) + slot * width;
        for (std::size_t i = 0; i < width; ++i) {
            k[16 * i] = key[i];
            v[i] = value[i];
        }
    } else {
        std::uint16_t* k = reinterpret_cast<std::uint16_t*>(key_block) + slot;
        std::uint16_t* v = reinterpret_cast<std::uint16_t*>(value_block) + slot * width;
        for (std::size_t i = 0; i < width; i += 16) {
            const std::size_t n = width - i < 16 ? width - i : 16;
            std::uint16_t narrow_key[16], narrow_value[16];
            narrow<type>(load_first(key + i, n), narrow_key);
            narrow<type>(load_first(value + i, n), narrow_value);
            for (std::size_t l = 0; l < n; ++l) {
                k[16 * (i + l)] = narrow_key[l];
                v[i + l] = narrow_value[l];
            }
        }
    }
}

static void store_kv(std::uint8_t type, const float* key, const float* value, std::size_t width, std::size_t slot,
                     std::byte* key_block, std::byte* value_block) {
    if (type == 0) return store_kv_as<0>(key, value, width, slot, key_block, value_block);
    if (type == 1) return store_kv_as<1>(key, value, width, slot, key_block, value_block);
    return store_kv_as<2>(key, value, width, slot, key_block, value_block);
}

// Partial sum j of the scores of `count` queries over `blocks` blocks of keys: dimensions j, j + 16, ...
// `fixed`: the width where it is known at compile time, else 0.
template <std::uint8_t type, int count, int blocks, int fixed>
FERMATA_INLINE void partial_scores(const std::byte* const (&keys)[blocks], const float* const* query, std::size_t width,
                                   std::size_t j, f32x16 (&s)[blocks][count]) {
#pragma GCC unroll 2
    for (int b = 0; b < blocks; ++b)
#pragma GCC unroll 4
        for (int q = 0; q < count; ++q) s[b][q] = zero();
    const std::size_t end = fixed != 0 ? static_cast<std::size_t>(fixed) : width;
#pragma GCC unroll 4
    for (std::size_t i = j; i < end; i += 16) {
        f32x16 k[blocks];
#pragma GCC unroll 2
        for (int b = 0; b < blocks; ++b) k[b] = load_kv<type>(keys[b], 16 * i);
#pragma GCC unroll 4
        for (int q = 0; q < count; ++q) {
            const f32x16 x = broadcast(query[q][i]);
#pragma GCC unroll 2
            for (int b = 0; b < blocks; ++b) s[b][q] = fma(k[b], x, s[b][q]);
        }
    }
}

// The sum of partial sums j, j + step, j + 2 step, ...: the tree's node.
template <std::uint8_t type, int count, int blocks, int fixed, int step>
FERMATA_INLINE void tree_scores(const std::byte* const (&keys)[blocks], const float* const* query, std::size_t width,
                                std::size_t j, f32x16 (&s)[blocks][count]) {
    if constexpr (step == 16) {
        partial_scores<type, count, blocks, fixed>(keys, query, width, j, s);
    } else {
        f32x16 other[blocks][count];
        tree_scores<type, count, blocks, fixed, 2 * step>(keys, query, width, j, s);
        tree_scores<type, count, blocks, fixed, 2 * step>(keys, query, width, j + step, other);
#pragma GCC unroll 2
        for (int b = 0; b < blocks; ++b)
#pragma GCC unroll 4
            for (int q = 0; q < count; ++q) s[b][q] = add(s[b][q], other[b][q]);
    }
}

// Scores of `count` queries from `query` on over blocks block .. block + blocks - 1.
template <std::uint8_t type, int count, int blocks, int fixed>
static void block_scores(const attention_item& it, const std::byte* const (&keys)[blocks], std::size_t block,
                         std::size_t query, float* tops) {
    f32x16 s[blocks][count];
    const float* in[count];
#pragma GCC unroll 4
    for (int q = 0; q < count; ++q) in[q] = it.query[query + static_cast<std::size_t>(q)];
    tree_scores<type, count, blocks, fixed, 1>(keys, in, it.head_width, 0, s);
#pragma GCC unroll 4
    for (int q = 0; q < count; ++q) {
        const std::size_t index = query + static_cast<std::size_t>(q);
        f32x16 top = load(tops + 16 * index);
#pragma GCC unroll 2
        for (int b = 0; b < blocks; ++b) {
            const std::size_t first = 16 * (block + static_cast<std::size_t>(b)), end = it.position[index] + std::size_t{1};
            f32x16 scaled = multiply(s[b][q], broadcast(it.scale));
            if (end < first + 16) scaled = keep_first(scaled, end > first ? end - first : 0, -__builtin_inff());
            store(it.scores + index * it.score_stride + first, scaled);
            top = maximum(scaled, top);
        }
        store(tops + 16 * index, top);
    }
}

template <std::uint8_t type, int count, int blocks, int fixed>
static void scores_from(const attention_item& it, const std::byte* const (&keys)[blocks], std::size_t block,
                        std::size_t query, float* tops) {
    for (; query + count <= it.queries; query += count)
        block_scores<type, count, blocks, fixed>(it, keys, block, query, tops);
    if constexpr (count > 1) scores_from<type, count - 1, blocks, fixed>(it, keys, block, query, tops);
}

template <std::uint8_t type, int blocks>
static void scores_of(const attention_item& it, const std::byte* const (&keys)[blocks], std::size_t block,
                      std::size_t query, float* tops) {
    if (it.head_width == 64) return scores_from<type, query_tile, blocks, 64>(it, keys, block, query, tops);
    scores_from<type, query_tile, blocks, 0>(it, keys, block, query, tops);
}

// acc[q][..] += weight of key k * value k, for k ascending; `vectors` vectors of dimensions.
template <std::uint8_t type, int count, int vectors>
FERMATA_INLINE void block_values(const std::byte* values, std::size_t column, std::size_t value_stride, std::size_t keys,
                                 const float* weights, std::size_t weight_stride, float* acc, std::size_t stride) {
    f32x16 a[count][vectors];
#pragma GCC unroll 4
    for (int q = 0; q < count; ++q)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) a[q][v] = load(acc + static_cast<std::size_t>(q) * stride + 16 * v);
    for (std::size_t k = 0; k < keys; ++k) {
        f32x16 row[vectors];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
            row[v] = load_kv<type>(values, k * value_stride + column + 16 * static_cast<std::size_t>(v));
#pragma GCC unroll 4
        for (int q = 0; q < count; ++q) {
            const f32x16 weight = broadcast(weights[static_cast<std::size_t>(q) * weight_stride + k]);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; ++v) a[q][v] = fma(weight, row[v], a[q][v]);
        }
    }
#pragma GCC unroll 4
    for (int q = 0; q < count; ++q)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) store(acc + static_cast<std::size_t>(q) * stride + 16 * v, a[q][v]);
}

template <std::uint8_t type, int count>
static void block_values_all(const std::byte* values, std::size_t value_stride, std::size_t keys, const float* weights,
                             std::size_t weight_stride, float* acc, std::size_t stride) {
    std::size_t column = 0;
    for (; column + 64 <= stride; column += 64)
        block_values<type, count, 4>(values, column, value_stride, keys, weights, weight_stride, acc + column, stride);
    for (; column < stride; column += 16)
        block_values<type, count, 1>(values, column, value_stride, keys, weights, weight_stride, acc + column, stride);
}

// A block of keys as float32 [width][16]: where it lies for f32, else converted into scratch.
template <std::uint8_t type>
static const std::byte* widened_keys(const std::byte* data, std::size_t width, float* scratch) {
    if constexpr (type == 0) return data;
    for (std::size_t i = 0; i < width; ++i) store(scratch + 16 * i, load_kv<type>(data, 16 * i));
    return reinterpret_cast<const std::byte*>(scratch);
}

// A block of values as float32 [16][width rounded up to 16]; `keys` rows are read.
template <std::uint8_t type>
static const std::byte* widened_values(const std::byte* data, std::size_t width, std::size_t stride, std::size_t keys,
                                       float* scratch) {
    if (type == 0 && width == stride) return data;
    for (std::size_t k = 0; k < keys; ++k) {
        std::size_t i = 0;
        for (; i + 16 <= width; i += 16) store(scratch + k * stride + i, load_kv<type>(data, k * width + i));
        if (i < width) {
            constexpr std::size_t element = type == 0 ? 4 : 2;
            alignas(64) std::byte tail[64] = {};
            __builtin_memcpy(tail, data + (k * width + i) * element, (width - i) * element);
            store(scratch + k * stride + i, load_kv<type>(tail, 0));
        }
    }
    return reinterpret_cast<const std::byte*>(scratch);
}

FERMATA_INLINE const std::byte* block_at(const attention_item& it, std::size_t block, std::size_t offset) {
    const std::size_t position = 16 * block, page = position / it.page_tokens, inside = position % it.page_tokens;
    return it.pool + it.pages[page] * it.page_bytes + offset + inside * it.head_width * it.element_bytes;
}

// Asks for a block before it is needed: pages lie far apart, so the hardware's own guess ends at every page.
FERMATA_INLINE void prefetch_block(const attention_item& it, std::size_t block, std::size_t blocks, std::size_t offset) {
    if (block >= blocks) return;
    const std::byte* data = block_at(it, block, offset);
    for (std::size_t at = 0; at < 16 * it.head_width * it.element_bytes; at += 64) __builtin_prefetch(data + at);
}

inline constexpr std::size_t blocks_ahead = 4;

// With few queries 16-bit keys and values are widened as they are used, else once a block into scratch.
FERMATA_INLINE bool few(const attention_item& it) { return it.queries <= query_tile; }

template <std::uint8_t type, int together>
static void scores_of_blocks(const attention_item& it, std::size_t block, std::size_t query, float* tops) {
    const std::byte* keys[together];
#pragma GCC unroll 2
    for (int b = 0; b < together; ++b) keys[b] = block_at(it, block + static_cast<std::size_t>(b), it.keys_offset);
    if (type == 0 || few(it)) return scores_of<type, together>(it, keys, block, query, tops);
#pragma GCC unroll 2
    for (int b = 0; b < together; ++b)
        keys[b] = widened_keys<type>(keys[b], it.head_width, it.block + static_cast<std::size_t>(b) * 16 * it.head_width);
    scores_of<0, together>(it, keys, block, query, tops);
}

template <std::uint8_t type>
static void all_scores(const attention_item& it, float* tops) {
    const std::size_t blocks = it.position[it.queries - 1] / 16 + 1;
    std::size_t from = 0;  // queries before it don't see the block
    std::size_t b = 0;
    for (std::size_t ahead = 0; ahead < blocks_ahead; ++ahead) prefetch_block(it, ahead, blocks, it.keys_offset);
    for (; b + key_blocks <= blocks; b += key_blocks) {
        for (std::size_t ahead = 0; ahead < key_blocks; ++ahead)
            prefetch_block(it, b + ahead + blocks_ahead, blocks, it.keys_offset);
        while (it.position[from] < 16 * b) ++from;
        scores_of_blocks<type, key_blocks>(it, b, from, tops);
    }
    for (; b < blocks; ++b) {
        while (it.position[from] < 16 * b) ++from;
        scores_of_blocks<type, 1>(it, b, from, tops);
    }
}

// Scores become exp(score - maximum); returns 1 / their sum.
static float softmax(float* scores, std::size_t blocks, float top) {
    f32x16 sums = zero();
    const f32x16 most = broadcast(top);
    for (std::size_t b = 0; b < blocks; ++b) {
        const f32x16 p = exponential(subtract(load(scores + 16 * b), most));
        store(scores + 16 * b, p);
        sums = add(sums, p);
    }
    return 1.0f / sum_tree(sums);
}

// The values of one block for queries from `query` on.
template <std::uint8_t type>
static void values_of_block(const attention_item& it, const std::byte* values, std::size_t value_stride,
                            std::size_t block, std::size_t query, float* acc, std::size_t stride) {
    const float* weights = it.scores + 16 * block;
    const std::size_t ws = it.score_stride;
    std::size_t q = query;
    for (; q < it.queries && it.position[q] + 1 - 16 * block < 16; ++q)
        block_values_all<type, 1>(values, value_stride, it.position[q] + 1 - 16 * block, weights + q * ws, ws,
                                  acc + q * stride, stride);
    for (; q + query_tile <= it.queries; q += query_tile)
        block_values_all<type, query_tile>(values, value_stride, 16, weights + q * ws, ws, acc + q * stride, stride);
    if constexpr (query_tile > 3)
        for (; q + 3 <= it.queries; q += 3)
            block_values_all<type, 3>(values, value_stride, 16, weights + q * ws, ws, acc + q * stride, stride);
    if constexpr (query_tile > 2)
        for (; q + 2 <= it.queries; q += 2)
            block_values_all<type, 2>(values, value_stride, 16, weights + q * ws, ws, acc + q * stride, stride);
    for (; q < it.queries; ++q)
        block_values_all<type, 1>(values, value_stride, 16, weights + q * ws, ws, acc + q * stride, stride);
}

template <std::uint8_t type>
static void all_values(const attention_item& it, std::size_t stride, float* acc) {
    const std::size_t blocks = it.position[it.queries - 1] / 16 + 1;
    const bool direct = few(it) && it.head_width == stride;
    std::size_t from = 0;
    for (std::size_t b = 0; b < blocks; ++b) {
        prefetch_block(it, b + blocks_ahead, blocks, it.values_offset);
        while (it.position[from] < 16 * b) ++from;
        const std::byte* data = block_at(it, b, it.values_offset);
        if (direct) {
            values_of_block<type>(it, data, stride, b, from, acc, stride);
            continue;
        }
        const std::size_t last = it.position[it.queries - 1] + std::size_t{1} - 16 * b;
        const std::byte* values = widened_values<type>(data, it.head_width, stride, last < 16 ? last : 16, it.block);
        values_of_block<0>(it, values, stride, b, from, acc, stride);
    }
}

template <std::uint8_t type>
static void attention_as(const attention_item& it) {
    const std::size_t stride = (it.head_width + 15) / 16 * 16;
    float* tops = it.block + 32 * stride;  // 16 floats a query, then the accumulators
    float* acc = tops + 16 * it.queries;
    for (std::size_t q = 0; q < it.queries; ++q) store(tops + 16 * q, broadcast(-__builtin_inff()));
    all_scores<type>(it, tops);
    const std::size_t blocks = it.position[it.queries - 1] / 16 + 1;
    for (std::size_t b = 0; b < blocks_ahead; ++b) prefetch_block(it, b, blocks, it.values_offset);
    for (std::size_t q = 0; q < it.queries; ++q)
        tops[16 * q] = softmax(it.scores + q * it.score_stride, it.position[q] / 16 + 1, largest(load(tops + 16 * q)));
    for (std::size_t i = 0; i < it.queries * stride; i += 16) store(acc + i, zero());
    all_values<type>(it, stride, acc);
    for (std::size_t q = 0; q < it.queries; ++q)
        for (std::size_t i = 0; i < it.head_width; i += 16)
            store_first(it.out[q] + i, multiply(load(acc + q * stride + i), broadcast(tops[16 * q])), it.head_width - i);
}

static void attention(const attention_item& it) {
    if (it.kv_type == 0) return attention_as<0>(it);
    if (it.kv_type == 1) return attention_as<1>(it);
    return attention_as<2>(it);
}

}  // namespace fermata::cpu::FERMATA_LEVEL
