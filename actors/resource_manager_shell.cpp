// ResourceManager as an actor: Scheduler's questions answered, Program's news taken.
#include "actors/spawn.hpp"

namespace fermata {
namespace {

class resource_manager_shell final : public shell<resource_manager_actor> {
public:
    resource_manager_shell(caf::actor_config& config, context_ptr context, std::shared_ptr<resource_manager> core)
        : shell(config, std::move(context), bus_party::resource_manager), core_(std::move(core)) {}

    behavior_type make_behavior() override {
        return {
            [this](const choose_source& m) { answer(m); },
            [this](const choose_victims& m) { answer(m); },
            [this](const checkpoint_published& m) { take(m); },
            [this](const checkpoint_dropped& m) { take(m); },
            [this](const checkpoint_adopted& m) { take(m); },
            [this](const meet& m) { peers_ = m.peers; },
            [this](const halt&) { leave(); },
        };
    }
    void on_exit() override { peers_.reset(); }

private:
    template <message M>
    void answer(const M& question) {
        note(bus_party::scheduler, question);
        bus::tell(this, peers_->scheduler, core_->on(question));
    }
    template <message M>
    void take(const M& event) {
        note(bus_party::program, event);
        core_->on(event);
    }

    std::shared_ptr<resource_manager> core_;
    std::shared_ptr<const peer_handles> peers_;
};

}  // namespace

resource_manager_actor spawn_resource_manager(caf::actor_system& system, context_ptr context,
                                              std::shared_ptr<resource_manager> core) {
    return system.spawn<resource_manager_shell>(std::move(context), std::move(core));
}

}  // namespace fermata
