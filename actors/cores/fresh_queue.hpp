// Requests that were never bound, in ticket order, with bounded bypass.
//
// E1: a request is overtaken by at most C successful younger ones; from then on nobody younger is offered before it.
// E2: a scan offers the head and at most C younger ones, each once a capacity event; what failed on an event waits
//     for the next, and a scan that ran out of lanes goes on where it stopped.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "actors/cores/request_table.hpp"

namespace fermata::scheduling {

class fresh_queue {
public:
    explicit fresh_queue(std::uint32_t bypass_max) : bypass_max_(bypass_max) {}

    // Keeps ticket order: a sequence whose first bind came undone goes back to its place.
    void push(ticket who);
    void remove(ticket who);
    // A bind of `who` succeeded: it leaves, and everyone older that stays was overtaken once. Returns how many.
    std::uint32_t admitted(ticket who, request_table& table);

    // The next candidate not in `taken` (this turn's fresh tries), or none. `may_try` says whether it is worth a try now:
    // not failed on this event, not waiting for a sibling.
    std::optional<ticket> next(const std::vector<ticket>& taken, const request_table& table,
                               const std::function<bool(const sequence&)>& may_try) const;

    bool empty() const { return queue_.empty(); }
    std::size_t size() const { return queue_.size(); }
    ticket head() const { return queue_.front(); }
    const std::deque<ticket>& tickets() const { return queue_; }
    std::uint64_t version() const { return version_; }  // moves with the membership

private:
    std::uint32_t bypass_max_;
    std::deque<ticket> queue_;
    std::uint64_t version_ = 1;
};

}  // namespace fermata::scheduling
