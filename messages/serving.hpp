// Frontend <-> Scheduler: sequences in, tokens out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "messages/cycle.hpp"
#include "messages/field.hpp"
#include "messages/generation.hpp"
#include "messages/ids.hpp"

namespace fermata {

// Times on the bus are nanoseconds of the node's injected clock (monotonic; virtual in the simulator).
using time_ns = std::int64_t;

// A prepared request: rendered, tokenised, checked. All choices share the prompt; tickets are given in order.
struct enqueue {
    request_id request{};
    std::vector<std::shared_ptr<const sequence_spec>> choices;  // at least one; choice i is choices[i]
    time_ns deadline = 0;  // 0: none. A request that isn't done by then ends with an error
    static constexpr std::string_view type_name = "enqueue";
    static constexpr auto fields() {
        using t = enqueue;
        return std::tuple{field("request", &t::request), field("choices", &t::choices),
                          field("deadline", &t::deadline)};
    }
};

// Why a request wasn't queued.
enum class refusal : std::uint8_t {
    none,
    queue_full,
    shutting_down,
    out_of_order,  // the device failed; it may come back
    malformed,     // no choices, or a request id in use: a fault of the sender
};

struct enqueue_result {
    request_id request{};
    bool accepted = true;
    std::uint32_t retry_after_s = 0;  // with accepted == false: when it may be worth another try
    refusal why = refusal::none;      // with accepted == false
    static constexpr std::string_view type_name = "enqueue_result";
    static constexpr auto fields() {
        using t = enqueue_result;
        return std::tuple{field("request", &t::request), field("accepted", &t::accepted),
                          field("retry_after_s", &t::retry_after_s), field("why", &t::why)};
    }
};

// The client left, or the Frontend gives the request up. Charged for work done only (O1). Idempotent.
struct cancel_request {
    request_id request{};
    static constexpr std::string_view type_name = "cancel_request";
    static constexpr auto fields() { return std::tuple{field("request", &cancel_request::request)}; }
};

struct sequence_usage {
    token_pos prompt{0};
    token_pos cached{0};    // prompt tokens not computed (O2)
    token_pos generated{0};
    token_pos replayed{0};
    std::uint32_t pauses = 0;
    time_ns queued_ns = 0;  // acceptance to the plan that binds it first
    time_ns ttft_ns = 0;    // acceptance to first token
    static constexpr std::string_view type_name = "sequence_usage";
    static constexpr auto fields() {
        using t = sequence_usage;
        return std::tuple{field("prompt", &t::prompt), field("cached", &t::cached), field("generated", &t::generated),
                          field("replayed", &t::replayed), field("pauses", &t::pauses),
                          field("queued_ns", &t::queued_ns), field("ttft_ns", &t::ttft_ns)};
    }
};

// One row of what a cycle brought to one choice.
struct choice_output {
    request_id request{};
    std::uint32_t choice = 0;
    row_result row;                        // token, log-probabilities, finish
    failure_kind failure = failure_kind::none;  // with row.finish == error
    std::shared_ptr<const sequence_usage> usage;  // with row.finish != none
    static constexpr std::string_view type_name = "choice_output";
    static constexpr auto fields() {
        using t = choice_output;
        return std::tuple{field("request", &t::request), field("choice", &t::choice), field("row", &t::row),
                          field("failure", &t::failure), field("usage", &t::usage)};
    }
};

// Scheduler -> Frontend, at most one a cycle.
struct outputs {
    std::vector<choice_output> rows;
    static constexpr std::string_view type_name = "outputs";
    static constexpr auto fields() { return std::tuple{field("rows", &outputs::rows)}; }
};

// Node -> Scheduler: no new requests; accepted ones may finish until the grace time is over.
struct drain {
    time_ns grace_until = 0;
    static constexpr std::string_view type_name = "drain";
    static constexpr auto fields() { return std::tuple{field("grace_until", &drain::grace_until)}; }
};

struct drained {
    std::uint32_t cut_short = 0;  // requests ended because the grace time was over
    static constexpr std::string_view type_name = "drained";
    static constexpr auto fields() { return std::tuple{field("cut_short", &drained::cut_short)}; }
};

}  // namespace fermata
