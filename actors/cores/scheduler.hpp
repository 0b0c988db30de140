// The Scheduler: who runs this cycle. A pure core: one event in, a short list of commands out; no clock, no threads.
//
// Invariants: one turn at a time, numbered; while it waits for ResourceManager or Program no second decision starts,
// and answers of other turns are ignored (D6). Steady decode is one exchange with Program a cycle and nothing else.
// Work that exists is always on its way: a unit runs, a copy is in flight, or something is paused, dropped or ended in
// this very turn (D4). Every accepted sequence gets exactly one terminal output.
//
// Parts: request_table (records), fresh_queue (FIFO, bounded bypass), paused_queue (recovery), lane_table,
// cycle_planner (units), pressure (who gives way). This class is the turn that connects them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "actors/cores/cycle_planner.hpp"
#include "actors/cores/fresh_queue.hpp"
#include "actors/cores/lane_table.hpp"
#include "actors/cores/paused_queue.hpp"
#include "actors/cores/request_table.hpp"
#include "messages/context.hpp"
#include "messages/cycle.hpp"
#include "messages/serving.hpp"
#include "messages/telemetry.hpp"

namespace fermata {

struct scheduler_options {
    std::uint32_t max_concurrency = 8;         // C: lanes, and the bound of bypassing
    std::uint32_t page_tokens = 64;
    std::uint32_t prefill_chunk_tokens = 512;
    std::uint32_t batch_tokens = 1024;         // more than max_concurrency
    std::uint32_t request_tokens_max = 0;      // largest prompt the pool can ever hold (memory_plan); 0: Program decides
    bool attention_only = true;                // siblings may share prompt pages at any position
    std::uint32_t max_pending = 256;           // requests waiting for their first bind
    time_ns pending_timeout = 600'000'000'000;
    time_ns copy_timeout = 60'000'000'000;     // a bind that waits longer for its copy is given up (D4)
    double tau_high = 0.88, tau_admit = 0.80;  // share of pages only a pause could free: no fresh admission above
    double tau_low = 0.05;                     // fewer free pages: cache is reclaimed before anyone is short (Q1)
    std::shared_ptr<telemetry> numbers;        // may be null
};

// Asks the shell for a `tick` at that time. A later one replaces nothing: spurious ticks are harmless.
struct wake_at {
    time_ns when = 0;
};
struct tick {};

// The receiver follows from the type: cycle_plan -> Program, choose_* -> ResourceManager, outputs and enqueue_result
// -> Frontend, drained -> node, wake_at -> the shell's timer.
using scheduler_command =
    std::variant<cycle_plan, choose_source, choose_victims, outputs, enqueue_result, drained, wake_at>;

class scheduler {
public:
    using commands = std::vector<scheduler_command>;

    // `view`: Program's first picture, may be null (an empty device). Throws std::invalid_argument.
    scheduler(scheduler_options options, std::shared_ptr<const program_view> view);

    // Each appends its commands to `out`, in the order they must be sent: the device's next work first.
    void on(const enqueue& event, time_ns now, commands& out);
    void on(const cancel_request& event, time_ns now, commands& out);
    void on(const cycle_done& event, time_ns now, commands& out);
    void on(const program_notice& event, time_ns now, commands& out);
    void on(const source_chosen& event, time_ns now, commands& out);
    void on(const victims_chosen& event, time_ns now, commands& out);
    void on(const drain& event, time_ns now, commands& out);
    void on(const tick& event, time_ns now, commands& out);

    // Nothing queued, running, paused or being ended.
    bool quiet() const;

    struct figures {  // for tests, `inspect` and the simulator
        std::uint32_t lanes_used = 0;
        std::size_t queued = 0, paused = 0, live = 0;
        std::uint64_t turns = 0, plans = 0, bypasses = 0, pauses = 0, watchdog_ends = 0;
        std::uint32_t overtaken_max = 0;
        bool waiting = false;  // an exchange is under way
    };
    figures look() const;

private:
    using sequence = scheduling::sequence;
    using phase = scheduling::phase;
    enum class stage : std::uint8_t { idle, choosing_source, choosing_victims, running };
    struct ending {  // ended here, not yet forgotten by Program
        ticket who{};
        std::optional<lane> where;
        bool sent = false;
    };

