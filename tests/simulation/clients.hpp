// The clients of one simulated node: conversations of a few turns over shared prefixes, forks, every sampling setting,
// cancels at random moments, deadlines. They see only what a Frontend would see.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "observer.hpp"
#include "scenario.hpp"

namespace fermata::simulation {

class clients {
public:
    clients(const scenario& what, bus& transport, observer& watch);

    void start();
    void on(const client_timer& timer, time_ns now);
    void on(const enqueue_result& result, time_ns now);
    void on(const outputs& rows, time_ns now);

private:
    struct client {
        std::vector<token_id> history;
        std::uint32_t turns_left = 0;
        std::uint64_t request = 0;   // under way
        std::uint32_t choices_open = 0;
        std::vector<token_id> reply;  // of choice 0
        bool cancelled = false, failed = false;
        std::uint32_t cancel_after_tokens = 0;
    };
    enum action : std::uint32_t { next_turn, cancel };

    void send_turn(std::uint32_t index, time_ns now);
    void extend_history(client& c);
    sequence_spec draw_spec(const std::vector<token_id>& prompt);
    void draw_sampling(sampling_params& to);
    void draw_guard(guard_spec& to, std::uint32_t room);
    void finish_turn(std::uint32_t index, time_ns now);
    void cancel_now(client& c, time_ns now);
    std::uint32_t client_of(std::uint64_t request) const { return owners_.at(request); }

    const scenario& scenario_;
    bus& bus_;
    observer& watch_;
    random_source random_;
    std::vector<client> clients_;
    std::map<std::uint64_t, std::uint32_t> owners_;
    std::uint64_t next_request_ = 1;
};

}  // namespace fermata::simulation
