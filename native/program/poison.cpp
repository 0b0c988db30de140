// An invariant violation (a store refused a call that can't be wrong) costs the objects it touched and nothing else:
// the request ends with an error, the record is dropped, the rest keeps running (architecture 7). What a store then
// still counts for them stays counted: lost room is better than a page with two writers.
#include <stdexcept>

#include "native/program/core.hpp"

namespace fermata::program_detail {

// Ends the sequence with an internal error, told in its row of this cycle if it has one.
void program_core::poison(ticket who, const char* what, cycle_done& done) {
    sequence* seq = find(who);
    if (!seq) return;
    row_result* row = nullptr;
    for (row_result& each : done.rows)
        if (each.who == who) row = &each;
    if (!row) {
        row = &done.rows.emplace_back();
        row->who = who;
        row->frontier = token_pos(seq->frontier);
        row->generated = token_pos(seq->generated());
    }
    if (row->finish == finish_reason::none) {
        row->finish = finish_reason::error;
        row->failure = failure_kind::internal;
        row->error = std::string("internal: ") + what;
    }
    quarantine(*seq);
}

void program_core::quarantine(sequence& seq) {
    const ticket who = seq.who;
    try {
        forget(seq);
    } catch (const std::logic_error&) {
        for (sequence*& each : lanes_)
            if (each == &seq) each = nullptr;
        sequences_.erase(who);
        structure_changed();
    }
}

void program_core::guarded_release(checkpoint_id id) {
    try {
        drop(id);
    } catch (const std::logic_error&) {
        points_.erase(id);
        events_.emplace_back(std::in_place_type<checkpoint_dropped>, checkpoint_dropped{id});
        structure_changed();
    }
}

}  // namespace fermata::program_detail