    // events (scheduler.cpp)
    void finish_event(time_ns now, commands& out, bool turn_was_open = false);
    void expire(time_ns now);
    void end_for_time(ticket who, failure_kind why, std::string text, time_ns now);
    void end(sequence& s, finish_reason finish, failure_kind failure, std::string text, time_ns now);
    void publish(const sequence& s, row_result row, failure_kind failure);
    void count_outcome(request_id request, finish_reason finish);
    void forget(sequence& s);
    void fail_all(failure_kind why, const std::string& text, time_ns now);
    void set_wake(time_ns now, commands& out);
    void update_gauges(time_ns now);
    refusal refuses();
    std::uint32_t pending_requests();
    std::optional<ticket> longest_queued() const;

    // answers of Program (scheduler_answers.cpp)
    void take_room(const occupancy& room, std::uint32_t copies);
    bool settle_endings();
    void take_pause(const pause_result& result);
    bool take_bind(const bind_result& result, time_ns now);
    void take_bound(sequence& s, const bind_result& result, time_ns now);
    void bind_undone(sequence& s);
    bool bind_short(sequence& s, time_ns now);
    void take_shortage(const shortage& result, time_ns now);
    bool take_row(const row_result& result, time_ns now);
    void note_token(sequence& s, const row_result& result, time_ns now);
    void note_progress(bool moved, time_ns now);
    void release_lane(sequence& s);
    void end_permit(const sequence& s);
    void capacity_event() { ++event_; }

    // the turn (scheduler_turn.cpp)
    void open_turn(time_ns now, commands& out);
    void proceed(time_ns now, commands& out);
    bool choose_tries(commands& out);
    std::optional<ticket> restore_candidate();
    std::optional<ticket> fresh_candidate();
    std::optional<ticket> last_resort_candidate();
    bool ask_source(sequence& s, commands& out);
    bool settle_room(time_ns now, commands& out);
    bool ask_victims(std::uint32_t pages, std::uint32_t slots, bool background, commands& out);
    std::optional<std::int64_t> cover_residents(std::int64_t pages, time_ns now);
    std::int64_t pages_missing() const;
    std::uint32_t slots_missing() const;
    bool relieve(sequence& s, bool beyond, time_ns now);
    void pause_for(const sequence& s, ticket whom);
    bool fit_tries(std::int64_t pages);
    void give_up_try(std::size_t index);
    bool gate_open();
    bool anyone_short() const;
    bool copying() const;
    bool alone() const { return residents_.empty() && endings_.empty() && copies_in_flight_ == 0; }
    std::uint32_t unit_pages(const sequence& s) const;
    std::uint32_t bind_pages(const sequence& s) const;
    std::vector<const sequence*> residents() const;
    std::vector<sequence*> service_order();
    bool in_plan(const sequence& s) const;
    void send_plan(time_ns now, commands& out);
    void add_binds(time_ns now);
    void add_units();

    scheduler_options options_;
    scheduling::request_table table_;
    scheduling::fresh_queue fresh_;
    scheduling::paused_queue paused_;
    scheduling::lane_table lanes_;
    std::vector<ticket> residents_;  // ticket order: binding excluded, copying included
    std::vector<ending> endings_;
    std::unordered_map<request_id, finish_reason> outcomes_;  // so far, of requests some of whose choices have ended

    // facts from Program
    std::shared_ptr<const program_view> view_;
    occupancy room_;
    bool room_known_ = false;
    std::uint32_t copies_in_flight_ = 0;
    std::uint64_t event_ = 1;  // capacity events so far

    std::uint64_t pending_version_ = 0;  // of the queue that `pending_` was counted in
    std::uint32_t pending_ = 0;

    // the turn under way
    stage stage_ = stage::idle;
    std::uint64_t turn_ = 0;
    cycle_plan draft_;
    std::vector<ticket> tries_;        // binds of this turn, in order
    std::optional<ticket> pause_for_;  // for whose sake the draft pauses somebody
    std::optional<ticket> asking_;     // whose source is being chosen
    std::optional<victims_chosen> victims_;
    bool background_ = false;  // they are asked for ahead of need
    std::shared_ptr<const program_view> asked_view_;  // the picture that question was about
    std::size_t kept_ = 0;             // sources that question spared
    bool restore_seen_ = false;        // the oldest paused one had its chance this turn
    bool tries_done_ = false;
    bool last_resort_ = false;         // D4: the only try is alone and must succeed or end
    bool gate_closed_ = false;
    std::shared_ptr<const program_view> barren_view_;  // background reclaim found nothing in this picture
    std::uint32_t barren_ = 0;         // exchanges in a row that moved nothing

    std::vector<choice_output> pending_outputs_;
    bool draining_ = false, drained_sent_ = false, broken_ = false;
    time_ns grace_until_ = 0;
    std::uint32_t cut_short_ = 0;
    time_ns wake_set_ = 0;
    figures figures_;
};

}  // namespace fermata
