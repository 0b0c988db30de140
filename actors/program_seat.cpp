#include "actors/program_seat.hpp"

namespace fermata {

void program_seat::settle(const bind_result& bind) {
    if (bind.outcome == bind_outcome::bound || bind.outcome == bind_outcome::copying) live.insert(bind.who);
}

void program_seat::run(const cycle_plan& plan) {
    core->run_cycle(plan, done);
    for (ticket who : plan.cancels) live.erase(who);
    for (const bind_result& bind : done.binds) settle(bind);
    for (const row_result& row : done.rows)
        if (row.finish != finish_reason::none) live.erase(row.who);
}

bool program_seat::next_copy(copy_order& order) {
    if (!core->next_copy(order)) return false;
    copies_out.insert(order.copy);
    return true;
}

bool program_seat::complete(const copy_done& copy, program_notice& notice) {
    copies_out.erase(copy.copy);
    const bool tells = core->complete(copy, notice);
    if (tells)
        for (const bind_result& bind : notice.binds) settle(bind);
    return tells;
}

std::string program_seat::sweep() {
    program_notice notice;
    // Copies that nobody carries any more: those handed out, and those still to be.
    for (copy_order order; next_copy(order);) {}
    const auto out = copies_out;
    for (copy_id each : out) complete(copy_done{each, false, "the node restarts"}, notice);

    cycle_plan plan;
    plan.cancels.assign(live.begin(), live.end());
    run(plan);
    if (done.device_failed) return done.error;
    plan = {};
    for (const point_view& each : core->view()->points) plan.drops.push_back(each.checkpoint);
    run(plan);
    if (done.device_failed) return done.error;
    core->take_events(events);  // nobody is left to be told
    events.clear();
    if (auto fault = core->check_integrity(); !fault.empty()) return fault;
    const occupancy& room = done.room;
    if (room.pages_free != room.pages_total) return std::to_string(room.pages_total - room.pages_free) + " pages stay taken";
    return {};
}

}  // namespace fermata
