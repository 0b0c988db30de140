#include "actors/journal/reader.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <vector>

#include "messages/wire/bus.hpp"
#include "messages/wire/msgpack.hpp"

namespace fermata {
namespace {

bus_party party(wire::pack_reader& from) {
    const auto name = from.text();
    for (std::size_t i = 0; i < wire::enum_size<bus_party>; ++i)
        if (wire::enum_names<bus_party>[i] == name) return static_cast<bus_party>(i);
    throw wire::pack_error("\"" + std::string(name.substr(0, 40)) + "\" is no party of the bus");
}

}  // namespace

bool journal_reader::next(journal_record& record) {
    if (from_.done()) return false;
    const auto start = from_;
    record.number = ++count_;
    record.offset = from_.offset();
    try {
        auto ahead = from_;
        ahead.skip();
    } catch (const wire::pack_end&) {
        cut_short_ = true;
        from_ = wire::pack_reader({});
        return false;
    } catch (const wire::pack_error& error) {
        throw wire::pack_error("record " + std::to_string(count_) + " at byte " + std::to_string(start.offset()) + ": " +
                               error.what());
    }
    try {
        read(record);
    } catch (const wire::pack_error& error) {
        throw wire::pack_error("record " + std::to_string(count_) + " at byte " + std::to_string(start.offset()) + ": " +
                               error.what());
    }
    return true;
}

void journal_reader::read(journal_record& record) {
    {
        auto ahead = from_;
        if (ahead.map() == 0) throw wire::pack_error("an empty map is no record");
        if (ahead.text() == "format") {
            journal_header header;
            wire::read_msgpack(from_, header);
            if (header.format != "fermata-journal")
                throw wire::pack_error("format \"" + header.format.substr(0, 40) + "\", expected \"fermata-journal\"");
            record.content = std::move(header);
            return;
        }
    }
    record.time = 0;
    record.from = record.to = bus_party::node;
    std::string_view type;
    bool typed = false, filled = false;
    for (auto pairs = from_.map(); pairs > 0; --pairs) {
        const auto key = from_.text();
        using limits = std::numeric_limits<time_ns>;
        if (key == "time") {
            record.time = from_.signed_integer(limits::min(), limits::max());
        } else if (key == "from") {
            record.from = party(from_);
        } else if (key == "to") {
            record.to = party(from_);
        } else if (key == "type") {
            type = from_.text();
            typed = true;
        } else if (key == "dropped" || key == "rotated") {
            const auto n = from_.unsigned_integer(std::numeric_limits<std::uint64_t>::max());
            if (key == "dropped") record.content = journal_loss{n};
            else record.content = journal_rotation{n};
            filled = true;
        } else if (key == "payload") {
            if (!typed) throw wire::pack_error("the payload comes before its type");
            if (type == "tick") {
                from_.nil();
                record.content = journal_tick{};
            } else if (auto message = wire::read_bus(type, from_)) {
                record.content = std::move(*message);
            } else {
                throw wire::pack_error("\"" + std::string(type.substr(0, 40)) + "\" is no message of the bus");
            }
            filled = true;
        } else {
            from_.skip();
        }
    }
    if (!filled) throw wire::pack_error("payload: missing");
}

std::string read_journal_files(const std::string& file, std::uint64_t bytes_max) {
    const auto append = [&](std::string& all, const std::string& name, bool must_exist) {
        std::ifstream in(name, std::ios::binary);
        if (!in) {
            if (must_exist) throw std::runtime_error("journal " + name + ": can't be read: " + std::strerror(errno));
            return false;
        }
        std::vector<char> part(1 << 20);
        while (in) {
            in.read(part.data(), static_cast<std::streamsize>(part.size()));
            const auto got = static_cast<std::size_t>(in.gcount());
            if (all.size() + got > bytes_max)
                throw std::runtime_error("journal " + file + ": larger than " + std::to_string(bytes_max) + " bytes");
            all.append(part.data(), got);
        }
        return true;
    };
    std::string newest;
    append(newest, file, true);
    // Only a file that says it continues another has predecessors that belong to it.
    journal_reader reader(newest);
    journal_record record;
    std::uint64_t before = 0;
    for (int i = 0; i < 2 && reader.next(record); ++i)
        if (const auto* rotated = std::get_if<journal_rotation>(&record.content)) before = rotated->files;
    std::string all;
    std::uint64_t oldest = 0;
    while (oldest < before && std::ifstream(file + "." + std::to_string(oldest + 1))) ++oldest;
    for (std::uint64_t i = oldest; i > 0; --i) append(all, file + "." + std::to_string(i), true);
    if (all.size() + newest.size() > bytes_max)
        throw std::runtime_error("journal " + file + ": larger than " + std::to_string(bytes_max) + " bytes");
    return all + newest;
}

}  // namespace fermata
