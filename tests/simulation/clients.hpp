// The clients of one simulated node: conversations of a few turns over shared prefixes, forks, every sampling setting,
// cancels at random moments, deadlines. They submit tokens, text or messages to the Frontend and hear what it says;
// without one they speak to the Scheduler in its place.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "delivery.hpp"
#include "observer.hpp"
#include "scenario.hpp"

namespace fermata::simulation {

class clients {
public:
    clients(const scenario& what, bus& transport, delivery& told);

    void start();
    void on(const client_timer& timer, time_ns now);
    void on(const enqueue_result& result, time_ns now);
    void on(const outputs& rows, time_ns now);
    void on(const rejected& end, time_ns now);
    void on(const text_delta& delta, time_ns now);
    void on(const finished& end, time_ns now);
    void on(const failed& end, time_ns now);

private:
    struct client {
        prompt_kind kind = prompt_kind::tokens;
        std::vector<token_id> history;      // of a client that sends tokens
        std::vector<std::string> messages;  // of the others: user and assistant in turn
        std::string reply_text;
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
    void extend_conversation(client& c);
    submission submission_of(const client& c, const sequence_spec& drawn, std::uint32_t choices);
    void hear(std::uint32_t index, std::uint32_t choice, const std::vector<token_id>& tokens, time_ns now);
    void ended(std::uint64_t request, bool failed, time_ns now);
    sequence_spec draw_spec(const std::vector<token_id>& prompt);
    void draw_sampling(sampling_params& to);
    void draw_guard(guard_spec& to, std::uint32_t room);
    void finish_turn(std::uint32_t index, time_ns now);
    void cancel_now(client& c, time_ns now);
    std::pair<peer, peer> way() const {
        return scenario_.node.text ? std::pair{peer::client, peer::frontend} : std::pair{peer::frontend, peer::scheduler};
    }
    std::uint32_t client_of(std::uint64_t request) const { return owners_.at(request); }

    const scenario& scenario_;
    bus& bus_;
    delivery& told_;
    random_source random_;
    random_source more_;  // draws of those with a Frontend: they move nothing of the others
    std::vector<client> clients_;
    std::map<std::uint64_t, std::uint32_t> owners_;
    std::uint64_t next_request_ = 1;
};

}  // namespace fermata::simulation
