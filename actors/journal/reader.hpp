// Reads a journal back, record by record, from bytes that may come from anywhere: every fault is named with the record
// and the byte, nothing is allocated by a size the input claims. A record cut short at the very end is what a killed
// node leaves and no fault.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "actors/journal/journal.hpp"
#include "messages/wire/pack.hpp"

namespace fermata {

struct journal_tick {};
struct journal_loss {
    std::uint64_t records = 0;
};
struct journal_rotation {
    std::uint64_t files = 0;  // how many came before this file
};

struct journal_record {
    std::uint64_t number = 0;  // from 1
    std::size_t offset = 0;    // of its first byte
    time_ns time = 0;
    bus_party from = bus_party::node, to = bus_party::node;
    std::variant<bus_message, journal_tick, journal_loss, journal_rotation, journal_header> content;
};

class journal_reader {
public:
    explicit journal_reader(std::string_view bytes) : bytes_(bytes), from_(bytes) {}

    // False at the end. Throws wire::pack_error: "record 17 at byte 5120: ...".
    bool next(journal_record& record);
    // After the end: the last record was incomplete.
    bool cut_short() const noexcept { return cut_short_; }

private:
    void read(journal_record& record);

    std::string_view bytes_;
    wire::pack_reader from_;
    std::uint64_t count_ = 0;
    bool cut_short_ = false;
};

// FILE with the files before it (FILE.n ... FILE.1), oldest first, as one. Throws std::runtime_error naming the file
// that can't be read or is larger than `bytes_max` together.
std::string read_journal_files(const std::string& file, std::uint64_t bytes_max = std::uint64_t{4} << 30);

}  // namespace fermata
