// The node object's own part: the actor system it may own, and what it shares with the actors. Not for users.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <mutex>

#include "actors/node_state.hpp"

namespace fermata {

struct node::impl {
    node_state_ptr state = std::make_shared<node_state>();
    caf::actor_system* embedded = nullptr;
    std::unique_ptr<caf::actor_system_config> config;
    std::unique_ptr<caf::actor_system> own;
    supervisor_actor supervisor;
    gate_actor gate;
    std::atomic<std::uint16_t> port{0};
    std::atomic<std::uint64_t> requests{0};
    std::atomic<bool> started{false};
    model_card early_card;  // before the model is loaded
    std::mutex stop_mutex;
    bool stop_called = false;
    stop_report report;

    // Null: all requests together would keep more than they may.
    std::shared_ptr<byte_lease> room_for(std::uint64_t bytes) const {
        auto room = std::make_shared<byte_lease>(state->context->requests_bytes);
        return room->resize(bytes) ? room : nullptr;
    }
};

}  // namespace fermata
