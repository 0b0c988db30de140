// Where Program's core sits between the lives of its actor. The core outlives the actor: when another actor of the node
// died, the core is swept clean and goes on; it is built anew only when the device itself failed.
//
// One actor at a time uses it. The buffers live here so that a steady cycle allocates nothing on this side.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "native/program.hpp"

namespace fermata {

struct program_seat {
    explicit program_seat(std::unique_ptr<program> engine) : core(std::move(engine)), copies(core->copies()) {}

    std::unique_ptr<program> core;
    std::shared_ptr<copy_engine> copies;
    cycle_done done;
    std::vector<context_event> events;

    std::unordered_set<ticket> live;          // bound or paused sequences, as far as answers told
    std::unordered_set<copy_id> copies_out;   // handed to Transfer, not answered

    void run(const cycle_plan& plan);         // fills `done`, keeps `live`
    bool next_copy(copy_order& order);
    bool complete(const copy_done& copy, program_notice& notice);

    // Ends every sequence and copy and drops every checkpoint. Empty when all of the device is free and consistent
    // again; else what is not.
    std::string sweep();

private:
    void settle(const bind_result& bind);
};

}  // namespace fermata
