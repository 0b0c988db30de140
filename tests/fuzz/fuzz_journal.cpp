// Any bytes as a journal: the reader names a fault or yields records, and a replay of them ends with a verdict.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "actors/journal/reader.hpp"
#include "actors/journal/replay.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    try {
        fermata::journal_reader reader(bytes);
        for (fermata::journal_record record; reader.next(record);) {}
        fermata::replay_journal(bytes);
    } catch (const fermata::wire::pack_error&) {
    }
    return 0;
}
