// What clients are told, held against what they asked and what the Scheduler published: the Frontend's promises, by
// books of their own. A request is accepted or rejected once, then come deltas, then one end; the enqueued specs are
// the request's own words; tokens and scores arrive complete and in order, text in whole characters, cut before a stop
// string; usage adds up (O2). Throws `broken_node`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bus.hpp"
#include "scenario.hpp"
#include "solo.hpp"

namespace fermata::simulation {

// A request as a client sends it, and what it comes to.
struct submission {
    submit request;
    std::vector<token_id> prompt;  // its tokens
    std::uint32_t max_tokens = 0;
    bool wrong = false;            // must be rejected with status 400
};

// The prompt of a conversation: all messages, and for chat what the template adds.
std::vector<token_id> prompt_of(prompt_kind kind, const std::vector<std::string>& messages);
std::string json_of(const std::vector<std::string>& messages);
// What can be sent again as text of one token a byte.
std::string letters_of(const std::string& text);
// Makes a request that can't be served.
void spoil(submission& s, random_source& random, std::uint32_t vocabulary);

class observer;

class delivery {
public:
    explicit delivery(const scenario& what) : scenario_(what) {}

    void announce(const submission& s);     // before it is sent
    void on_send(const envelope& m);        // every message, when sent
    void on_deliver(const envelope& m);     // and before it is handled
    void at_rest(const observer& watch, const telemetry& numbers) const;

    std::uint64_t refused = 0, left_early = 0, deltas = 0;  // refused: the early leavers too

private:
    struct choice {
        std::string text;
        answer heard;
        std::uint64_t prompt_scores = 0;
    };
    struct request {
        submission asked;
        bool cancelled = false;  // the Frontend knows
        bool draining = false;   // it came too late
        bool enqueued = false, begun = false, over = false, failed = false;
        std::uint16_t status = 0;
        std::string code;
        request_usage usage;
        std::map<std::uint32_t, choice> choices;
    };
    request& of(request_id id);
    void on_enqueue(const enqueue& order);
    void on_delta(const text_delta& delta);
    void on_rejected(const rejected& end);
    void finish(request& r, const request_usage& usage, bool failed);
    void check_answer(const request& r, const observer& watch) const;
    void check_choice(const request& r, std::uint32_t index, const observer& watch) const;
    void require(bool holds, request_id id, const std::string& what) const {
        if (!holds) throw broken_node("request " + std::to_string(id.value) + ", as its client sees it: " + what);
    }

    const scenario& scenario_;
    std::map<std::uint64_t, request> requests_;
    bool closed_ = false, scheduler_closed_ = false;
};

}  // namespace fermata::simulation
