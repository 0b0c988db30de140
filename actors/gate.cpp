// The published door. A peer says the hash of its field lists; only who speaks the same messages gets the Frontend.
#include "actors/spawn.hpp"
#include "messages/wire/schema.hpp"

namespace fermata {
namespace {

class gate_shell final : public shell<gate_actor> {
public:
    gate_shell(caf::actor_config& config, context_ptr context, std::function<frontend_actor()> frontend)
        : shell(config, std::move(context), bus_party::node), frontend_(std::move(frontend)) {}

    behavior_type make_behavior() override {
        return {[this](std::uint64_t hash) { return enter(hash); }};
    }

private:
    caf::result<frontend_actor> enter(std::uint64_t hash) {
        if (hash != wire::schema_hash())
            return caf::make_error(caf::sec::incompatible_versions,
                                   "this node's messages have schema " + std::to_string(wire::schema_hash()) +
                                       ", the peer's " + std::to_string(hash) + "; both must be built from one version");
        auto frontend = frontend_();
        if (!frontend) return caf::make_error(caf::sec::cannot_connect_to_node, "the node is not ready");
        return frontend;
    }
    std::function<frontend_actor()> frontend_;
};

}  // namespace

gate_actor spawn_gate(caf::actor_system& system, context_ptr context, std::function<frontend_actor()> frontend) {
    return system.spawn<gate_shell>(std::move(context), std::move(frontend));
}

}  // namespace fermata
