// The order of a cycle: cancels, drops, pauses, binds, then one unit of decode rows and chunks, then the answer.
#include <algorithm>

#include "native/program/core.hpp"

namespace fermata::program_detail {

program_core::program_core(program_options options, std::unique_ptr<model> family)
    : options_(std::move(options)), model_(std::move(family)), limits_(check_options(options_, model_->layout())),
      memory_(std::make_shared<device_memory>(model_->layout(), model_->device(), limits_.pages, limits_.state_slots)),
      engine_(make_copy_engine(memory_)), states_(limits_.state_slots), copies_(pools_, states_),
      lanes_(limits_.lanes, nullptr), sampler_(model_->layout().vocabulary),
      logits_((std::size_t{limits_.lanes} + limits_.score_rows) * model_->layout().vocabulary * sizeof(float),
              "logits") {
    for (std::size_t i = 0; i < layout().pools.size(); ++i)
        pools_.push_back(std::make_unique<page_store>(limits_.pages));
    model_->prepare(options_.batch_tokens, limits_.lanes);
    model_->attach(memory_->addresses());
    members_.reserve(limits_.lanes);
    rows_.reserve(limits_.lanes);
}

program_core::~program_core() = default;

void program_core::run_cycle(const cycle_plan& plan, cycle_done& done) {
    const time_ns begin = now();
    done.cycle = plan.cycle;
    done.binds.clear();
    done.pauses.clear();
    done.shortages.clear();
    done.rows.clear();
    done.device_failed = false;
    done.error.clear();

    for (ticket who : plan.cancels)
        if (sequence* seq = find(who)) quarantine(*seq);  // nothing of it becomes a resume point
    for (checkpoint_id id : plan.drops) guarded_release(id);
    for (ticket who : plan.pauses) guarded(who, done, [&] { pause(who, done); });
    for (const bind_order& order : plan.binds) guarded(order.who, done, [&] { bind(order, done); });
    collect_rows(plan, done);
    if (!members_.empty()) run_unit(done);
    // The gap to the next unit counts as long as somebody could have run in it.
    work_was_left_ = work_was_left_ && std::any_of(lanes_.begin(), lanes_.end(), [](const sequence* seq) {
        return seq && seq->at == stage::bound;
    });
    answer(done);
    if (options_.numbers && options_.clock) options_.numbers->cycle.observe(now() - begin);
}

void program_core::drop(checkpoint_id id) {
    if (checkpoint* point = points_.find(id)) leave(*point);
}

// A sequence that waits for a copy, or holds the recovery permit, is never paused (M2): the order is passed over.
void program_core::pause(ticket who, cycle_done& done) {
    sequence* seq = find(who);
    if (!seq || seq->at != stage::bound || seq->recovering) return;
    pause_result result;
    result.who = who;
    result.decoding = seq->answering();
    result.ledger = token_run({seq->ledger.begin(), seq->ledger.begin() + seq->frontier});
    unbind(*seq);
    done.pauses.push_back(std::move(result));
}

void program_core::answer(cycle_done& done) {
    done.view = unreported_view();
    done.at = epoch_;
    done.room = room();
    done.copies_in_flight = copies_.in_flight();
    set_gauges();
}

void program_core::take_events(std::vector<context_event>& events) {
    events.clear();
    events.swap(events_);
}

}  // namespace fermata::program_detail
