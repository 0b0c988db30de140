// The journal of a busy node replays without a difference; one changed record is named; text stays out of it unless
// asked for; a full queue and a full file are said, never waited for.
#include <doctest/doctest.h>

#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <set>

#include "actors/journal/mask.hpp"
#include "actors/journal/reader.hpp"
#include "actors/journal/replay.hpp"
#include "messages/wire/bus.hpp"
#include "messages/wire/msgpack.hpp"
#include "messages/wire/schema.hpp"
#include "../messages/random_content.hpp"
#include "node_support.hpp"

using namespace fermata;
using namespace fermata::test;

namespace {

// Lanes for two, pages for little more: pauses, replays, reclaims, reuse, cancels.
void busy_run(const std::string& file, bool text) {
    std::remove(file.c_str());
    auto options = small_node();
    options.program.max_concurrency = 3;
    options.program.max_context_tokens = 256;
    options.program.kv_capacity_tokens = 256;
    options.scheduler.tau_high = options.scheduler.tau_admit = 1;  // let too many in
    options.journal.file = file;
    options.journal.text = text;
    node server(std::move(options));
    server.start();
    std::vector<std::shared_ptr<collecting_sink>> sinks;
    for (token_id i = 0; i < 24; ++i) {
        request_id id;
        auto sink = std::make_shared<collecting_sink>();
        id = server.next_request();
        auto request = token_request(id, some_prompt(20 + static_cast<std::size_t>(i % 5) * 9, i % 4), 110);
        request.session = "conversation of " + std::to_string(i % 3);
        request.stop = {"secret stop"};
        if (i % 6 == 5) request.n = 2;
        server.submit_request(request, sink);
        if (i % 7 == 3) server.cancel(id);
        sinks.push_back(sink);
    }
    for (auto& sink : sinks) REQUIRE(sink->wait_end());
    auto again = send(server, some_prompt(56, 3), 30);
    REQUIRE(again->wait_end());
    server.stop(5s);
}

std::vector<journal_record> all_records(std::string_view bytes) {
    journal_reader reader(bytes);
    std::vector<journal_record> records;
    for (journal_record each; reader.next(each);) records.push_back(each);
    return records;
}

journal_header plain_header() {
    journal_header header;
    header.schema = wire::schema_hash();
    header.max_concurrency = 2;
    header.page_tokens = 16;
    header.prefill_chunk_tokens = 64;
    header.batch_tokens = 128;
    header.max_pending = 8;
    header.pending_timeout = header.copy_timeout = 1'000'000'000;
    header.tau_high = 0.9, header.tau_admit = 0.8, header.tau_low = 0.05;
    header.tail_copy_tokens_min = 16;
    return header;
}

}  // namespace

TEST_CASE("a busy run replays without a difference, masked and with text") {
    for (bool text : {false, true}) {
        const std::string file = text ? "busy_text.journal" : "busy.journal";
        busy_run(file, text);
        const auto bytes = read_journal_files(file);
        for (auto which : {replay_core::both, replay_core::scheduler, replay_core::resource_manager}) {
            const auto result = replay_journal(bytes, which);
            CHECK_MESSAGE(result.identical(), result.text());
            CHECK(result.compared > 20);
            CHECK(result.lives == 1);
            if (which == replay_core::both) CHECK(result.text() == "identical, " + std::to_string(result.compared) + " messages");
        }
        // It was busy: pauses and binds happened.
        std::set<std::string> seen;
        for (const auto& record : all_records(bytes))
            if (const auto* message = std::get_if<bus_message>(&record.content))
                if (const auto* plan = std::get_if<cycle_plan>(message)) {
                    if (!plan->pauses.empty()) seen.insert("pause");
                    if (!plan->drops.empty()) seen.insert("drop");
                    if (!plan->cancels.empty()) seen.insert("cancel");
                }
        CHECK(seen.count("pause") == 1);
        // What a reader of the file can and can't see.
        CHECK((bytes.find("secret stop") != std::string::npos) == text);
        CHECK((bytes.find("conversation of") != std::string::npos) == text);
        CHECK((bytes.find("<11 bytes>") == std::string::npos) == text);
        std::remove(file.c_str());
    }
}

