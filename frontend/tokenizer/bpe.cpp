#include "frontend/tokenizer/bpe.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <functional>

namespace fermata::text {

namespace {

std::size_t slots_for(std::size_t entries) { return std::bit_ceil(std::max<std::size_t>(16, entries * 2)); }

std::uint64_t pair_of(token_id left, token_id right) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) | static_cast<std::uint32_t>(right);
}

// Pieces longer than any sensible token are not looked up as a whole.
constexpr std::size_t whole_piece_bytes_max = 256;

// Pieces of so few symbols are merged by looking for the lowest rank among all pairs each time.
constexpr std::size_t few_symbols = 40;

constexpr std::uint32_t no_rank = ~std::uint32_t{0};

}  // namespace

token_index::token_index(const token_store& store, std::size_t tokens_max)
    : store_(&store), slots_(slots_for(tokens_max), no_token) {}

std::size_t token_index::slot_of(std::string_view bytes) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = static_cast<std::size_t>(XXH3_64bits(bytes.data(), bytes.size())) & mask;
    while (slots_[slot] != no_token && (*store_)[static_cast<std::size_t>(slots_[slot])] != bytes) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

bool token_index::insert(token_id id) {
    token_id& slot = slots_[slot_of((*store_)[static_cast<std::size_t>(id)])];
    if (slot != no_token) return false;
    slot = id;
    return true;
}

void token_index::replace(token_id id) { slots_[slot_of((*store_)[static_cast<std::size_t>(id)])] = id; }

token_id token_index::find(std::string_view bytes) const noexcept { return slots_[slot_of(bytes)]; }

merge_table::merge_table(std::size_t merges_max) : slots_(slots_for(merges_max)) {}

std::size_t merge_table::slot_of(std::uint64_t pair) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::uint64_t mixed = pair * 0x9E3779B97F4A7C15ull;
    std::size_t slot = static_cast<std::size_t>(mixed ^ (mixed >> 32)) & mask;
    while (slots_[slot].value.result != no_token && slots_[slot].pair != pair) slot = (slot + 1) & mask;
    return slot;
}

void merge_queue::reset(std::size_t ranks) {
    for (std::size_t i = 0; i < used_; ++i) row_of_rank_[rows_[i].rank] = 0;
    used_ = 0;
    ranks_.clear();
    if (row_of_rank_.size() < ranks) row_of_rank_.resize(ranks, 0);
}

merge_queue::row& merge_queue::row_of(std::uint32_t rank, token_id result) {
    std::uint32_t& index = row_of_rank_[rank];
    if (index == 0) {
        if (used_ == rows_.size()) rows_.emplace_back();
        row& fresh = rows_[used_++];
        fresh.rank = rank;
        fresh.result = result;
        fresh.queued = false;
        fresh.front = 0;
        fresh.ascending.clear();
        fresh.late.clear();
        index = static_cast<std::uint32_t>(used_);
    }
    return rows_[index - 1];
}

void merge_queue::push(std::uint32_t rank, token_id result, std::uint32_t position) {
    row& r = row_of(rank, result);
    if (r.front == r.ascending.size()) {
        r.ascending.clear();
        r.front = 0;
    }
    if (r.ascending.empty() || r.ascending.back() < position) {
        r.ascending.push_back(position);
    } else {
        r.late.push_back(position);
        std::push_heap(r.late.begin(), r.late.end(), std::greater<>{});
    }
    if (r.queued) return;
    r.queued = true;
    ranks_.push_back(rank);
    std::push_heap(ranks_.begin(), ranks_.end(), std::greater<>{});
}

