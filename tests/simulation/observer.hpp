// Watches the bus and holds the node to rules that can be seen from outside: bounded bypass (E1), batch size (D5),
// who is paused and who resumes (M2, M4), nobody left out of a unit (fault 73), one exchange at a time (D6), what
// ResourceManager answers (A4, K2, K3, K4), pages that copies read or write (N4), exactly one end a choice and in time
// (O1), usage and counters (O2). It keeps books of its own and shares no code with what it checks. Throws `broken_node`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "bus.hpp"
#include "scenario.hpp"
#include "solo.hpp"

namespace fermata::simulation {

struct choice_record {
    std::shared_ptr<const sequence_spec> spec;
    ticket who{};           // once bound
    bool bound = false, counted = false, ran = false, ended = false;
    std::uint32_t overtaken = 0;
    std::uint64_t prompt_computed = 0, replayed = 0;
    bool short_now = false;     // in the last answer
    bool waits_short = false;   // since its last row
    bool running = false;       // bound, not copying, not paused
    std::uint32_t frontier = 0, reached = 0;
    std::uint32_t plans_without = 0;  // a chunk, while it could have had one
    answer got;
    failure_kind failure = failure_kind::none;
    sequence_usage usage;
    time_ns accepted_at = 0, ended_at = 0, deadline = 0;
};

class observer {
public:
    using key = std::pair<std::uint64_t, std::uint32_t>;  // request, choice

    observer(const scenario& what, const wired_node& node) : scenario_(what), node_(node) {}

    void on_send(const envelope& m);            // every message, when sent
    void on_deliver(const envelope& m);         // and before it is handled
    // `left_early`: requests cancelled before the Scheduler knew them.
    void at_rest(const telemetry& numbers, const scheduler::figures& figures, std::uint64_t left_early) const;

    std::map<key, choice_record> choices;       // accepted ones
    std::vector<key> arrival;                   // in ticket order
    std::uint64_t digest = 0xcbf29ce484222325ull;
    std::uint64_t pauses = 0, bypasses = 0, reuses = 0, copies = 0, stale = 0, cycles = 0, drops = 0, rejected = 0;
    std::uint64_t stops_raised = 0, units_abandoned = 0;  // the first is told by whoever raises the flag

private:
    void on_question(const envelope& m);
    void on_source(const source_chosen& answer) const;
    void on_victims(const victims_chosen& answer) const;
    void on_copy(const copy_order& order);
    void check_view(const program_view* view) const;
    void learn(const bus_message& message);
    void on_plan(const cycle_plan& plan);
    void on_done(const cycle_done& done);
    void on_bound(const bind_result& bind);
    void check_unit(const cycle_done& done);
    void check_fairness(const cycle_done& done);
    void on_row(const row_result& row);
    void on_outputs(const outputs& rows);
    void end(choice_record& choice, const choice_output& row);
    choice_record* of(ticket who);
    void fold(std::uint64_t value) { digest = (digest ^ value) * 0x100000001b3ull; }
    void require(bool holds, const std::string& what) const {
        if (!holds) throw broken_node(what);
    }

    const scenario& scenario_;
    const wired_node& node_;
    std::map<std::uint64_t, enqueue> announced_;
    std::map<ticket, key> tickets_;
    std::set<ticket> paused_, copying_;
    std::map<checkpoint_id, checkpoint_published> published_;
    std::map<copy_id, copy_order> copies_running_;  // from submission until Program heard of the end
    // How ResourceManager must rank: never reused before reused, then by last use, as it heard of them.
    std::map<checkpoint_id, std::pair<bool, std::uint64_t>> worth_;
    std::set<ticket> heirs_;
    std::uint64_t heard_ = 0;
    std::optional<ticket> recovering_;
    std::optional<choose_source> source_question_;
    std::optional<choose_victims> victims_question_;
    cycle_plan plan_;            // the last one
    std::vector<ticket> ready_;  // who could have a unit when it was sent
    int exchanges_ = 0;  // Scheduler's, under way
    std::uint64_t total_prefill_ = 0, total_generated_ = 0, total_replayed_ = 0;
};

}  // namespace fermata::simulation
