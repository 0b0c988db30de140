// For applications that are CAF programs themselves: the typed door of a node in this process, and of one elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "actors/handles.hpp"
#include "actors/node.hpp"

namespace fermata {

// The Frontend of a started node. The handle stays good until that actor dies; watch it.
frontend_actor frontend_of(node& of);

// Connects to a node's CAF port, shows the schema hash and gets the Frontend. The system needs CAF's I/O module. None:
// `error` says why: not reachable within the deadline, another schema, not ready.
std::optional<frontend_actor> connect_to_node(caf::actor_system& system, const std::string& host, std::uint16_t port,
                                              std::chrono::milliseconds deadline, std::string& error);

// The same with a hash of the caller's choice: what a peer built from other messages would say.
std::optional<frontend_actor> connect_with_schema(caf::actor_system& system, const std::string& host,
                                                  std::uint16_t port, std::uint64_t schema,
                                                  std::chrono::milliseconds deadline, std::string& error);

}  // namespace fermata
