// Scheduler <-> Program: one exchange a cycle. The plan orders what changes holders (cancels, drops, pauses, binds)
// and the units of this cycle; the answer carries results, shortages and occupancy. Steady decode needs nothing
// else. Orders are executed in the order of the fields; rows get their permits one by one in the order given, so a
// short row doesn't stop the rest (D1).
//
// A plan may hold units of a sequence that it binds: they run when the bind's outcome is `bound` and are passed over
// without a shortage otherwise. Every bind and every pause is answered. Cancels and drops of what Program doesn't know
// are nothing; a row that finished is forgotten by Program at once, its lane is free. `copies_in_flight` counts copies
// from submission until they are settled.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "messages/field.hpp"
#include "messages/generation.hpp"
#include "messages/ids.hpp"

namespace fermata {

// Start (first bind, with `spec`) or resume (replay of a paused sequence, without) a sequence on a lane. The bind
// includes the permit of its first unit; a resume includes the whole recovery permit (M5).
struct bind_order {
    ticket who{};
    lane where{};
    std::shared_ptr<const sequence_spec> spec;  // null: resume what Program kept under `who`
    std::optional<checkpoint_id> source;        // none: root
    token_pos source_tokens{0};                 // resume position inside the source
    token_pos first_unit_tokens{0};             // size of the first chunk the permit must cover
    static constexpr std::string_view type_name = "bind_order";
    static constexpr auto fields() {
        using t = bind_order;
        return std::tuple{field("who", &t::who), field("where", &t::where), field("spec", &t::spec),
                          field("source", &t::source), field("source_tokens", &t::source_tokens),
                          field("first_unit_tokens", &t::first_unit_tokens)};
    }
};

struct prefill_order {
    ticket who{};
    token_pos tokens_max{0};  // chunk size; Program cuts it to what is left
    static constexpr std::string_view type_name = "prefill_order";
    static constexpr auto fields() {
        return std::tuple{field("who", &prefill_order::who), field("tokens_max", &prefill_order::tokens_max)};
    }
};

struct cycle_plan {
    cycle_no cycle{};
    std::vector<ticket> cancels;          // bound or paused sequences to end now; they are forgotten
    std::vector<checkpoint_id> drops;     // reclaim: checkpoints to release
    std::vector<ticket> pauses;           // bound sequences to put back; the ledger stays, device memory goes (M8)
    std::vector<bind_order> binds;
    std::vector<ticket> decodes;          // rows that hold a token to feed
    std::vector<prefill_order> prefills;  // prefill or replay chunks
    static constexpr std::string_view type_name = "cycle_plan";
    static constexpr auto fields() {
        using t = cycle_plan;
        return std::tuple{field("cycle", &t::cycle), field("cancels", &t::cancels), field("drops", &t::drops),
                          field("pauses", &t::pauses), field("binds", &t::binds), field("decodes", &t::decodes),
                          field("prefills", &t::prefills)};
    }
};

// What is missing for one order. All or nothing: nothing of the order was taken (C2). Program frees nothing by
// itself (C6).
struct shortage {
    ticket who{};
    std::uint32_t pages = 0;         // Main pages missing
    std::uint32_t state_slots = 0;
    std::uint32_t pages_needed = 0;  // the order's whole need
    bool never = false;              // the need exceeds the pool: no release can help (F7)
    static constexpr std::string_view type_name = "shortage";
    static constexpr auto fields() {
        using t = shortage;
        return std::tuple{field("who", &t::who), field("pages", &t::pages), field("state_slots", &t::state_slots),
                          field("pages_needed", &t::pages_needed), field("never", &t::never)};
    }
};

enum class bind_outcome : std::uint8_t {
    bound,         // the lane is set up; units may run
    copying,       // waits for a copy by Transfer; `bound` follows in a later answer or notice
    short_of_room, // see shortages
    stale,         // the source moved on: choose again
    refused,       // the order contradicts Program's facts; `text` says how
};

struct bind_result {
    ticket who{};
    bind_outcome outcome = bind_outcome::bound;
    token_pos position{0};  // where computing starts: the tokens reused
    std::string text;
    static constexpr std::string_view type_name = "bind_result";
    static constexpr auto fields() {
        using t = bind_result;
        return std::tuple{field("who", &t::who), field("outcome", &t::outcome), field("position", &t::position),
                          field("text", &t::text)};
    }
};

// Why a request, or one row of it, ended with an error.
enum class failure_kind : std::uint8_t {
    none,
    capacity,        // can never get its next unit (F7)
    queue_timeout,   // waited longer than pending-timeout
    deadline,        // its own deadline passed
    shutting_down,
    not_finite,      // logits that aren't finite
    internal,
};

// One row of one unit. `token` is the token committed by it (sampled), no_token when the row only computed.
struct row_result {
    ticket who{};
    token_pos computed{0};   // tokens this unit computed for the row
    token_pos replayed{0};   // of these, tokens computed before a pause (own counter, O2)
    token_pos frontier{0};   // execution frontier after it (A1)
    token_id token = no_token;
    token_pos generated{0};  // tokens of the answer so far
    finish_reason finish = finish_reason::none;
    float logprob = 0;                       // when asked for
    std::vector<token_logprob> top_logprobs; // when asked for
    std::vector<float> prompt_logprobs;      // when asked for: of the prompt tokens this unit computed (NaN for the first)
    std::vector<std::vector<token_logprob>> prompt_top_logprobs;
    std::vector<float> logits;               // when asked for: rows x vocabulary, in order of position
    failure_kind failure = failure_kind::none;  // with finish == error: what Program saw
    std::string error;                       // with finish == error: for people; nothing is decided by it
    static constexpr std::string_view type_name = "row_result";
    static constexpr auto fields() {
        using t = row_result;
        return std::tuple{field("who", &t::who), field("computed", &t::computed), field("replayed", &t::replayed),
                          field("frontier", &t::frontier), field("token", &t::token),
                          field("generated", &t::generated), field("finish", &t::finish),
                          field("logprob", &t::logprob), field("top_logprobs", &t::top_logprobs),
                          field("prompt_logprobs", &t::prompt_logprobs),
                          field("prompt_top_logprobs", &t::prompt_top_logprobs), field("logits", &t::logits),
                          field("failure", &t::failure), field("error", &t::error)};
    }
};

// A paused sequence: what a later resume needs to look for a source (F1).
struct pause_result {
    ticket who{};
    token_run ledger;        // committed tokens up to the execution frontier: what a replay has to cover
    bool decoding = false;   // it held a sampled token that has not been fed
    static constexpr std::string_view type_name = "pause_result";
    static constexpr auto fields() {
        using t = pause_result;
        return std::tuple{field("who", &t::who), field("ledger", &t::ledger), field("decoding", &t::decoding)};
    }
};

struct occupancy {
    std::uint32_t pages_total = 0, pages_free = 0, pages_active = 0, pages_cached = 0;  // Main pool
    std::uint32_t state_slots_total = 0, state_slots_free = 0;
    bool operator==(const occupancy&) const = default;
    static constexpr std::string_view type_name = "occupancy";
    static constexpr auto fields() {
        using t = occupancy;
        return std::tuple{field("pages_total", &t::pages_total), field("pages_free", &t::pages_free),
                          field("pages_active", &t::pages_active), field("pages_cached", &t::pages_cached),
                          field("state_slots_total", &t::state_slots_total),
                          field("state_slots_free", &t::state_slots_free)};
    }
};

// One complete resume point as Program holds it.
struct point_view {
    checkpoint_id checkpoint{};
    token_pos coverage{0};               // tokens of KV it covers
    bool exact_only = false;             // has a StateImage: resumable at `coverage` alone (A3)
    std::vector<page_id> pages;          // Main pages, in order
    std::vector<std::uint32_t> other_holders;  // per page: references by active sequences
    static constexpr std::string_view type_name = "point_view";
    static constexpr auto fields() {
        using t = point_view;
        return std::tuple{field("checkpoint", &t::checkpoint), field("coverage", &t::coverage),
                          field("exact_only", &t::exact_only), field("pages", &t::pages),
                          field("other_holders", &t::other_holders)};
    }
};

// Immutable picture of holders, published at each structural commit. Quotes are pure functions over it; a quote is
// void once Program's epoch moved on (K10).
struct program_view {
    epoch at{};
    std::uint32_t page_tokens = 0;
    occupancy room;
    std::vector<point_view> points;
    static constexpr std::string_view type_name = "program_view";
    static constexpr auto fields() {
        using t = program_view;
        return std::tuple{field("at", &t::at), field("page_tokens", &t::page_tokens), field("room", &t::room),
                          field("points", &t::points)};
    }
};

struct cycle_done {
    cycle_no cycle{};
    epoch at{};
    std::vector<bind_result> binds;
    std::vector<pause_result> pauses;
    std::vector<shortage> shortages;  // of binds, decodes and prefills; those rows did not run
    std::vector<row_result> rows;
    occupancy room;
    std::uint32_t copies_in_flight = 0;
    std::shared_ptr<const program_view> view;  // only when the structure changed since the last answer or notice
    bool device_failed = false;
    std::string error;
    static constexpr std::string_view type_name = "cycle_done";
    static constexpr auto fields() {
        using t = cycle_done;
        return std::tuple{field("cycle", &t::cycle), field("at", &t::at), field("binds", &t::binds),
                          field("pauses", &t::pauses), field("shortages", &t::shortages), field("rows", &t::rows),
                          field("room", &t::room), field("copies_in_flight", &t::copies_in_flight),
                          field("view", &t::view), field("device_failed", &t::device_failed),
                          field("error", &t::error)};
    }
};

// Program -> Scheduler outside of an exchange: copies completed, so a waiting bind is bound or failed, and what the
// copies leased may be free. The picture comes along: victims judged on an older one would still count the leases.
struct program_notice {
    std::vector<bind_result> binds;
    occupancy room;
    std::uint32_t copies_in_flight = 0;
    std::shared_ptr<const program_view> view;  // only when the structure changed since the last answer or notice
    static constexpr std::string_view type_name = "program_notice";
    static constexpr auto fields() {
        using t = program_notice;
        return std::tuple{field("binds", &t::binds), field("room", &t::room),
                          field("copies_in_flight", &t::copies_in_flight), field("view", &t::view)};
    }
};

}  // namespace fermata
