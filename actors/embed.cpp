#include "actors/embed.hpp"

#include "actors/node_impl.hpp"
#include "messages/wire/schema.hpp"

namespace fermata {

frontend_actor frontend_of(node& of) { return of.inside().state->frontend(); }

std::optional<frontend_actor> connect_to_node(caf::actor_system& system, const std::string& host, std::uint16_t port,
                                              std::chrono::milliseconds deadline, std::string& error) {
    return connect_with_schema(system, host, port, wire::schema_hash(), deadline, error);
}

std::optional<frontend_actor> connect_with_schema(caf::actor_system& system, const std::string& host,
                                                  std::uint16_t port, std::uint64_t schema,
                                                  std::chrono::milliseconds deadline, std::string& error) {
    const std::string where = host + ":" + std::to_string(port);
    auto gate = bus::connect<gate_actor>(system, host, port, deadline, error);
    if (!gate) {
        error = "no node at " + where + ": " + error;
        return std::nullopt;
    }
    auto frontend = bus::ask<frontend_actor>(system, *gate, deadline, error, schema);
    if (!frontend) error = "the node at " + where + " refused: " + error;
    return frontend;
}

}  // namespace fermata