TEST_CASE("one changed record is named") {
    const std::string file = "changed.journal";
    busy_run(file, true);
    const auto bytes = read_journal_files(file);
    std::remove(file.c_str());
    const auto records = all_records(bytes);
    // A decode result in the middle claims another frontier: what the Scheduler then orders differs somewhere after it;
    // a plan that orders another lane differs right there.
    for (std::size_t i = 20; i < records.size(); ++i) {
        const auto* message = std::get_if<bus_message>(&records[i].content);
        const auto* plan = message ? std::get_if<cycle_plan>(message) : nullptr;
        if (!plan || plan->decodes.empty()) continue;
        auto changed = *plan;
        changed.decodes.back() = ticket(changed.decodes.back().value + 1000);
        std::string other = bytes.substr(0, records[i].offset);
        wire::pack_writer to(other);
        to.map(5);
        to.text("time"), to.signed_integer(records[i].time);
        to.text("from"), to.text("scheduler");
        to.text("to"), to.text("program");
        to.text("type"), to.text("cycle_plan");
        to.text("payload");
        wire::write_msgpack(other, changed);
        other += bytes.substr(records[i + 1].offset);
        const auto result = replay_journal(other);
        REQUIRE(result.difference);
        CHECK(result.difference->record == records[i].number);
        CHECK(result.difference->time == records[i].time);
        CHECK(result.difference->core == "scheduler");
        CHECK(result.difference->field == "decodes");
        CHECK(result.text().find("record " + std::to_string(records[i].number)) == 0);
        return;
    }
    FAIL("no plan with decodes in the journal");
}

TEST_CASE("a changed input shows as the first command that differs") {
    const std::string file = "input.journal";
    busy_run(file, true);
    const auto bytes = read_journal_files(file);
    std::remove(file.c_str());
    const auto records = all_records(bytes);
    for (std::size_t i = 20; i < records.size(); ++i) {
        const auto* message = std::get_if<bus_message>(&records[i].content);
        const auto* done = message ? std::get_if<cycle_done>(message) : nullptr;
        if (!done || done->rows.empty() || done->rows.front().finish != finish_reason::none || done->rows.front().token == no_token) continue;
        auto changed = *done;
        changed.rows.front().token ^= 1;
        std::string other = bytes.substr(0, records[i].offset);
        wire::pack_writer to(other);
        to.map(5);
        to.text("time"), to.signed_integer(records[i].time);
        to.text("from"), to.text("program");
        to.text("to"), to.text("scheduler");
        to.text("type"), to.text("cycle_done");
        to.text("payload");
        wire::write_msgpack(other, changed);
        other += bytes.substr(records[i + 1].offset);
        const auto result = replay_journal(other);
        REQUIRE(result.difference);
        CHECK(result.difference->record > records[i].number);
        CHECK(result.difference->field == "token");
        return;
    }
    FAIL("no decode result in the journal");
}

TEST_CASE("a journal cut anywhere replays up to the cut") {
    const std::string file = "cut.journal";
    busy_run(file, false);
    const auto bytes = read_journal_files(file);
    std::remove(file.c_str());
    rng random(3);
    for (int i = 0; i < 20; ++i) {
        const auto result = replay_journal(std::string_view(bytes).substr(0, below(random, bytes.size())));
        CHECK_MESSAGE(!result.difference, result.text());
    }
    const auto cut = replay_journal(std::string_view(bytes).substr(0, bytes.size() - 1));
    CHECK(cut.identical());
    CHECK(cut.text().find("ends within record " + std::to_string(cut.records + 1)) != std::string::npos);
    CHECK_FALSE(replay_journal(bytes).cut_record);
    const auto empty = replay_journal("");
    CHECK_FALSE(empty.identical());
    CHECK(empty.text().find("there is no record in it") != std::string::npos);
}

TEST_CASE("a restart keeps the journal of the life before") {
    const std::string file = "lives.journal";
    journal_options options;
    options.file = file;
    for (std::uint64_t life = 1; life <= 2; ++life) {
        journal_writer writer(options, plain_header());
        writer.record(1, bus_party::client, bus_party::frontend, cancel_request{request_id(life)});
        writer.flush();
    }
    const auto id_in = [](const std::string& name) {
        std::uint64_t id = 0;
        for (const auto& record : all_records(read_journal_files(name)))
            if (const auto* message = std::get_if<bus_message>(&record.content)) id = std::get<cancel_request>(*message).request.value;
        return id;
    };
    CHECK(id_in(file) == 2);
    CHECK(id_in(file + ".1") == 1);
    for (const char* ending : {"", ".1"}) std::remove((file + ending).c_str());
}

