// Program as an actor. It works inside its handler: one plan, one unit of device work, one answer. What happened to
// checkpoints goes to ResourceManager first, so that it knows before Scheduler can ask.
#include "actors/spawn.hpp"

namespace fermata {
namespace {

class program_shell final : public shell<program_actor> {
public:
    program_shell(caf::actor_config& config, context_ptr context, std::shared_ptr<program_seat> seat)
        : shell(config, std::move(context), bus_party::program), seat_(std::move(seat)) {}

    behavior_type make_behavior() override {
        return {
            [this](const cycle_plan& m) { on_plan(m); },
            [this](const copy_done& m) { on_copy(m); },
            [this](const meet& m) { peers_ = m.peers; },
            [this](const halt&) { leave(); },
        };
    }
    void on_exit() override { peers_.reset(); }

private:
    void on_plan(const cycle_plan& plan) {
        note(bus_party::scheduler, plan);
        seat_->run(plan);
        tell_events();
        for (copy_order order; seat_->next_copy(order);) bus::tell(this, peers_->transfer, std::move(order));
        bus::tell(this, peers_->scheduler, seat_->done);
        if (!seat_->done.device_failed) return;
        // The answer above ends what was running; the supervisor builds a new Program.
        context_->last_words(part_, "the device failed: " + seat_->done.error);
        this->quit(caf::make_error(caf::sec::runtime_error));
    }
    void on_copy(const copy_done& copy) {
        note(bus_party::transfer, copy);
        const bool tells = seat_->complete(copy, notice_);
        tell_events();
        if (tells) bus::tell(this, peers_->scheduler, notice_);
    }
    void tell_events() {
        auto& events = seat_->events;
        events.clear();
        seat_->core->take_events(events);
        for (auto& event : events)
            std::visit([&](auto& each) { bus::tell(this, peers_->resource_manager, std::move(each)); }, event);
    }

    std::shared_ptr<program_seat> seat_;
    std::shared_ptr<const peer_handles> peers_;
    program_notice notice_;
};

}  // namespace

program_actor spawn_program(caf::actor_system& system, context_ptr context, std::shared_ptr<program_seat> seat) {
    return system.spawn<program_shell>(std::move(context), std::move(seat));
}

}  // namespace fermata
