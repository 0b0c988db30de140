// The journal: each message of the bus as one msgpack record, written beside the actors and never in their way. A bug
// report is a journal file.
//
// A message is recorded once, by its receiver, before the receiver acts on it and with the very time the receiver
// takes for now. So the records to one core are that core's events, in its order; what the core told others comes
// later in the file (never earlier), recorded by those others.
//
// A file is a sequence of msgpack maps: first a `journal_header`, then records
//   {"time": ns, "from": party, "to": party, "type": name, "payload": the message as a map}
// A tick of the Scheduler's timer has type "tick" and payload nil; {"time", "dropped": n} says that n records did not
// fit the queue; {"time", "rotated": n} opens a file that continues another.
//
// A journal that can't be written (a full disk) is broken from then on: what follows is counted as dropped, and the node
// goes on. What stands in the file stays readable. A file of an earlier run is kept: it becomes FILE.1 like a full one.
//
// Without text, token ids are replaced by a random one-to-one map made for this journal and stored nowhere, names of
// sessions by numbers, and every other string by its length ("<12 bytes>").
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "messages/serving.hpp"
#include "messages/wire/reflect.hpp"

namespace fermata {

enum class bus_party : std::uint8_t {
    client, frontend, preparer, scheduler, resource_manager, program, transfer, node
};

struct journal_options {
    std::string file;                          // empty: no journal
    bool text = false;                         // --journal-text
    std::uint64_t file_bytes_max = 256u << 20;  // then the file becomes FILE.1 (FILE.1 becomes FILE.2, ...)
    std::uint32_t files_max = 4;               // FILE and its predecessors; older ones are removed
    std::uint32_t queue_records_max = 16384;   // waiting for the writer; beyond, records are dropped and counted
    std::uint64_t queue_bytes_max = 64u << 20;  // of what they hold, texts and tokens; likewise
    std::function<void(const std::string&)> warn;  // one line when the journal breaks; from the writer's thread; may be null
};

// What a replay has to know of the run. Stands first in each file.
struct journal_header {
    std::string format = "fermata-journal";
    std::uint32_t version = 1;
    std::uint64_t schema = 0;  // hash of all field lists
    bool text = false;
    std::uint32_t vocabulary = 0;
    std::uint32_t max_concurrency = 0, page_tokens = 0, prefill_chunk_tokens = 0, batch_tokens = 0;
    std::uint32_t request_tokens_max = 0, max_pending = 0, tail_copy_tokens_min = 0;
    bool attention_only = true;
    time_ns pending_timeout = 0, copy_timeout = 0;
    double tau_high = 0, tau_admit = 0, tau_low = 0;
    std::shared_ptr<const program_view> view;  // Program's first picture
    static constexpr std::string_view type_name = "journal_header";
    static constexpr auto fields() {
        using t = journal_header;
        return std::tuple{field("format", &t::format), field("version", &t::version), field("schema", &t::schema),
                          field("text", &t::text), field("vocabulary", &t::vocabulary),
                          field("max_concurrency", &t::max_concurrency), field("page_tokens", &t::page_tokens),
                          field("prefill_chunk_tokens", &t::prefill_chunk_tokens),
                          field("batch_tokens", &t::batch_tokens), field("request_tokens_max", &t::request_tokens_max),
                          field("max_pending", &t::max_pending),
                          field("tail_copy_tokens_min", &t::tail_copy_tokens_min),
                          field("attention_only", &t::attention_only),
                          field("pending_timeout", &t::pending_timeout), field("copy_timeout", &t::copy_timeout),
                          field("tau_high", &t::tau_high), field("tau_admit", &t::tau_admit),
                          field("tau_low", &t::tau_low), field("view", &t::view)};
    }
};

class journal_writer {
public:
    // Throws std::runtime_error naming the file when it can't be written.
    journal_writer(journal_options options, journal_header header);
    ~journal_writer();  // writes what is queued
    journal_writer(const journal_writer&) = delete;
    journal_writer& operator=(const journal_writer&) = delete;

    // From any thread; takes a copy, returns at once.
    void record(time_ns time, bus_party from, bus_party to, bus_message message);
    void record_tick(time_ns time);

    // The cores start anew: what follows is read with this header and fresh cores.
    void begin_life(journal_header header);

    // Everything recorded before is in the file when it returns. For tests and shutdown.
    void flush();
    std::uint64_t dropped() const;  // records that are in no file
    bool broken() const;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace fermata
