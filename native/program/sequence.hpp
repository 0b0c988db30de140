// One sequence: the ledger and all that follows from it, across pauses. Device memory (pages, slot, permit) is held
// only while bound.
//
// Positions (A1): `ledger` is the committed tokens, prompt then answer; `frontier` X is how many of them are computed
// in device memory now; `reached` is the highest frontier ever committed. Tokens below `reached` are computed again
// only by replay: they are sampled, reported and charged once (M6).
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "messages/cycle.hpp"
#include "native/guard/token_guard.hpp"
#include "native/sampling/penalty_counts.hpp"
#include "native/stores/pool_permit.hpp"

namespace fermata::program_detail {

enum class stage : std::uint8_t {
    bound,    // has a lane; units may run
    copying,  // has a lane; waits for its tail or its image
    paused,   // has neither lane nor device memory
};

struct sequence {
    ticket who{};
    std::shared_ptr<const sequence_spec> spec;
    stage at = stage::paused;
    lane where{};

    std::vector<token_id> ledger;
    std::uint32_t prompt = 0;
    std::uint32_t frontier = 0;
    std::uint32_t reached = 0;

    std::vector<page_id> pages;
    std::optional<state_slot> slot;
    pool_permit permit;
    bool first_unit_due = false;  // the permit of the bind is still to be used (N1)
    bool recovering = false;      // the permit is a recovery permit (M5)
    bool ever_bound = false;      // a bind completed: counted and charged once
    copy_id waiting_for{};

    std::optional<checkpoint_id> source;  // where it resumed from last, at `source_tokens`
    std::uint32_t source_tokens = 0;
    std::optional<checkpoint_id> input_point;

    guard::token_guard guard;
    sampling::penalty_counts counts;

    // The score of prompt token `reached`, known since the unit before.
    float next_prompt_logprob = std::numeric_limits<float>::quiet_NaN();
    std::vector<token_logprob> next_prompt_top;

    bool in_unit = false;

    std::uint32_t generated() const { return static_cast<std::uint32_t>(ledger.size()) - prompt; }
    // Holds a sampled token: it is in the answer, computing it is a decode.
    bool answering() const { return ledger.size() > prompt; }
    // Where prefill or replay ends: before the token that has not been fed, or at the prompt's end.
    std::uint32_t prefill_end() const {
        return answering() ? static_cast<std::uint32_t>(ledger.size()) - 1 : prompt;
    }
    bool decode_ready() const { return at == stage::bound && answering() && frontier == prefill_end(); }
    bool scores_prompt() const { return spec->report.prompt_logprobs || spec->report.prompt_logits; }
    // Deepest position it may resume at: a token must be left to compute wherever a first token is to be sampled.
    std::uint32_t resume_limit() const { return answering() ? prefill_end() : prompt - 1; }
};

}  // namespace fermata::program_detail
