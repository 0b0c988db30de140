// How often each token of a ledger occurred: in the prompt (yes or no) and in the answer (a count). Built from the
// ledger alone, so a resumed sequence penalises exactly as an uninterrupted one (fault 77).
//
// An open-addressing table over distinct tokens, sized once for the longest ledger: adding a token never allocates.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "messages/vocabulary.hpp"

namespace fermata::sampling {

class penalty_counts {
public:
    struct entry {
        token_id token = no_token;
        std::uint32_t generated = 0;
        bool in_prompt = false;
    };

    penalty_counts() = default;
    // Room for `distinct_max` different tokens.
    explicit penalty_counts(std::size_t distinct_max);

    bool active() const noexcept { return !slots_.empty(); }
    void add_prompt(std::span<const token_id> tokens);
    void add_generated(token_id token) { ++find(token).generated; }
    // In order of first occurrence.
    std::span<const entry> entries() const noexcept { return entries_; }

private:
    entry& find(token_id token);
    std::vector<std::uint32_t> slots_;  // index into entries_ plus one; 0: empty
    std::vector<entry> entries_;
};

}  // namespace fermata::sampling
