// The whole vocabulary as text and as one number. CAF peers exchange the number when they connect and refuse a
// mismatch: nodes of different builds never misread each other's messages.
#pragma once

#include <cstdint>
#include <string>

namespace fermata::wire {

// One line a type: "cycle_plan{cycle:cycle_tag/u64,cancels:[ticket_tag/u64],...}". Names, types and order of all
// fields, names and order of all enumerators.
const std::string& schema_text();

// FNV-1a, 64 bits, of schema_text().
std::uint64_t schema_hash();

}  // namespace fermata::wire