bool merge_queue::pop(next_merge& out) {
    while (!ranks_.empty()) {
        row& r = rows_[row_of_rank_[ranks_.front()] - 1];
        const bool in_row = r.front < r.ascending.size();
        if (!in_row && r.late.empty()) {
            r.queued = false;
            std::pop_heap(ranks_.begin(), ranks_.end(), std::greater<>{});
            ranks_.pop_back();
            continue;
        }
        if (in_row && (r.late.empty() || r.ascending[r.front] <= r.late.front())) {
            out = {r.ascending[r.front++], r.result};
        } else {
            out = {r.late.front(), r.result};
            std::pop_heap(r.late.begin(), r.late.end(), std::greater<>{});
            r.late.pop_back();
        }
        return true;
    }
    return false;
}

void merge_table::insert(token_id left, token_id right, merge value) {
    slots_[slot_of(pair_of(left, right))] = {pair_of(left, right), value};
    ranks_ = std::max<std::size_t>(ranks_, std::size_t{value.rank} + 1);
}

const merge_table::merge* merge_table::find(token_id left, token_id right) const noexcept {
    const entry& e = slots_[slot_of(pair_of(left, right))];
    return e.value.result == no_token ? nullptr : &e.value;
}

bpe_model::bpe_model(std::shared_ptr<const token_store> store, token_index index, merge_table merges, options o)
    : store_(std::move(store)),
      index_(std::move(index)),
      merges_(std::move(merges)),
      options_(std::move(o)),
      whole_(std::make_unique<std::atomic<std::uint8_t>[]>(store_->size())) {
    for (std::size_t place = 0; place < byte_tokens_.size(); ++place) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            std::string written(1, static_cast<char>(byte));
            if ((place & 1) != 0) written.insert(0, options_.continuing_prefix);
            if ((place & 2) != 0) written.append(options_.end_suffix);
            byte_tokens_[place][byte] = index_.find(written);
        }
    }
}

// A byte without a token: the unknown token if there is one, else nothing, as in `tokenizers`; the byte then counts
// as part of what is before it.
void bpe_model::append_unknown(bpe_workspace& space) const {
    const bool fuse = options_.unknown == no_token || (options_.fuse_unknown && !space.symbols.empty() &&
                                                       space.symbols.back().id == options_.unknown);
    if (fuse) {
        if (!space.symbols.empty()) ++space.symbols.back().length;
        return;
    }
    const auto here = static_cast<std::int32_t>(space.symbols.size());
    space.symbols.push_back({options_.unknown, here - 1, here + 1, 1});
}

void bpe_model::fill_symbols(std::string_view piece, bpe_workspace& space) const {
    space.symbols.clear();
    for (std::size_t at = 0; at < piece.size(); ++at) {
        const std::size_t place = (at > 0 ? 1u : 0u) | (at + 1 == piece.size() ? 2u : 0u);
        const token_id id = byte_tokens_[place][static_cast<unsigned char>(piece[at])];
        if (id == no_token) {
            append_unknown(space);
            continue;
        }
        const auto here = static_cast<std::int32_t>(space.symbols.size());
        const auto left_out = static_cast<std::uint32_t>(here == 0 ? at : 0);  // bytes before the first symbol
        space.symbols.push_back({id, here - 1, here + 1, 1 + left_out});
    }
    if (!space.symbols.empty()) space.symbols.back().next = -1;
}

merge_table::merge bpe_model::pair_at(const bpe_workspace& space, std::size_t left) const {
    if (left + 1 >= space.symbols.size()) return {no_rank, no_token};
    const auto* merge = merges_.find(space.symbols[left].id, space.symbols[left + 1].id);
    return merge == nullptr ? merge_table::merge{no_rank, no_token} : *merge;
}

