// How each actor comes to life. The node uses these; an application that wires its own node may as well.
#pragma once

#include <memory>
#include <vector>

#include "actors/cores/frontend.hpp"
#include "actors/cores/resource_manager.hpp"
#include "actors/cores/scheduler.hpp"
#include "actors/cores/transfer.hpp"
#include "actors/handles.hpp"
#include "actors/program_seat.hpp"
#include "actors/shell.hpp"
#include "frontend/planning/planner.hpp"

namespace fermata {

struct preparer_setup {
    std::shared_ptr<const text_model> text;
    planning_limits limits;
};

scheduler_actor spawn_scheduler(caf::actor_system& system, context_ptr context, std::shared_ptr<scheduler> core);
resource_manager_actor spawn_resource_manager(caf::actor_system& system, context_ptr context,
                                              std::shared_ptr<resource_manager> core);
program_actor spawn_program(caf::actor_system& system, context_ptr context, std::shared_ptr<program_seat> seat);
transfer_actor spawn_transfer(caf::actor_system& system, context_ptr context, std::shared_ptr<program_seat> seat);
frontend_inner spawn_frontend(caf::actor_system& system, context_ptr context, std::shared_ptr<frontend_core> core);
preparer_actor spawn_preparer(caf::actor_system& system, context_ptr context, preparer_setup setup);
gate_actor spawn_gate(caf::actor_system& system, context_ptr context, std::function<frontend_actor()> frontend);

}  // namespace fermata
