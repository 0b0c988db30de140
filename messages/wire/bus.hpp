// One message of the bus, whichever it is, by name: what the journal and remote tools need. The code for all types is
// compiled once, behind these functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "messages/wire/pack.hpp"
#include "messages/wire/print.hpp"
#include "messages/wire/reflect.hpp"

namespace fermata::wire {

std::string_view type_name(const bus_message& x);

void write_bus(std::string& out, const bus_message& x);

// Nothing when no message has this name. Throws pack_error when the bytes are not that message.
std::optional<bus_message> read_bus(std::string_view type_name, pack_reader& from);

std::string print_bus(const bus_message& x, print_limits limits = {});

}  // namespace fermata::wire
