// One seed, from start to rest: a node, its clients, time, and everything that must hold in the end.
#pragma once

#include <cstdint>
#include <string>

namespace fermata::simulation {

struct outcome {
    std::uint64_t seed = 0;
    std::string fault;          // empty: everything held
    std::uint64_t digest = 0;   // of every message, its time and contents: equal seeds, equal digests
    std::uint64_t events = 0, requests = 0, tokens = 0, pauses = 0, bypasses = 0, reuses = 0, copies = 0, stale = 0,
                  cycles = 0, drops = 0, deltas = 0, ended_by_client = 0, failures = 0, rejected = 0;
    std::string describe;
};

struct run_options {
    bool verbose = false;  // print every message
    bool direct = false;   // without a Frontend: clients speak to the Scheduler in its place
};

outcome run_seed(std::uint64_t seed, const run_options& options = {});

}  // namespace fermata::simulation
