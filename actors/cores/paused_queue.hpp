// Paused sequences in ticket order, and the one recovery permit.
//
// M4: only the oldest may try to resume, once a capacity event; what its own pause released is no event for it.
// M5: one permit at a time; it ends with new work committed or a terminal state.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "actors/cores/sequence.hpp"

namespace fermata::scheduling {

class paused_queue {
public:
    void push(ticket who) { paused_.insert(who); }
    void remove(ticket who) { paused_.erase(who); }
    bool empty() const { return paused_.empty(); }
    std::size_t size() const { return paused_.size(); }
    std::optional<ticket> oldest() const {
        return paused_.empty() ? std::nullopt : std::optional<ticket>(*paused_.begin());
    }

    bool permit_free() const { return !holder_; }
    void hold_permit(ticket who) { holder_ = who; }
    // True when `who` held it.
    bool release_permit(ticket who) {
        if (holder_ != who) return false;
        holder_.reset();
        return true;
    }

private:
    std::set<ticket> paused_;
    std::optional<ticket> holder_;
};

}  // namespace fermata::scheduling
