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

// Partial sum j of the scores of `count` queries: dimensions j, j + 16, ...
template <int count>
FERMATA_INLINE void partial_scores(const float* keys, const float* const* query, std::size_t width, std::size_t j,
                                   f32x16 (&s)[count]) {
#pragma GCC unroll 4
    for (int q = 0; q < count; ++q) s[q] = zero();
    for (std::size_t i = j; i < width; i += 16) {
        const f32x16 k = load(keys + 16 * i);
#pragma GCC unroll 4
        for (int q = 0; q < count; ++q) s[q] = fma(k, broadcast(query[q][i]), s[q]);
    }
}

// The sum of partial sums j, j + step, j + 2 step, ...: the tree's node.
template <int count, int step>
FERMATA_INLINE void tree_scores(const float* keys, const float* const* query, std::size_t width, std::size_t j,
                                f32x16 (&s)[count]) {
    if constexpr (step == 16) {
        partial_scores<count>(keys, query, width, j, s);
    } else {
        f32x16 other[count];
        tree_scores<count, 2 * step>(keys, query, width, j, s);
        tree_scores<count, 2 * step>(keys, query, width, j + step, other);
#pragma GCC unroll 4
        for (int q = 0; q < count; ++q) s[q] = add(s[q], other[q]);
    }
}

template <int count>
static void block_scores(const attention_item& it, const float* keys, std::size_t block, std::size_t query, float* tops) {
    f32x16 s[count];
    tree_scores<count, 1>(keys, it.query + query, it.head_width, 0, s);
#pragma GCC unroll 4
    for (int q = 0; q < count; ++q) {
        const std::size_t index = query + static_cast<std::size_t>(q);
        const std::size_t seen = it.position[index] + 1 - 16 * block;
        f32x16 scaled = multiply(s[q], broadcast(it.scale));
        if (seen < 16) scaled = keep_first(scaled, seen, -__builtin_inff());
        store(it.scores + index * it.score_stride + 16 * block, scaled);
        store(tops + 16 * index, maximum(scaled, load(tops + 16 * index)));
    }
}

// acc[q][..] += weight of key k * value k, for k ascending; `vectors` vectors of dimensions from `column` on.
template <int count, int vectors>
FERMATA_INLINE void block_values(const float* values, std::size_t stride, std::size_t keys, const float* weights,
                                 std::size_t weight_stride, float* acc) {
    f32x16 a[count][vectors];
#pragma GCC unroll 4
    for (int q = 0; q < count; ++q)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) a[q][v] = load(acc + static_cast<std::size_t>(q) * stride + 16 * v);
    for (std::size_t k = 0; k < keys; ++k) {
        f32x16 row[vectors];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) row[v] = load(values + k * stride + 16 * v);
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

template <int count>
static void block_values_all(const float* values, std::size_t stride, std::size_t keys, const float* weights,
                             std::size_t weight_stride, float* acc) {
    std::size_t column = 0;
    for (; column + 64 <= stride; column += 64)
        block_values<count, 4>(values + column, stride, keys, weights, weight_stride, acc + column);
    for (; column < stride; column += 16)
        block_values<count, 1>(values + column, stride, keys, weights, weight_stride, acc + column);
}

// A block of keys as float32 [width][16]: where it lies for f32, else converted into scratch.
template <std::uint8_t type>
static const float* key_block(const std::byte* data, std::size_t width, float* scratch) {
    if constexpr (type == 0) return reinterpret_cast<const float*>(data);
    for (std::size_t i = 0; i < width; ++i) store(scratch + 16 * i, load_kv<type>(data, 16 * i));
    return scratch;
}

// A block of values as float32 [16][width rounded up to 16]; `keys` rows are read.
template <std::uint8_t type>
static const float* value_block(const std::byte* data, std::size_t width, std::size_t stride, std::size_t keys,
                                float* scratch) {
    if (type == 0 && width == stride) return reinterpret_cast<const float*>(data);
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
    return scratch;
}

FERMATA_INLINE const std::byte* block_at(const attention_item& it, std::size_t block, std::size_t offset) {
    const std::size_t position = 16 * block, page = position / it.page_tokens, inside = position % it.page_tokens;
    return it.pool + it.pages[page] * it.page_bytes + offset + inside * it.head_width * it.element_bytes;
}

template <std::uint8_t type>
static void all_scores(const attention_item& it, float* tops) {
    const std::size_t blocks = it.position[it.queries - 1] / 16 + 1;
    std::size_t from = 0;  // queries before it don't see the block
    for (std::size_t b = 0; b < blocks; ++b) {
        while (it.position[from] < 16 * b) ++from;
        const float* keys = key_block<type>(block_at(it, b, it.keys_offset), it.head_width, it.block);
        std::size_t q = from;
        for (; q + query_tile <= it.queries; q += query_tile) block_scores<query_tile>(it, keys, b, q, tops);
        for (; q < it.queries; ++q) block_scores<1>(it, keys, b, q, tops);
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

template <std::uint8_t type>
static void all_values(const attention_item& it, std::size_t stride, float* acc) {
    const std::size_t blocks = it.position[it.queries - 1] / 16 + 1;
    std::size_t from = 0;
    for (std::size_t b = 0; b < blocks; ++b) {
        while (it.position[from] < 16 * b) ++from;
        const std::size_t last = it.position[it.queries - 1] + 1 - 16 * b;
        const std::size_t most = last < 16 ? last : 16;
        const float* values = value_block<type>(block_at(it, b, it.values_offset), it.head_width, stride, most, it.block);
        std::size_t q = from;
        for (; q < it.queries && it.position[q] + 1 - 16 * b < 16; ++q)
            block_values_all<1>(values, stride, it.position[q] + 1 - 16 * b, it.scores + q * it.score_stride + 16 * b,
                                it.score_stride, acc + q * stride);
        for (; q + query_tile <= it.queries; q += query_tile)
            block_values_all<query_tile>(values, stride, 16, it.scores + q * it.score_stride + 16 * b, it.score_stride,
                                acc + q * stride);
        for (; q < it.queries; ++q)
            block_values_all<1>(values, stride, 16, it.scores + q * it.score_stride + 16 * b, it.score_stride,
                                acc + q * stride);
    }
}

template <std::uint8_t type>
static void attention_as(const attention_item& it) {
    const std::size_t stride = (it.head_width + 15) / 16 * 16;
    float* tops = it.block + 16 * stride;  // 16 floats a query, then the accumulators
    float* acc = tops + 16 * it.queries;
    for (std::size_t q = 0; q < it.queries; ++q) store(tops + 16 * q, broadcast(-__builtin_inff()));
    all_scores<type>(it, tops);
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
