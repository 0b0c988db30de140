// Actor systems and CAF's network, the heavy headers of CAF in one place.
#include <set>

#include <caf/io/middleman.hpp>

#include "actors/handles.hpp"

namespace fermata::bus {

namespace {

template <class Handle>
std::set<std::string> interface_of(caf::actor_system& system) {
    return system.message_types<Handle>();
}

}  // namespace

std::unique_ptr<caf::actor_system_config> make_config(std::size_t workers, bool with_network) {
    register_types_of_caf<caf::io::middleman>();
    auto config = std::make_unique<caf::actor_system_config>();
    configure_scheduler(*config, workers);
    register_messages(*config);
    if (with_network) config->load<caf::io::middleman>();
    return config;
}

template <class Handle>
std::uint16_t publish(caf::actor_system& system, const Handle& whom, const std::string& host, std::uint16_t port,
                      std::string& error) {
    if (!system.has_middleman()) {
        error = "this actor system was made without CAF's I/O module (config.load<caf::io::middleman>())";
        return 0;
    }
    auto result = system.middleman().publish(whom, port, host.c_str(), true);
    if (result) return *result;
    error = to_string(result.error());
    return 0;
}

template <class Handle>
void unpublish(caf::actor_system& system, const Handle& whom, std::uint16_t port) {
    if (port != 0) system.middleman().unpublish(whom, port);
}

template <class Handle>
std::optional<Handle> connect(caf::actor_system& system, const std::string& host, std::uint16_t port,
                              std::chrono::nanoseconds deadline, std::string& error) {
    if (!system.has_middleman()) {
        error = "this actor system was made without CAF's I/O module (config.load<caf::io::middleman>())";
        return std::nullopt;
    }
    // The middleman is an actor: asked with a deadline, because a peer may accept and then say nothing.
    std::optional<Handle> found;
    const auto own_types = interface_of<Handle>(system);
    auto good = [&](const caf::node_id&, caf::strong_actor_ptr& whom, const std::set<std::string>& speaks) {
        if (!whom) error = "nothing is published there";
        else if (!system.assignable(speaks, own_types)) error = "what is published there is not a node's gate";
        else found = caf::actor_cast<Handle>(whom);
    };
    ask_then(system, system.middleman().actor_handle(), deadline, error, good, connect_word(), host, port);
    return found;
}

template std::uint16_t publish(caf::actor_system&, const gate_actor&, const std::string&, std::uint16_t, std::string&);
template void unpublish(caf::actor_system&, const gate_actor&, std::uint16_t);
template std::optional<gate_actor> connect(caf::actor_system&, const std::string&, std::uint16_t,
                                           std::chrono::nanoseconds, std::string&);

}  // namespace fermata::bus
