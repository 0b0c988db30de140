// How much memory this process may still take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fermata::cli {

// Bytes that are available to this process: what the system has, within the limit of its control group (version 2). Nothing
// where the system doesn't say.
std::optional<std::uint64_t> available_bytes();

// Texts of /proc/meminfo and of the group's memory.max, memory.current and memory.stat; empty: there is none.
struct memory_texts {
    std::string machine, group_max, group_current, group_stat;
};
std::optional<std::uint64_t> available_bytes(const memory_texts& texts);

}  // namespace fermata::cli
