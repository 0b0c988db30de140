// The ResourceManager: what is remembered, what a request resumes from, what goes first. A pure core; it holds facts
// about content (tokens, use), never pages: Program's picture comes with each question and decides what exists.
//
// Invariants: a record lives from `checkpoint_published` to `checkpoint_dropped`, so metadata is bounded by what the
// device holds (B4); a chosen source matches token by token (A4) and is in the picture of the question; the position
// is the minimum of match, coverage and limit (A3).
//
// The later policies (evidence J, waits F8-F10, capture I, host and disk tiers) refine `rank_of` and the candidate
// order; the conversations stay as they are.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "actors/cores/prefix_index.hpp"
#include "actors/cores/reclaim.hpp"
#include "messages/context.hpp"

namespace fermata {

struct resource_manager_options {
    std::uint32_t page_tokens = 64;
    // A partly filled page of the source is copied only for at least so many tokens; below, computing them again costs
    // less than a copy and its round trip (G7). 16 tokens of a 135M model are 16 ms of prefill at 1k tokens/s; copying
    // one of its pages (64 tokens x 22.5 KiB = 1.4 MiB) takes 0.3 ms plus two hops.
    std::uint32_t tail_copy_tokens_min = 16;
    block_digest digest = xxh_block_digest;
};

class resource_manager {
public:
    explicit resource_manager(resource_manager_options options);

    source_chosen on(const choose_source& question);
    victims_chosen on(const choose_victims& question) const;
    void on(const checkpoint_published& event);
    void on(const checkpoint_dropped& event);
    void on(const checkpoint_adopted& event);

    std::size_t records() const { return records_.size(); }
    std::size_t metadata_bytes() const;

private:
    struct record {
        token_pos coverage{0};
        bool exact_only = false;
        std::string session;
        std::uint64_t publication = 0;  // order of publishing
        std::uint64_t last_use = 0;     // publication or last adoption
        bool reused = false;            // it, or what it grew from, was adopted
    };
    struct candidate {
        checkpoint_id checkpoint{};
        std::uint32_t position = 0;
        bool same_session = false;
        std::uint64_t publication = 0;
    };
    using candidates = std::vector<candidate>;

    bool exists(const std::shared_ptr<const program_view>& view, checkpoint_id id);
    std::uint32_t usable(const record& r, std::uint32_t matched) const;
    candidates rank(const choose_source& question, const std::vector<prefix_index::match>& matches);
    bool verified(const candidate& c, const choose_source& question) const;
    retention_rank rank_of(checkpoint_id id) const;

    resource_manager_options options_;
    prefix_index index_;
    std::unordered_map<checkpoint_id, record> records_;
    std::uint64_t clock_ = 0;
    // Sequences that grew from a reused record: what they publish inherits it. Bounded.
    std::unordered_set<ticket> heirs_;
    std::deque<ticket> heirs_order_;
    // Which points the last picture holds.
    std::shared_ptr<const program_view> seen_;
    std::unordered_set<checkpoint_id> seen_points_;
};

}  // namespace fermata