// The symbols stay side by side; merged ones are taken out.
void bpe_model::merge_few(bpe_workspace& space) const {
    auto& symbols = space.symbols;
    auto& pairs = space.pairs;
    pairs.resize(symbols.size());
    for (std::size_t i = 0; i < symbols.size(); ++i) pairs[i] = pair_at(space, i);
    while (symbols.size() > 1) {
        const auto best = std::min_element(pairs.begin(), pairs.end(),
                                           [](const auto& a, const auto& b) { return a.rank < b.rank; });
        if (best->rank == no_rank) break;
        const auto at = static_cast<std::size_t>(best - pairs.begin());
        symbols[at].id = best->result;
        symbols[at].length += symbols[at + 1].length;
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
        pairs.erase(best + 1);
        pairs[at] = pair_at(space, at);
        if (at > 0) pairs[at - 1] = pair_at(space, at - 1);
    }
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        symbols[i].next = i + 1 == symbols.size() ? -1 : static_cast<std::int32_t>(i) + 1;
    }
}

// Queues the merge of a symbol with its right neighbour, if there is one.
void bpe_model::consider(bpe_workspace& space, std::int32_t left) const {
    const auto& a = space.symbols[static_cast<std::size_t>(left)];
    if (a.next < 0) return;
    const auto* merge = merges_.find(a.id, space.symbols[static_cast<std::size_t>(a.next)].id);
    if (merge != nullptr) space.queue.push(merge->rank, merge->result, static_cast<std::uint32_t>(left));
}

void bpe_model::merge_many(bpe_workspace& space) const {
    space.queue.reset(merges_.ranks());
    for (std::size_t i = 0; i + 1 < space.symbols.size(); ++i) consider(space, static_cast<std::int32_t>(i));
    for (merge_queue::next_merge best{}; space.queue.pop(best);) {
        auto& left = space.symbols[best.position];
        if (left.id == no_token || left.next < 0) continue;
        auto& right = space.symbols[static_cast<std::size_t>(left.next)];
        // What was queued may be out of date: symbols have grown since. Two pairs at one place that give the same
        // token are the same pair, so comparing the outcome is enough.
        const auto* merge = merges_.find(left.id, right.id);
        if (merge == nullptr || merge->result != best.result) continue;
        left.id = best.result;
        left.length += right.length;
        left.next = right.next;
        right.id = no_token;
        const auto at = static_cast<std::int32_t>(best.position);
        if (left.next >= 0) space.symbols[static_cast<std::size_t>(left.next)].previous = at;
        if (left.previous >= 0) consider(space, left.previous);
        consider(space, at);
    }
}

void bpe_model::merge_all(std::string_view piece, bpe_workspace& space) const {
    fill_symbols(piece, space);
    if (space.symbols.size() <= few_symbols) {
        merge_few(space);
    } else {
        merge_many(space);
    }
}

// The token that the piece becomes as a whole, if merging leads there.
token_id bpe_model::whole_piece(std::string_view piece, bpe_workspace& space) const {
    if (piece.size() > whole_piece_bytes_max && !options_.ignore_merges) return no_token;
    const token_id id = index_.find(piece);
    if (id == no_token || options_.ignore_merges) return id;
    if (!options_.end_suffix.empty() || !options_.continuing_prefix.empty()) return no_token;
    auto& known = whole_[static_cast<std::size_t>(id)];
    std::uint8_t state = known.load(std::memory_order_relaxed);
    if (state == not_tried) {
        merge_all(piece, space);
        state = space.symbols.size() >= 1 && space.symbols[0].id == id && space.symbols[0].next < 0 ? stays_whole
                                                                                                    : falls_apart;
        known.store(state, std::memory_order_relaxed);
    }
    return state == stays_whole ? id : no_token;
}

void bpe_model::encode(std::string_view piece, bpe_workspace& space, std::vector<bpe_token>& out) const {
    if (const token_id whole = whole_piece(piece, space); whole != no_token) {
        out.push_back({whole, static_cast<std::uint32_t>(piece.size())});
        return;
    }
    merge_all(piece, space);
    if (space.symbols.empty()) return;
    for (std::int32_t at = 0; at >= 0; at = space.symbols[static_cast<std::size_t>(at)].next) {
        const auto& symbol = space.symbols[static_cast<std::size_t>(at)];
        out.push_back({symbol.id, symbol.length});
    }
}

}  // namespace fermata::text
