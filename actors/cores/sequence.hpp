// What the Scheduler knows of one choice of one request, from acceptance to its last token. The record lives through
// pauses (O1): ticket, first times and usage are set once and never again (M6).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "messages/cycle.hpp"
#include "messages/generation.hpp"
#include "messages/ids.hpp"
#include "messages/serving.hpp"

namespace fermata::scheduling {

enum class phase : std::uint8_t {
    queued,   // in the fresh queue
    binding,  // its bind order is in the plan under way
    copying,  // bound once a copy is complete; holds a lane, can't be paused (M2)
    prefill,  // prompt or replay tokens are left to compute
    decode,   // holds a token to feed
    paused,   // Program keeps the ledger, no lane
};

struct sequence {
    ticket who{};
    request_id request{};
    std::uint32_t choice = 0;
    std::shared_ptr<const sequence_spec> spec;
    time_ns deadline = 0;  // 0: none

    phase now = phase::queued;
    std::optional<lane> where;
    token_pos frontier{0};  // execution frontier, as Program last told (A1)
    token_pos target{0};    // prefill ends here: the prompt, or what a replay has to cover
    bool begun = false;     // was bound once
    bool prompt_computed = false;
    bool recovering = false;  // holds the recovery permit (M5)
    bool first_unit_due = false;  // holds the permit of its bind's first unit (N1)

    // A paused one.
    token_run ledger;
    bool holds_token = false;  // a sampled token waits to be fed after the replay

    // The next bind.
    std::optional<checkpoint_id> source;
    token_pos source_tokens{0};
    bool root_only = false;           // other sources were tried and don't fit (F4)
    std::uint32_t stale_binds = 0;    // in a row
    std::uint32_t pages_reported = 0; // Program's own figure after a shortage; 0: use the estimate
    bool never_fits = false;          // Program: more than the pool has
    std::optional<checkpoint_id> reported_source;  // of the bind that `pages_reported` is about
    std::uint64_t tried_event = 0;    // capacity event of the last failed try (E2, M4)
    std::uint64_t parked_event = 0;   // resident without relief: waits for a later capacity event
    std::uint32_t short_streak = 0;   // shortages in a row that the figures didn't foresee; at least 1 while short
    bool expected_short = false;      // by the figures of the plan under way
    std::uint64_t short_turn = 0;     // of the last one

    // Rotation and fairness.
    std::uint64_t last_prefill = 0;  // rotation key: grows with the turn of the last chunk, or of the bind
    std::uint32_t overtaken = 0;     // successful younger requests (E1)
    std::optional<ticket> leader;    // sibling whose prompt pages this one would share

    // Times and usage.
    time_ns accepted_at = 0;
    time_ns planned_at = 0;  // the plan with its bind left: its time in the queue ends there
    time_ns first_token_at = 0;
    time_ns last_token_at = 0;
    time_ns copying_since = 0;
    sequence_usage usage;

    bool resident() const { return now == phase::copying || now == phase::prefill || now == phase::decode; }
    bool permitted() const { return recovering || first_unit_due; }
    bool runnable() const { return now == phase::prefill || now == phase::decode; }
};

}  // namespace fermata::scheduling
