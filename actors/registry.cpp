// CAF 0.17 knows messages by names given to a configuration; every type of messages/all.hpp that travels alone gets
// its own.
#include "actors/handles.hpp"

namespace fermata {

void register_messages(caf::actor_system_config& config) {
#if FERMATA_CAF_1
    (void)config;
#else
    wire::for_each_type(bus_messages{}, [&]<class T>(std::type_identity<T>) {
        config.add_message_type<T>("fermata::" + std::string(T::type_name));
    });
    config.add_message_type<client_actor>("fermata::client_actor");
    config.add_message_type<frontend_actor>("fermata::frontend_actor");
    config.add_message_type<gate_actor>("fermata::gate_actor");
#endif
}

}  // namespace fermata
