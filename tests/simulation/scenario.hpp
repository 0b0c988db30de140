// What one seed means: the sizes of the node, the habits of its clients, how long things take and what goes wrong.
// Pools are tiny on purpose: pressure, pauses and replay are the rule here.
#pragma once

#include <string>
#include <vector>

#include "random.hpp"
#include "wired_node.hpp"
#include "words.hpp"

namespace fermata::simulation {

struct client_habits {
    std::uint32_t clients = 4;
    std::uint32_t turns_max = 4;
    std::uint32_t prompt_max = 64;   // tokens
    std::uint32_t answer_max = 24;
    int cancel_percent = 15;
    int deadline_percent = 5;
    int fork_percent = 15;           // n > 1
    int random_sampling_percent = 50;
    int scoring_percent = 8;         // prompt log-probabilities
    time_ns think_max = 5'000'000;
    time_ns drain_at = 0;            // 0: never
    time_ns drain_grace = 0;
    int interrupt_percent = 0;       // units abandoned by the stop flag
    // With a Frontend:
    int text_percent = 0, chat_percent = 0;  // clients that send text or messages; the others send tokens
    int wrong_percent = 0;                   // requests that can't be served
};

struct scenario {
    std::uint64_t seed = 0;
    node_options node;
    client_habits habits;
    std::vector<std::vector<token_id>> shared_prefixes;
    words text;  // with a Frontend
    int copy_fails_percent = 0;
    time_ns copy_time_max = 200'000;
    time_ns hop_max = 20'000;
    time_ns unit_time_max = 400'000;
    std::uint32_t vocabulary = 64;

    std::string describe() const;
};

// `direct`: without a Frontend; the clients speak to the Scheduler in its place.
scenario draw_scenario(std::uint64_t seed, bool direct);

}  // namespace fermata::simulation
