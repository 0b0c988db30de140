// Replay: the recorded messages are fed to fresh cores, at the recorded times, and what the cores say is compared with
// what was said then. The first command that differs is the end; the way to it is the bug report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/journal/journal.hpp"

namespace fermata {

enum class replay_core : std::uint8_t { both, scheduler, resource_manager };

struct replay_difference {
    std::uint64_t record = 0;  // its number in the journal, from 1
    time_ns time = 0;
    std::string core;          // "scheduler" or "resource_manager"
    std::string recorded;      // as printed; empty: the core said something that is not in the journal
    std::string replayed;      // empty: the core said nothing here
    std::string field;         // first field that differs
};

struct replay_result {
    std::uint64_t records = 0;   // read
    std::uint64_t fed = 0;       // events given to the cores
    std::uint64_t compared = 0;  // commands that agreed
    std::uint64_t open = 0;      // commands at the end whose receipt was not recorded any more
    std::uint64_t lives = 0;     // the cores were started so many times
    std::optional<replay_difference> difference;
    std::optional<std::uint64_t> cut_record;  // the number of the last record, where the file ends within it
    std::string stopped;         // why the journal could not be followed to its end; empty: it was
    bool identical() const { return !difference && stopped.empty(); }
    // One line: "identical, 1234 messages", or what differs and where.
    std::string text() const;
};

// Throws wire::pack_error when the bytes are no journal.
replay_result replay_journal(std::string_view bytes, replay_core which = replay_core::both);

// FILE with its predecessors. Throws std::runtime_error too.
replay_result replay_journal_file(const std::string& file, replay_core which = replay_core::both);

}  // namespace fermata