TEST_CASE("the queue overflows: records are dropped, counted, and the journal says so") {
    const std::string file = "overflow.journal";
    std::remove(file.c_str());
    journal_options options;
    options.file = file;
    options.queue_records_max = 4;
    std::uint64_t dropped = 0;
    {
        journal_writer writer(options, plain_header());
        // Far more than a writer thread takes in the time of pushing them: a record of a million tokens keeps it busy.
        const token_run long_run(std::vector<token_id>(1'000'000, 7));
        for (int i = 0; i < 200; ++i)
            writer.record(i + 1, bus_party::client, bus_party::frontend, detokenize_tokens{long_run});
        writer.flush();
        writer.record(1000, bus_party::client, bus_party::frontend, cancel_request{request_id(1)});
        dropped = writer.dropped();
    }
    REQUIRE(dropped > 0);
    std::uint64_t said = 0, kept = 0;
    const auto bytes = read_journal_files(file);
    for (const auto& record : all_records(bytes)) {
        if (const auto* loss = std::get_if<journal_loss>(&record.content)) said += loss->records;
        if (std::holds_alternative<bus_message>(record.content)) ++kept;
    }
    CHECK(said == dropped);
    CHECK(kept + dropped == 201);
    CHECK(replay_journal(bytes).stopped.find("records were dropped") != std::string::npos);
    std::remove(file.c_str());
}

TEST_CASE("the queue is bounded in bytes too: few records of long texts don't fill the memory") {
    const std::string file = "heavy.journal";
    std::remove(file.c_str());
    journal_options options;
    options.file = file;
    options.queue_bytes_max = 10'000'000;  // two of the records below
    {
        journal_writer writer(options, plain_header());
        const token_run long_run(std::vector<token_id>(1'000'000, 7));
        for (int i = 0; i < 200; ++i)
            writer.record(i + 1, bus_party::client, bus_party::frontend, detokenize_tokens{long_run});
        CHECK(writer.dropped() > 0);
        CHECK_FALSE(writer.broken());
    }
    std::remove(file.c_str());
}

