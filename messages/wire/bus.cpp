// The adapters over the whole bus.
#include "messages/wire/bus.hpp"

#include "messages/wire/msgpack.hpp"

namespace fermata::wire {

std::string_view type_name(const bus_message& x) {
    return std::visit([]<class T>(const T&) { return T::type_name; }, x);
}

void write_bus(std::string& out, const bus_message& x) {
    std::visit([&](const auto& each) { write_msgpack(out, each); }, x);
}

std::optional<bus_message> read_bus(std::string_view type_name, pack_reader& from) {
    std::optional<bus_message> result;
    for_each_type(bus_messages{}, [&]<class T>(std::type_identity<T>) {
        if (result || T::type_name != type_name) return;
        T message;
        read_msgpack(from, message);
        result.emplace(std::move(message));
    });
    return result;
}

std::string print_bus(const bus_message& x, print_limits limits) { return print(x, limits); }

}  // namespace fermata::wire
