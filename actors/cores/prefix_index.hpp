// Which records share how long a prefix with a prompt. Chains of 128-bit digests, one a block, narrow the search;
// content decides (A4): nothing is returned that wasn't compared token by token, so a colliding digest costs time,
// never an answer (fault 94).
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "messages/ids.hpp"
#include "messages/token_run.hpp"

namespace fermata {

struct digest128 {
    std::uint64_t low = 0, high = 0;
    bool operator==(const digest128&) const = default;
};
// Digest of one block, chained to the digest of everything before it.
using block_digest = digest128 (*)(std::span<const token_id> block, digest128 before);
digest128 xxh_block_digest(std::span<const token_id> block, digest128 before);

class prefix_index {
public:
    // A prefix shared by a record and the prompt. `exact` records count only when they match in full.
    struct match {
        checkpoint_id checkpoint{};
        std::uint32_t tokens = 0;
    };

    explicit prefix_index(std::uint32_t block_tokens, block_digest digest = xxh_block_digest);

    void add(checkpoint_id id, token_run tokens, bool exact);
    void remove(checkpoint_id id);
    std::size_t size() const { return entries_.size(); }
    std::size_t metadata_bytes() const;

    // Every record whose usable prefix reaches the deepest block that any record reaches, within `limit` tokens:
    // verified only as far as digests and the last partial block go. Deepest first is the caller's ordering.
    std::vector<match> deepest(std::span<const token_id> prompt, std::uint32_t limit) const;
    // The same for all records by comparing content only: the slow path after a collision.
    std::vector<match> by_content(std::span<const token_id> prompt, std::uint32_t limit) const;
    // Tokens that the record and the prompt really share.
    std::uint32_t shared(checkpoint_id id, std::span<const token_id> prompt, std::uint32_t limit) const;

private:
    struct entry {
        checkpoint_id id{};
        token_run tokens;
        bool exact = false;
        std::vector<digest128> chain;  // of full blocks
    };
    std::vector<digest128> chain_of(std::span<const token_id> tokens) const;
    std::uint32_t common(const entry& e, std::span<const token_id> prompt, std::uint32_t from, std::uint32_t limit) const;

    std::uint32_t block_tokens_;
    block_digest digest_;
    std::vector<entry> entries_;
    std::unordered_map<checkpoint_id, std::size_t> place_;
};

}  // namespace fermata
