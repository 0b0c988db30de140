// Scheduler as an actor: messages in, the core's commands out, and the timer the core asks for.
#include "actors/spawn.hpp"

namespace fermata {
namespace {

class scheduler_shell final : public shell<scheduler_actor> {
public:
    scheduler_shell(caf::actor_config& config, context_ptr context, std::shared_ptr<scheduler> core)
        : shell(config, std::move(context), bus_party::scheduler), core_(std::move(core)) {}

    behavior_type make_behavior() override {
        return {
            [this](const fermata::enqueue& m) { take(bus_party::frontend, m); },
            [this](const cancel_request& m) { take(bus_party::frontend, m); },
            [this](const cycle_done& m) { take(bus_party::program, m); },
            [this](const program_notice& m) { take(bus_party::program, m); },
            [this](const source_chosen& m) { take(bus_party::resource_manager, m); },
            [this](const victims_chosen& m) { take(bus_party::resource_manager, m); },
            [this](const drain& m) { take(bus_party::node, m); },
            [this](const tick_message&) { on_tick(); },
            [this](const meet& m) { peers_ = m.peers; },
            [this](const halt&) { leave(); },
        };
    }
    void on_exit() override { peers_.reset(); }

private:
    template <message M>
    void take(bus_party from, const M& message) {
        const time_ns now = note(from, message);
        core_->on(message, now, commands_);
        carry_out(now);
    }
    void on_tick() {
        const time_ns now = context_->clock();
        if (context_->journal) context_->journal->record_tick(now);
        core_->on(tick{}, now, commands_);
        carry_out(now);
    }
    void carry_out(time_ns now) {
        for (auto& command : commands_) std::visit([&](auto& each) { put(each, now); }, command);
        commands_.clear();
    }
    void put(cycle_plan& m, time_ns) { bus::tell(this, peers_->program, std::move(m)); }
    void put(choose_source& m, time_ns) { bus::tell(this, peers_->resource_manager, std::move(m)); }
    void put(choose_victims& m, time_ns) { bus::tell(this, peers_->resource_manager, std::move(m)); }
    void put(outputs& m, time_ns) { bus::tell(this, peers_->frontend, std::move(m)); }
    void put(enqueue_result& m, time_ns) { bus::tell(this, peers_->frontend, std::move(m)); }
    void put(drained& m, time_ns) { bus::tell(this, peers_->supervisor, std::move(m)); }
    void put(const wake_at& m, time_ns now) {
        bus::tell_self_after(this, std::chrono::nanoseconds(m.when > now ? m.when - now : 0), tick_message{});
    }

    std::shared_ptr<scheduler> core_;
    std::shared_ptr<const peer_handles> peers_;
    scheduler::commands commands_;
};

}  // namespace

scheduler_actor spawn_scheduler(caf::actor_system& system, context_ptr context, std::shared_ptr<scheduler> core) {
    return system.spawn<scheduler_shell>(std::move(context), std::move(core));
}

}  // namespace fermata
