// A whole node on the simulator's bus: the real cores of Frontend, Scheduler, ResourceManager and Transfer, the real
// preparation of requests, and the real Program on the oracle model. What is sent to `peer::client` and `peer::node`
// is handed back to the driver; so is what is sent to `peer::frontend` when the options hold no text model (then the
// driver speaks in the Frontend's place).
//
// `handle` gives one message to the actor it is addressed to and sends what that actor answers. After every step
// that may have touched Program's stores, `check_integrity()` must be empty (throws `broken_node`).
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "actors/cores/frontend.hpp"
#include "actors/cores/resource_manager.hpp"
#include "actors/cores/scheduler.hpp"
#include "actors/cores/transfer.hpp"
#include "bus.hpp"
#include "native/models/oracle/oracle.hpp"
#include "native/program.hpp"

namespace fermata::simulation {

struct broken_node : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct node_options {
    scheduler_options scheduling;
    program_options device;
    oracle::options model;
    std::uint32_t tail_copy_tokens_min = 4;
    std::uint32_t parallel_copies = 1;
    std::shared_ptr<const text_model> text;  // null: no Frontend
    std::uint32_t requests_max = 4096;       // of the Frontend
};

// How long things take and what goes wrong; the defaults are instantaneous and never fail.
struct node_timing {
    std::function<time_ns(peer from, peer to)> hop = [](peer, peer) { return time_ns{0}; };
    std::function<time_ns(const cycle_plan&)> unit = [](const cycle_plan&) { return time_ns{0}; };
    std::function<time_ns(const copy_order&)> copy = [](const copy_order&) { return time_ns{0}; };
    std::function<bool(const copy_order&)> copy_fails = [](const copy_order&) { return false; };
    std::function<bool(const copy_order&)> copies_late = [](const copy_order&) { return true; };  // bytes move at the end
    std::function<time_ns()> preparing = [] { return time_ns{0}; };  // several at once: the order isn't kept
};

class wired_node {
public:
    wired_node(const node_options& options, node_timing timing, bus& transport);

    // False when the message is for the driver (frontend, node, client).
    bool handle(const envelope& message);
    time_ns busy_until(peer who) const { return who == peer::program ? program_busy_until_ : 0; }
    void set_time(time_ns now) { now_ = now; }
    time_ns now() const { return now_; }

    frontend_core* clerk() { return frontend_.get(); }
    scheduler& scheduling() { return *scheduler_; }
    resource_manager& resources() { return *resources_; }
    transfer& copying() { return transfer_; }
    program& device() { return *program_; }
    telemetry& numbers() { return *numbers_; }

    // Script: delivers the oldest message between two actors, at once.
    envelope deliver(peer from, peer to);
    // Script: delivers whatever waits for the node's actors, in order of sending, until nothing does.
    void settle();

private:
    template <class Event>
    void to_scheduler(const Event& event);
    bool to_frontend(const envelope& message);
    void carry_out(frontend_commands& commands);
    void run_cycle(const cycle_plan& plan);
    void complete_copy(const copy_done& done);
    void send_context_events();
    void send_copies();
    void start(const transfer::commands& commands);
    void check();
    void send(peer from, peer to, bus_message message, time_ns extra = 0);

    node_timing timing_;
    bus& bus_;
    time_ns now_ = 0;
    time_ns program_busy_until_ = 0;
    std::shared_ptr<telemetry> numbers_;
    std::unique_ptr<program> program_;
    std::unique_ptr<frontend_core> frontend_;
    std::shared_ptr<const text_model> text_;
    planning_limits limits_;
    std::unique_ptr<scheduler> scheduler_;
    std::unique_ptr<resource_manager> resources_;
    transfer transfer_;
    std::shared_ptr<copy_engine> engine_;
    std::map<copy_id, copy_order> copies_running_;
    std::map<copy_id, copy_done> copies_made_;
    std::vector<context_event> events_;
};

}  // namespace fermata::simulation
