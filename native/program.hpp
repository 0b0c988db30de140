// Program: the only source of physical truth, and the only door of native. It owns the model, ledgers, frontiers,
// page tables, checkpoints, both stores and the unit permits, and serialises every context transaction and all
// device work. No threads of its own, no CAF: one caller at a time.
//
// Invariants: a plan is checked against facts when it runs, never trusted; an order is executed whole or not at
// all; a page with more than one reference is never written (G7); nothing here chooses a victim (C6).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "messages/context.hpp"
#include "messages/cycle.hpp"
#include "messages/ids.hpp"
#include "messages/serving.hpp"
#include "messages/telemetry.hpp"
#include "messages/transfer.hpp"
#include "native/model.hpp"

namespace fermata {

// The bytes of each token and the ids that end an answer: all the token guard needs of text.
struct token_table {
    std::vector<std::string> bytes;               // empty string: no text (special)
    std::vector<token_id> end_of_generation;
};

struct program_options {
    std::uint32_t max_context_tokens = 8192;      // of one request; rounded to nothing, checked against the model
    std::uint64_t kv_capacity_tokens = 0;         // 0: auto = max_concurrency * max_context, within kv_bytes_max
    std::uint64_t kv_bytes_max = 0;               // bound for auto; 0: none
    std::uint32_t max_concurrency = 8;            // C
    std::uint32_t device_state_slots = 8;         // extra StateImages beside the C basic ones
    std::uint32_t prefill_chunk_tokens = 512;
    std::uint32_t batch_tokens = 1024;
    std::shared_ptr<const token_table> tokens;    // may be null: no stop strings, no end ids (tests)
    std::shared_ptr<telemetry> numbers;           // may be null
    std::function<time_ns()> clock;               // may be null: gaps aren't measured
};

// What Program tells ResourceManager; collected during a cycle, in order.
using context_event = std::variant<checkpoint_published, checkpoint_dropped, checkpoint_adopted>;

// Copies bytes between pages and slots for Transfer. Thread-safe against Program's units: leases keep them apart.
class copy_engine {
public:
    virtual ~copy_engine() = default;
    virtual copy_done run(const copy_order& order) = 0;
};

struct memory_plan {  // bytes, printed at start
    std::uint64_t weights = 0, kv = 0, states = 0, workspace = 0, logits = 0;
    std::uint32_t pages = 0, page_tokens = 0;
    std::uint32_t smallest_reusable_prefix_tokens = 0;
    std::uint32_t largest_request_tokens = 0;
};

class program {
public:
    // Throws std::invalid_argument that names the option and both ends of its range (B2).
    program(program_options options, std::unique_ptr<model> family);
    ~program();
    program(const program&) = delete;
    program& operator=(const program&) = delete;

    // Runs one cycle. `done` is overwritten; its vectors keep their capacity, so a steady decode cycle allocates
    // nothing here.
    void run_cycle(const cycle_plan& plan, cycle_done& done);

    // Transfer's side. `next_copy` hands out submitted copies, oldest first, each once.
    bool next_copy(copy_order& order);
    // Tells of a finished copy; true when `notice` has something for the Scheduler.
    bool complete(const copy_done& copy, program_notice& notice);
    std::shared_ptr<copy_engine> copies();

    // What happened to checkpoints since the last call, in order.
    void take_events(std::vector<context_event>& events);

    std::shared_ptr<const program_view> view() const;
    const model_layout& layout() const;
    const program_options& options() const;
    memory_plan plan() const;

    // Raised from any thread: the unit under way is abandoned between two layers and commits nothing.
    std::atomic<bool>& stop_flag();

    // Every store, table, count and lease agrees: empty; else what does not. For tests, the simulator, `inspect`.
    std::string check_integrity() const;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace fermata
