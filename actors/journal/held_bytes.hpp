// How much memory a message keeps alive, roughly: itself, its texts, lists and what it shares. For the limit of the
// journal's queue; what several messages share counts in each.
#pragma once

#include <cstddef>

#include "messages/wire/bus.hpp"

namespace fermata {

std::size_t held_bytes(const bus_message& message);

}  // namespace fermata
