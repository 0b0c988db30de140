#include "actors/cores/prefix_index.hpp"

#include <xxhash.h>

#include <algorithm>
#include <utility>

namespace fermata {

digest128 xxh_block_digest(std::span<const token_id> block, digest128 before) {
    // The chain enters through the seed and, for its second half, through the result: both halves depend on all of it.
    const XXH128_hash_t h = XXH3_128bits_withSeed(block.data(), block.size_bytes(), before.low);
    const std::uint64_t mixed = (before.high ^ h.high64) * 0x9E3779B97F4A7C15ull;
    return {h.low64, mixed ^ (mixed >> 29) ^ h.high64};
}

prefix_index::prefix_index(std::uint32_t block_tokens, block_digest digest)
    : block_tokens_(block_tokens), digest_(digest) {}

std::vector<digest128> prefix_index::chain_of(std::span<const token_id> tokens) const {
    std::vector<digest128> chain(tokens.size() / block_tokens_);
    digest128 before{};
    for (std::size_t i = 0; i < chain.size(); ++i)
        before = chain[i] = digest_(tokens.subspan(i * block_tokens_, block_tokens_), before);
    return chain;
}

void prefix_index::add(checkpoint_id id, token_run tokens, bool exact) {
    remove(id);
    place_[id] = entries_.size();
    auto chain = chain_of(tokens.span());
    entries_.push_back({id, std::move(tokens), exact, std::move(chain)});
}

void prefix_index::remove(checkpoint_id id) {
    const auto it = place_.find(id);
    if (it == place_.end()) return;
    const std::size_t hole = it->second;
    place_.erase(it);
    if (hole + 1 != entries_.size()) {
        entries_[hole] = std::move(entries_.back());
        place_[entries_[hole].id] = hole;
    }
    entries_.pop_back();
}

std::size_t prefix_index::metadata_bytes() const {
    std::size_t bytes = entries_.capacity() * sizeof(entry);
    for (const entry& e : entries_) bytes += e.chain.capacity() * sizeof(digest128);
    return bytes;
}

std::uint32_t prefix_index::common(const entry& e, std::span<const token_id> prompt, std::uint32_t from,
                                   std::uint32_t limit) const {
    const auto mine = e.tokens.span();
    const std::size_t end = std::min({mine.size(), prompt.size(), std::size_t{limit}});
    if (from >= end) return static_cast<std::uint32_t>(end);
    const auto at = std::mismatch(mine.begin() + from, mine.begin() + static_cast<std::ptrdiff_t>(end),
                                  prompt.begin() + from);
    return static_cast<std::uint32_t>(at.first - mine.begin());
}

std::vector<prefix_index::match> prefix_index::deepest(std::span<const token_id> prompt, std::uint32_t limit) const {
    const auto wanted = chain_of(prompt.first(std::min<std::size_t>(prompt.size(), limit)));
    std::vector<match> found;
    std::size_t best = 0;  // full blocks
    for (const entry& e : entries_) {
        const std::size_t reach = std::min(e.chain.size(), wanted.size());
        if (e.exact && (e.tokens.size() > limit || e.chain.size() > wanted.size())) continue;
        if (reach < best || (best > 0 && e.chain[best - 1] != wanted[best - 1])) continue;
        std::size_t depth = best;
        if (e.exact) {
            if (reach > 0 && e.chain[reach - 1] != wanted[reach - 1]) continue;
            depth = reach;
        } else if (depth < reach && e.chain[depth] == wanted[depth]) {
            // Chains agree up to a point and differ from there on: the last agreeing block lies in [depth, reach).
            std::size_t low = depth, high = reach;
            while (high - low > 1) {
                const std::size_t middle = low + (high - low) / 2;
                (e.chain[middle] == wanted[middle] ? low : high) = middle;
            }
            depth = low + 1;
        }
        const std::uint32_t tokens = common(e, prompt, static_cast<std::uint32_t>(depth * block_tokens_), limit);
        if (tokens == 0 || (e.exact && tokens < e.tokens.size())) continue;
        if (depth > best) {
            best = depth;
            found.clear();
        }
        found.push_back({e.id, tokens});
    }
    return found;
}

std::vector<prefix_index::match> prefix_index::by_content(std::span<const token_id> prompt, std::uint32_t limit) const {
    std::vector<match> found;
    for (const entry& e : entries_) {
        const std::uint32_t tokens = common(e, prompt, 0, limit);
        if (tokens > 0 && (!e.exact || tokens == e.tokens.size())) found.push_back({e.id, tokens});
    }
    return found;
}

std::uint32_t prefix_index::shared(checkpoint_id id, std::span<const token_id> prompt, std::uint32_t limit) const {
    const auto it = place_.find(id);
    return it == place_.end() ? 0 : common(entries_[it->second], prompt, 0, limit);
}

}  // namespace fermata
