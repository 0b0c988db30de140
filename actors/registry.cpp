// Which types travel: CAF is told of them here, in one place for both its versions.
#include "actors/handles.hpp"

namespace fermata {

void register_messages(caf::actor_system_config& config) {
    bus::register_types<bus_remote_types, bus_local_types>(config);
}

}  // namespace fermata
