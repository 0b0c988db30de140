// The simulator's bus: messages between the actors of one node, in one thread. Between two actors order is kept;
// between different pairs it is whatever the driver says. Two drivers use it:
//
// - a script delivers by hand: `deliver(from, to)` hands over the oldest message of that pair, so a race is written
//   down in both orders;
// - the simulator gives each message a time of arrival and delivers the earliest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/cores/frontend.hpp"
#include "actors/cores/scheduler.hpp"
#include "messages/all.hpp"

namespace fermata::simulation {

enum class peer : std::uint8_t { client, frontend, scheduler, resources, program, transfer, copier, node, preparer };

constexpr const char* name_of(peer who) {
    constexpr const char* names[] = {"client",  "frontend", "scheduler", "resources",
                                     "program", "transfer", "copier",    "node",     "preparer"};
    return names[static_cast<std::size_t>(who)];
}

// A client's own clock: what it does next. Meaning belongs to the workload.
struct client_timer {
    std::uint32_t client = 0;
    std::uint32_t action = 0;
    std::uint64_t argument = 0;
};

using bus_message =
    std::variant<enqueue, enqueue_result, cancel_request, outputs, drain, drained, cycle_plan, cycle_done,
                 program_notice, choose_source, source_chosen, choose_victims, victims_chosen, checkpoint_published,
                 checkpoint_dropped, checkpoint_adopted, copy_order, copy_done, tick, client_timer, submit,
                 hand_to_preparer, prepared, accepted, rejected, text_delta, finished, failed>;

struct envelope {
    peer from{}, to{};
    bus_message message;
    time_ns due = 0;
    std::uint64_t number = 0;  // order of sending
};

class bus {
public:
    using pair = std::pair<peer, peer>;

    // Arrives at `due`, or right after the message before it between these two.
    void send(peer from, peer to, bus_message message, time_ns due = 0) {
        auto& line = lines_[{from, to}];
        if (!line.empty()) due = std::max(due, line.back().due);
        line.push_back({from, to, std::move(message), due, ++sent_});
        if (watch) watch(line.back());
    }
    // Sees every message when it is sent.
    std::function<void(const envelope&)> watch;

    // A timer: not ordered with anything.
    void set_timer(peer who, bus_message message, time_ns due) {
        ++sent_;
        timers_.emplace(std::pair{due, sent_}, envelope{who, who, std::move(message), due, sent_});
    }

    bool waiting(peer from, peer to) const {
        const auto it = lines_.find({from, to});
        return it != lines_.end() && !it->second.empty();
    }
    const bus_message* front(peer from, peer to) const {
        return waiting(from, to) ? &lines_.at({from, to}).front().message : nullptr;
    }
    envelope take(peer from, peer to) {
        if (!waiting(from, to))
            throw std::logic_error(std::string("no message from ") + name_of(from) + " to " + name_of(to));
        auto& line = lines_[{from, to}];
        envelope first = std::move(line.front());
        line.pop_front();
        return first;
    }
    // The earliest message or timer; `busy_until(peer)` holds back what is meant for a busy actor.
    template <class BusyUntil>
    std::optional<envelope> take_earliest(BusyUntil&& busy_until) {
        const pair* best = nullptr;
        std::pair<time_ns, std::uint64_t> best_key{};
        for (const auto& [between, line] : lines_) {
            if (line.empty()) continue;
            const std::pair key{std::max(line.front().due, busy_until(between.second)), line.front().number};
            if (!best || key < best_key) best = &between, best_key = key;
        }
        if (!timers_.empty() && (!best || timers_.begin()->first < best_key)) {
            envelope first = std::move(timers_.begin()->second);
            timers_.erase(timers_.begin());
            return first;
        }
        if (!best) return std::nullopt;
        envelope first = take(best->first, best->second);
        first.due = best_key.first;
        return first;
    }
    bool empty() const {
        return timers_.empty() &&
               std::all_of(lines_.begin(), lines_.end(), [](const auto& each) { return each.second.empty(); });
    }
    std::uint64_t sent() const { return sent_; }

private:
    std::map<pair, std::deque<envelope>> lines_;
    std::map<std::pair<time_ns, std::uint64_t>, envelope> timers_;
    std::uint64_t sent_ = 0;
};

}  // namespace fermata::simulation
