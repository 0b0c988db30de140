// Live numbers of a node: plain atomics, written by the actors, read by /metrics, /health and `inspect` without a
// message. Names follow the metrics of the HTTP interface. Monotone counters only grow; gauges are set.
//
// One writer a number, and one number a series that is written. Program: tokens, pools, state slots, movement, captures,
// cycle, device_wait, control_gap, last_commit. Scheduler: everything else about requests, policy, queue, lanes and time.
// Node: ready. The outcomes of requests have two writers, each request one: the Scheduler counts what it accepted, the
// Frontend what never got there and what a Scheduler that is gone left behind.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstddef>

namespace fermata {

using counter = std::atomic<std::uint64_t>;
using gauge = std::atomic<std::int64_t>;

// Fixed upper bounds in seconds, a count a bucket (not cumulated), count of all and a sum in nanoseconds.
struct latency_histogram {
    static constexpr std::array<double, 18> bounds_s = {0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001,
                                                        0.0025,   0.005,   0.01,   0.025,   0.05,   0.1,
                                                        0.25,     0.5,     1.0,    2.5,     10.0,   60.0};
    std::array<counter, bounds_s.size() + 1> buckets{};
    counter sum_ns{0};

    void observe(std::int64_t value_ns) noexcept {
        const double value_s = static_cast<double>(value_ns) * 1e-9;
        std::size_t i = 0;
        while (i < bounds_s.size() && value_s > bounds_s[i]) ++i;
        buckets[i].fetch_add(1, std::memory_order_relaxed);
        sum_ns.fetch_add(value_ns > 0 ? static_cast<std::uint64_t>(value_ns) : 0, std::memory_order_relaxed);
    }
};

struct telemetry {
    // requests{state}
    gauge requests_queued{0}, requests_waiting_source{0}, requests_prefill{0}, requests_decode{0},
        requests_replay{0}, requests_paused{0};
    // requests_total{outcome}
    counter requests_stop{0}, requests_length{0}, requests_cancelled{0}, requests_failed{0}, requests_rejected{0};
    // tokens
    counter prompt_tokens{0}, reused_tokens_device{0}, prefill_tokens{0}, replayed_tokens{0}, generated_tokens{0};
    // pools
    gauge pages_active{0}, pages_cached{0}, pages_free{0}, pages_total{0}, pages_touched{0}, dead_kv_pages{0};
    gauge state_slots_used{0}, state_slots_free{0};
    // movement (bytes)
    counter transfer_bytes_device_device{0};
    // policy
    counter preemptions_replay{0}, bypasses{0};
    counter reclaims_pages_shortage{0}, reclaims_pages_background{0}, reclaims_records_shortage{0},
        reclaims_records_background{0};
    counter captures_natural_end{0}, captures_input_point{0}, captures_input_point_skipped{0};
    // time
    latency_histogram ttft, inter_token, queue, cycle;
    // control plane, seen by Program: end of one unit (its last kernel, sampling, included) to start of the next, while
    // somebody could run; and the sum of that
    counter device_wait_ns{0};
    latency_histogram control_gap;
    // health
    std::atomic<std::int64_t> last_commit_ns{0};    // node clock; 0: none yet
    std::atomic<std::int64_t> work_since_ns{0};     // when the queue became non-empty; 0: idle
    std::atomic<bool> ready{false};
    gauge queue_length{0}, queue_limit{0}, lanes_used{0}, lanes_total{0};
};

}  // namespace fermata
