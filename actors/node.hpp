// A node: one device, one resident model, the five actors. It wires them, watches over them, stops them in order, and
// is the gateway of everything in this process that speaks for clients. This header needs no CAF.
//
// Invariants: no request is lost without a word - each sink hears an end, whatever dies; an actor that died makes the
// node unready until it is replaced; the Program is built anew only when the device itself failed; nothing here blocks
// a cycle. `health()` and `numbers()` read atomics and answer however busy the device is.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "actors/cores/frontend.hpp"
#include "actors/cores/resource_manager.hpp"
#include "actors/cores/scheduler.hpp"
#include "actors/journal/journal.hpp"
#include "frontend/gateway.hpp"
#include "frontend/planning/planner.hpp"
#include "native/program.hpp"

namespace caf {
class actor_system;
}

namespace fermata {

struct node_options {
    // The model, at start and again after the device failed. Throws what should be told to whoever starts the node.
    std::function<std::unique_ptr<model>()> load_model;
    std::shared_ptr<const text_model> text;  // null: token ids only

    // What the parts are to do. The node fills in what follows from the model and from each other: limits of planning,
    // lanes, page size, the largest prompt, token bytes for the guard, clock and numbers.
    program_options program;
    scheduler_options scheduler;
    resource_manager_options resource_manager;
    frontend_options frontend;
    planning_limits planning;
    std::string model_id = "model", model_root = "model";

    std::uint32_t workers = 0;       // of an actor system of its own; 0: enough (at least 4)
    std::uint32_t preparers = 2;     // prompts rendered and tokenised at once
    std::uint32_t restarts_max = 8;  // of the core actors; then the node stays broken and says so
    std::uint32_t restart_forgiven_s = 600;  // a node that ran so long has one restart more again
    std::uint32_t restart_delay_ms = 1000;  // between tries to build a Program whose device failed
    std::uint32_t stall_limit_s = 60;  // work is there, nothing was committed for so long: /health is 503 (fault 88)
    bool warm_up = true;             // run one small request through the device before the node is ready

    // Peers that are actors. 0 picks a free port. Binds to `caf_host`.
    bool caf_publish = false;
    std::uint16_t caf_port = 0;
    std::string caf_host = "127.0.0.1";

    journal_options journal;
    std::function<time_ns()> clock;                       // null: the machine's monotonic clock
    std::function<void(const std::string&)> log;          // one line about an event of the node; null: nowhere
};

struct stop_report {
    std::uint32_t cut_short = 0;  // requests ended because the grace time was over
    bool in_order = true;         // false: an actor did not leave in time and was left behind
};

class node final : public gateway {
public:
    // Checks nothing, starts nothing. `embedded`: an application's actor system, whose configuration went through
    // `register_messages` (actors/handles.hpp); it must outlive the node. Null: a system of its own.
    explicit node(node_options options, caf::actor_system* embedded = nullptr);
    ~node() override;  // stop() without grace

    // Loads the model, makes Program, warms up, spawns and publishes. Throws what the parts throw. `health()` may be
    // asked from other threads meanwhile.
    void start();

    // No new requests from now on; accepted ones may finish within `grace`; then the actors leave in order: ingress
    // first, Program last. Blocks. The second call does nothing.
    stop_report stop(std::chrono::milliseconds grace);

    // gateway
    request_id next_request() override;
    void submit_request(submit request, std::shared_ptr<client_sink> sink) override;
    void cancel(request_id request) override;
    void tokenize(tokenize_text text, std::function<void(tokenized)> done) override;
    void detokenize(detokenize_tokens tokens, std::function<void(detokenized)> done) override;
    const model_card& model() const override;  // complete once started
    health_report health() const override;
    std::shared_ptr<const telemetry> numbers() const override;

    // After start(), from any thread. After a device failed they may change: to those of the Program built anew.
    memory_plan plan() const;
    model_layout layout() const;
    std::uint16_t published_port() const;  // 0: not published
    std::uint32_t restarts() const;

    // For actors/handles.hpp users: see actors/embed.hpp.
    struct impl;
    impl& inside() { return *impl_; }

private:
    std::unique_ptr<impl> impl_;
};

}  // namespace fermata
