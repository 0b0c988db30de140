// Keys and values into their pages, and attention over them: how a unit's queries are cut into items.
#include <algorithm>

#include "native/cpu/engine.hpp"

namespace fermata::cpu {
namespace {

static_assert(sizeof(page_id) == sizeof(std::uint32_t));

// How many query heads of a group an item takes. Heads together read keys and values once (a head alone costs about
// 2.6 times what one more head does), heads apart keep more threads busy: the shortest longest thread wins.
std::size_t heads_together(std::size_t groups, std::size_t group, std::size_t most, std::size_t threads) {
    std::size_t best = most, best_cost = ~std::size_t{0};
    for (std::size_t heads = most; heads >= 1; --heads) {
        const std::size_t items = groups * ((group + heads - 1) / heads);
        const std::size_t cost = (items + threads - 1) / threads * (16 + 10 * heads);
        if (cost < best_cost) {
            best = heads;
            best_cost = cost;
        }
    }
    return best;
}

std::size_t element_size(kv_dtype type) { return element_bytes(type); }

}  // namespace

void engine::store_kv(const kv_shape& shape, std::uint32_t layer, std::byte* pool, const float* keys,
                      const float* values) {
    const std::size_t width = shape.head_width, element = element_size(shape.type), head_bytes = shape.head_bytes();
    const std::size_t layer_offset = layer * shape.layer_bytes();
    for (const sequence_rows& s : unit_.sequences) {
        // One item a row: a thread never writes a cache line's other half at the same byte, and rows are few or many.
        auto task = [&](std::size_t first, std::size_t last) {
            for (std::size_t r = first; r < last; ++r) {
                const std::size_t position = s.first_position + r;
                const std::size_t inside = position % shape.page_tokens, block = inside / 16, slot = inside % 16;
                std::byte* page = pool + s.pages[position / shape.page_tokens].value * shape.page_bytes() + layer_offset;
                for (std::size_t h = 0; h < shape.kv_heads; ++h) {
                    std::byte* head = page + h * head_bytes + block * 16 * width * element;
                    const std::size_t at = ((s.first_row + r) * shape.kv_heads + h) * width;
                    kernels_->store_kv(static_cast<std::uint8_t>(shape.type), keys + at, values + at, width, slot, head,
                                       head + shape.values_offset());
                }
            }
        };
        const std::size_t cost = shape.kv_heads * width * 8;
        if (s.count * cost < 65536 || pool_.threads() == 1) {
            task(0, s.count);
            continue;
        }
        // Pieces begin at blocks of 16 positions.
        const std::size_t lead = (16 - s.first_position % 16) % 16;
        const std::size_t pieces = (s.count + 15 - std::min(lead, s.count)) / 16 + (lead > 0 ? 1 : 0);
        pool_.run(pieces, [&](std::size_t piece, unsigned) {
            const std::size_t first = piece == 0 ? 0 : (lead > 0 ? lead + 16 * (piece - 1) : 16 * piece);
            const std::size_t next = lead > 0 ? lead + 16 * piece : 16 * (piece + 1);
            task(first, std::min(next, s.count));
        });
    }
}

struct engine::attention_plan {
    const kv_shape* shape;
    std::size_t layer_offset;
    const std::byte* pool;
    const float* queries;
    float* out;
    std::size_t query_heads;
    float scale;
    std::size_t group;             // query heads that share a KV head
    std::size_t heads_per_item;    // of one group
    std::size_t items_per_tile;    // kv heads times pieces of a group
    std::size_t tile_tokens;
    std::size_t tiles;
};

void engine::attention(const kv_shape& shape, std::uint32_t layer, const std::byte* pool, const float* queries,
                       std::size_t query_heads, float scale, float* out) {
    attention_plan plan{&shape, layer * shape.layer_bytes(), pool, queries, out, query_heads, scale, 0, 0, 0, 0, 0};
    plan.group = query_heads / shape.kv_heads;
    plan.heads_per_item = std::min(plan.group, queries_max);
    plan.tile_tokens = std::max<std::size_t>(1, queries_max / plan.heads_per_item);
    if (plan.tile_tokens > 8) plan.tile_tokens = plan.tile_tokens / 8 * 8;
    tiles_before_.clear();
    for (const sequence_rows& s : unit_.sequences) {
        tiles_before_.push_back(plan.tiles);
        plan.tiles += (s.count + plan.tile_tokens - 1) / plan.tile_tokens;
    }
    tiles_before_.push_back(plan.tiles);
    plan.heads_per_item = heads_together(plan.tiles * shape.kv_heads, plan.group, plan.heads_per_item, pool_.threads());
    plan.items_per_tile = shape.kv_heads * ((plan.group + plan.heads_per_item - 1) / plan.heads_per_item);
    // Later tiles see more keys: they go first.
    const std::size_t items = plan.tiles * plan.items_per_tile;
    pool_.run(items, [&](std::size_t item, unsigned thread) { attention_item_of(plan, items - 1 - item, thread); });
}

void engine::attention_item_of(const attention_plan& plan, std::size_t item, unsigned thread) {
    const kv_shape& shape = *plan.shape;
    const std::size_t tile = item / plan.items_per_tile, rest = item % plan.items_per_tile;
    const std::size_t pieces = plan.items_per_tile / shape.kv_heads;
    const std::size_t kv_head = rest / pieces, piece = rest % pieces;
    std::size_t which = 0;
    while (tiles_before_[which + 1] <= tile) ++which;
    const sequence_rows& s = unit_.sequences[which];
    const std::size_t first = (tile - tiles_before_[which]) * plan.tile_tokens;
    const std::size_t last = std::min(first + plan.tile_tokens, s.count);
    const std::size_t head_first = kv_head * plan.group + piece * plan.heads_per_item;
    const std::size_t head_last = std::min(head_first + plan.heads_per_item, (kv_head + 1) * plan.group);

    const float* query[queries_max];
    float* out[queries_max];
    std::uint32_t position[queries_max];
    std::size_t count = 0;
    for (std::size_t r = first; r < last; ++r)
        for (std::size_t h = head_first; h < head_last; ++h, ++count) {
            const std::size_t at = ((s.first_row + r) * plan.query_heads + h) * shape.head_width;
            query[count] = plan.queries + at;
            out[count] = plan.out + at;
            position[count] = s.first_position + static_cast<std::uint32_t>(r);
        }
    float* scratch = scratch_[thread].floats();
    attention_item work{};
    work.query = query;
    work.out = out;
    work.position = position;
    work.queries = count;
    work.head_width = shape.head_width;
    work.scale = plan.scale;
    work.kv_type = static_cast<std::uint8_t>(shape.type);
    work.element_bytes = element_size(shape.type);
    work.pool = plan.pool;
    work.pages = &s.pages.data()->value;
    work.page_bytes = shape.page_bytes();
    work.page_tokens = shape.page_tokens;
    work.keys_offset = plan.layer_offset + kv_head * shape.head_bytes();
    work.values_offset = work.keys_offset + shape.values_offset();
    // Scores no longer than they need be: a short context stays in the nearest cache.
    work.score_stride = (position[count - 1] / 16 + 1) * 16;
    work.scores = scratch;
    work.block = scratch + count * work.score_stride;
    kernels_->attention(work);
}

}  // namespace fermata::cpu
