// Transfer as an actor: runs the copies its core starts, in its handler, beside Program's units. Leases keep the two
// apart, so no lock is taken.
#include "actors/spawn.hpp"

namespace fermata {
namespace {

class transfer_shell final : public shell<transfer_actor> {
public:
    transfer_shell(caf::actor_config& config, context_ptr context, std::shared_ptr<program_seat> seat)
        : shell(config, std::move(context), bus_party::transfer), engine_(seat->copies) {}

    behavior_type make_behavior() override {
        return {
            [this](const copy_order& m) { on_order(m); },
            [this](const meet& m) { peers_ = m.peers; },
            [this](const halt&) { leave(); },
        };
    }
    void on_exit() override { peers_.reset(); }

private:
    void on_order(const copy_order& order) {
        note(bus_party::program, order);
        core_.on(order, commands_);
        // A finished copy may start the next: the list grows while it is walked.
        for (std::size_t i = 0; i < commands_.size(); ++i) {
            if (auto* start = std::get_if<start_copy>(&commands_[i])) core_.on(engine_->run(start->order), commands_);
            else bus::tell(this, peers_->program, std::get<copy_done>(commands_[i]));
        }
        commands_.clear();
    }

    std::shared_ptr<copy_engine> engine_;
    std::shared_ptr<const peer_handles> peers_;
    transfer core_;
    transfer::commands commands_;
};

}  // namespace

transfer_actor spawn_transfer(caf::actor_system& system, context_ptr context, std::shared_ptr<program_seat> seat) {
    return system.spawn<transfer_shell>(std::move(context), std::move(seat));
}

}  // namespace fermata
