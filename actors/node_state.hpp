// What the node object, its supervisor and its gate share. The node object belongs to its user's threads, the
// supervisor is an actor; this is all that both touch.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <string>

#include "actors/node.hpp"
#include "actors/program_seat.hpp"
#include "actors/shell.hpp"

namespace fermata {

enum class node_phase : std::uint8_t { loading, running, restarting, stopping, stopped, broken };

struct seat_facts {
    memory_plan plan;
    model_layout layout;
};

struct node_state {
    node_options options;
    context_ptr context;
    std::shared_ptr<const text_model> text;
    caf::actor_system* system = nullptr;

    // Fixed by start(), before any actor lives.
    model_card card;
    std::shared_ptr<program_seat> seat;  // the supervisor's alone from then on

    std::atomic<node_phase> phase{node_phase::loading};
    std::atomic<std::uint32_t> restarts{0};

    frontend_inner frontend() const {
        std::lock_guard lock(mutex_);
        return frontend_;
    }
    void set_frontend(frontend_inner handle) {
        std::lock_guard lock(mutex_);
        frontend_ = std::move(handle);
    }
    // The wiring of the running life. For tests and tools; actors get it in `meet`.
    std::shared_ptr<const peer_handles> peers() const {
        std::lock_guard lock(mutex_);
        return peers_;
    }
    void set_peers(std::shared_ptr<const peer_handles> peers) {
        std::lock_guard lock(mutex_);
        peers_ = std::move(peers);
    }
    // Of the Program in the seat; null before the first. Another Program brings another picture: this one stays as it is.
    std::shared_ptr<const seat_facts> facts() const {
        std::lock_guard lock(mutex_);
        return facts_;
    }
    void set_facts(std::shared_ptr<const seat_facts> facts) {
        std::lock_guard lock(mutex_);
        facts_ = std::move(facts);
    }
    std::string trouble() const {
        std::lock_guard lock(mutex_);
        return trouble_;
    }
    void set_trouble(std::string text) {
        std::lock_guard lock(mutex_);
        trouble_ = std::move(text);
    }
    void say(const std::string& line) const {
        if (options.log) options.log(line);
    }

    std::promise<void> spawned;
    std::promise<stop_report> stopped;

private:
    mutable std::mutex mutex_;  // held for a copy of a handle or a line, never longer
    frontend_inner frontend_;
    std::shared_ptr<const peer_handles> peers_;
    std::shared_ptr<const seat_facts> facts_;
    std::string trouble_;
};

using node_state_ptr = std::shared_ptr<node_state>;

// A Program on a fresh model, warmed up; sets the facts. Throws what the model or Program throws.
std::shared_ptr<program_seat> make_seat(node_state& state);

// Spawns everything and watches over it.
supervisor_actor spawn_supervisor(node_state_ptr state);

journal_header header_of(const node_state& state);

}  // namespace fermata