TEST_CASE("a journal that can't be written breaks with a word, counts what it loses, and stays readable") {
    // A limit on the size of files stands in for a full disk.
    struct size_limit {
        rlimit before{};
        void (*handler)(int) = std::signal(SIGXFSZ, SIG_IGN);
        explicit size_limit(rlim_t bytes) {
            getrlimit(RLIMIT_FSIZE, &before);
            const rlimit now{bytes, before.rlim_max};
            setrlimit(RLIMIT_FSIZE, &now);
        }
        ~size_limit() {
            setrlimit(RLIMIT_FSIZE, &before);
            std::signal(SIGXFSZ, handler);
        }
    };
    const std::string file = "full.journal";
    std::remove(file.c_str());
    std::string said;
    journal_options options;
    options.file = file;
    options.file_bytes_max = 3'000'000;
    options.warn = [&](const std::string& line) { said += line + "\n"; };
    std::uint64_t dropped = 0;
    {
        journal_writer writer(options, plain_header());
        const size_limit full(100'000);
        for (int i = 0; i < 4000; ++i)
            writer.record(i + 1, bus_party::client, bus_party::frontend, cancel_request{request_id(static_cast<std::uint64_t>(i))});
        writer.flush();
        CHECK(writer.broken());
        dropped = writer.dropped();
        writer.record(5000, bus_party::client, bus_party::frontend, cancel_request{request_id(1)});
        writer.flush();
        CHECK(writer.dropped() == dropped + 1);
    }
    CHECK(said == "journal full.journal: can't be written: File too large; nothing more is recorded\n");
    const auto bytes = read_journal_files(file);
    std::uint64_t kept = 0;
    for (const auto& record : all_records(bytes))
        if (std::holds_alternative<bus_message>(record.content)) ++kept;
    CHECK(kept > 100);
    CHECK(kept + dropped >= 4000);  // of the batch that broke it, records that got in are counted as lost
    std::remove(file.c_str());
}

TEST_CASE("a journal that can't even begin is an error at start") {
    journal_options options;
    options.file = "/dev/full";
    CHECK_THROWS_WITH_AS(journal_writer(options, plain_header()), "journal /dev/full: can't be written: No space left on device",
                         std::runtime_error);
}

TEST_CASE("files rotate within their limit and read back as one") {
    const std::string file = "rotate.journal";
    journal_options options;
    options.file = file;
    options.file_bytes_max = 3000;
    options.files_max = 3;
    {
        journal_writer writer(options, plain_header());
        for (int i = 0; i < 150; ++i) {
            writer.record(i + 1, bus_party::client, bus_party::frontend, cancel_request{request_id(static_cast<std::uint64_t>(i))});
            writer.flush();
        }
    }
    for (const char* ending : {"", ".1", ".2"}) {
        std::ifstream in(file + ending, std::ios::binary | std::ios::ate);
        REQUIRE(in);
        CHECK(in.tellg() <= 3000);
    }
    CHECK_FALSE(std::ifstream(file + ".3"));
    const auto bytes = read_journal_files(file);
    // In order, the newest last, the oldest gone.
    std::uint64_t last = 0, count = 0;
    for (const auto& record : all_records(bytes))
        if (const auto* message = std::get_if<bus_message>(&record.content)) {
            const auto id = std::get<cancel_request>(*message).request.value;
            CHECK((count == 0 || id == last + 1));
            last = id;
            ++count;
        }
    CHECK(last == 149);
    CHECK(count > 20);
    CHECK(replay_journal(bytes).stopped == "the journal's beginning was rotated away");
    for (const char* ending : {"", ".1", ".2"}) std::remove((file + ending).c_str());
}

TEST_CASE("the mask is one-to-one, forgets itself, and is idempotent on text") {
    journal_mask mask(false, 1000);
    std::vector<token_id> ids(1000);
    for (token_id i = 0; i < 1000; ++i) ids[static_cast<std::size_t>(i)] = i;
    ids.push_back(no_token);
    bus_message message = detokenize_tokens{token_run(ids)};
    mask.apply(message);
    const auto span = std::get<detokenize_tokens>(message).tokens.span();
    std::set<token_id> image(span.begin(), span.end());
    CHECK(image.size() == 1001);  // one-to-one
    CHECK(span[1000] == no_token);
    std::size_t moved = 0;
    for (token_id i = 0; i < 1000; ++i) moved += span[static_cast<std::size_t>(i)] != i ? 1 : 0;
    CHECK(moved > 900);
    // Another journal, another map.
    journal_mask other(false, 1000);
    bus_message again = detokenize_tokens{token_run(ids)};
    other.apply(again);
    CHECK_FALSE(std::get<detokenize_tokens>(again).tokens == std::get<detokenize_tokens>(message).tokens);

    CHECK(masked_text("") == "");
    CHECK(masked_text("hello") == "<5 bytes>");
    CHECK(masked_text("<5 bytes>") == "<5 bytes>");
    CHECK(masked_text("<x bytes>") == "<9 bytes>");
    bus_message error = copy_done{copy_id(1), false, "what went wrong"};
    mask.apply(error);
    CHECK(std::get<copy_done>(error).error == "<15 bytes>");
}

TEST_CASE("bytes that are no journal are refused with the record and the place") {
    const auto error_of = [](std::string_view bytes) -> std::string {
        try {
            return replay_journal(bytes).text();
        } catch (const wire::pack_error& error) {
            return error.what();
        }
    };
    CHECK(error_of("hello") .find("record 1 at byte 0: ") == 0);
    CHECK(error_of(std::string("\x80", 1)) == "record 1 at byte 0: an empty map is no record");
    auto header = plain_header();
    header.schema ^= 1;
    CHECK(error_of(wire::to_msgpack(header)).find("other messages") != std::string::npos);
    header = plain_header();
    header.format = "something else";
    CHECK(error_of(wire::to_msgpack(header)).find("expected \"fermata-journal\"") != std::string::npos);
    header = plain_header();
    header.max_concurrency = 0;
    CHECK(error_of(wire::to_msgpack(header)).find("the header's options: ") != std::string::npos);
    auto bytes = wire::to_msgpack(plain_header());
    wire::pack_writer to(bytes);
    to.map(2);
    to.text("type"), to.text("no_such_message");
    to.text("payload"), to.nil();
    CHECK(error_of(bytes).find("\"no_such_message\" is no message of the bus") != std::string::npos);
    // A request without choices: Scheduler never gets to see it.
    bytes = wire::to_msgpack(plain_header());
    wire::pack_writer broken(bytes);
    broken.map(5);
    broken.text("time"), broken.signed_integer(1);
    broken.text("from"), broken.text("frontend");
    broken.text("to"), broken.text("scheduler");
    broken.text("type"), broken.text("enqueue");
    broken.text("payload");
    wire::write_msgpack(bytes, enqueue{request_id(1), {nullptr}, 0});
    CHECK(error_of(bytes).find("record 2: enqueue.choices: a choice without a prompt") != std::string::npos);
    CHECK_THROWS_WITH_AS(read_journal_files("/nonexistent.journal"), doctest::Contains("/nonexistent.journal: can't be read"),
                         std::runtime_error);
    journal_options nowhere;
    nowhere.file = "/nonexistent/x.journal";
    CHECK_THROWS_WITH_AS(journal_writer(nowhere, plain_header()), doctest::Contains("can't be written"), std::runtime_error);
}
