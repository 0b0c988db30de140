#include "actors/journal/replay.hpp"

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include "actors/cores/resource_manager.hpp"
#include "actors/cores/scheduler.hpp"
#include "actors/journal/contract.hpp"
#include "actors/journal/mask.hpp"
#include "actors/journal/reader.hpp"
#include "messages/wire/bus.hpp"
#include "messages/wire/schema.hpp"

namespace fermata {
namespace {

template <class T, class List>
inline constexpr bool in_list = false;
template <class T, class... Ts>
inline constexpr bool in_list<T, type_list<Ts...>> = (std::same_as<T, Ts> || ...);

using scheduler_events =
    type_list<enqueue, cancel_request, cycle_done, program_notice, source_chosen, victims_chosen, drain>;
using manager_events =
    type_list<choose_source, choose_victims, checkpoint_published, checkpoint_dropped, checkpoint_adopted>;

class stage {
public:
    stage(replay_core which, replay_result& result) : which_(which), result_(result) {}

    void begin(const journal_header& header) {
        if (header.version != 1) return stop("the journal has version " + std::to_string(header.version) + ", this program reads 1");
        if (header.schema != wire::schema_hash())
            return stop("the journal was written by a build with other messages (schema " +
                        std::to_string(header.schema) + ", here " + std::to_string(wire::schema_hash()) + ")");
        // Far above what any node runs with; a header must not decide how much a replay allocates.
        if (header.max_concurrency > 4096 || header.page_tokens == 0 || header.page_tokens > 65536 ||
            header.max_pending > (1u << 20))
            return stop("the header's options are outside of what a node can have");
        try {
            scheduler_ = std::make_unique<scheduler>(options_of(header), header.view);
        } catch (const std::invalid_argument& error) {
            return stop(std::string("the header's options: ") + error.what());
        }
        resource_manager_options manager;
        manager.page_tokens = header.page_tokens;
        manager.tail_copy_tokens_min = header.tail_copy_tokens_min;
        manager_ = std::make_unique<resource_manager>(manager);
        mask_ = std::make_unique<journal_mask>(header.text, 0);
        for (auto& each : expected_) each.second.clear();
        ++result_.lives;
    }

    void take(const journal_record& record) {
        if (const auto* header = std::get_if<journal_header>(&record.content)) {
            if (continues_) return;  // the same header again, at the start of the next file
            return begin(*header);
        }
        if (std::holds_alternative<journal_rotation>(record.content)) return;
        if (!scheduler_) return stop("the journal does not start with a header");
        if (const auto* loss = std::get_if<journal_loss>(&record.content))
            return stop(std::to_string(loss->records) + " records were dropped before record " + std::to_string(record.number));
        check(record);
        if (!result_.difference) feed(record);
    }

    void expect_continuation(bool continues) { continues_ = continues; }
    bool over() const { return result_.difference || !result_.stopped.empty(); }
    void finish() {
        for (const auto& each : expected_) result_.open += each.second.size();
    }

private:
    using route = std::pair<bus_party, bus_party>;

    static scheduler_options options_of(const journal_header& h) {
        scheduler_options o;
        o.max_concurrency = h.max_concurrency;
        o.page_tokens = h.page_tokens;
        o.prefill_chunk_tokens = h.prefill_chunk_tokens;
        o.batch_tokens = h.batch_tokens;
        o.request_tokens_max = h.request_tokens_max;
        o.attention_only = h.attention_only;
        o.max_pending = h.max_pending;
        o.pending_timeout = h.pending_timeout;
        o.copy_timeout = h.copy_timeout;
        o.tau_high = h.tau_high;
        o.tau_admit = h.tau_admit;
        o.tau_low = h.tau_low;
        return o;
    }
    bool plays(bus_party who) const {
        if (who == bus_party::scheduler) return which_ != replay_core::resource_manager;
        if (who == bus_party::resource_manager) return which_ != replay_core::scheduler;
        return false;
    }
    void stop(std::string why) { result_.stopped = std::move(why); }

    // A record of what a replayed core said: the oldest command to that receiver must be it.
    void check(const journal_record& record) {
        const auto* message = std::get_if<bus_message>(&record.content);
        if (message == nullptr || !plays(record.from)) return;
        auto& queue = expected_[{record.from, record.to}];
        if (queue.empty()) return differ(record, wire::print_bus(*message, wire::print_limits::none()), {});
        const std::string said = wire::print_bus(queue.front(), wire::print_limits::none());
        const std::string recorded = wire::print_bus(*message, wire::print_limits::none());
        queue.pop_front();
        if (said != recorded) return differ(record, recorded, said);
        ++result_.compared;
    }

    void differ(const journal_record& record, std::string recorded, std::string replayed) {
        replay_difference found;
        found.record = record.number;
        found.time = record.time;
        found.core = wire::enum_name(record.from);
        std::size_t same = 0;
        while (same < recorded.size() && same < replayed.size() && recorded[same] == replayed[same]) ++same;
        // The innermost field name before the first character that differs.
        const auto colon = replayed.empty() || recorded.empty() ? std::string::npos : recorded.rfind(": ", same);
        if (colon != std::string::npos) {
            const auto start = recorded.find_last_of("{ ", colon);
            found.field = recorded.substr(start + 1, colon - start - 1);
        }
        found.recorded = std::move(recorded);
        found.replayed = std::move(replayed);
        result_.difference = std::move(found);
    }

    void feed(const journal_record& record) {
        if (!plays(record.to)) return;
        if (std::holds_alternative<journal_tick>(record.content)) {
            scheduler_->on(tick{}, record.time, commands_);
            ++result_.fed;
            return collect();
        }
        std::visit([&](const auto& each) { feed_message(record, each); }, std::get<bus_message>(record.content));
    }
    template <class M>
    void feed_message(const journal_record& record, const M& message) {
        if (auto fault = contract_fault(message); !fault.empty())
            return stop("record " + std::to_string(record.number) + ": " + fault);
        if constexpr (in_list<M, scheduler_events>) {
            if (record.to != bus_party::scheduler) return;
            scheduler_->on(message, record.time, commands_);
            ++result_.fed;
            collect();
        } else if constexpr (in_list<M, manager_events>) {
            if (record.to != bus_party::resource_manager) return;
            ++result_.fed;
            if constexpr (in_list<M, type_list<choose_source, choose_victims>>)
                expect(bus_party::resource_manager, bus_party::scheduler, manager_->on(message));
            else manager_->on(message);
        }
    }
    void collect() {
        for (auto& command : commands_)
            std::visit(
                [&]<class C>(C& each) {
                    if constexpr (std::same_as<C, cycle_plan>) expect(bus_party::scheduler, bus_party::program, each);
                    else if constexpr (std::same_as<C, choose_source> || std::same_as<C, choose_victims>)
                        expect(bus_party::scheduler, bus_party::resource_manager, each);
                    else if constexpr (std::same_as<C, outputs> || std::same_as<C, enqueue_result>)
                        expect(bus_party::scheduler, bus_party::frontend, each);
                    else if constexpr (std::same_as<C, drained>) expect(bus_party::scheduler, bus_party::node, each);
                },
                command);
        commands_.clear();
    }
    void expect(bus_party from, bus_party to, bus_message message) {
        mask_->apply(message);
        expected_[{from, to}].push_back(std::move(message));
    }

    replay_core which_;
    replay_result& result_;
    bool continues_ = false;
    std::unique_ptr<scheduler> scheduler_;
    std::unique_ptr<resource_manager> manager_;
    std::unique_ptr<journal_mask> mask_;
    scheduler::commands commands_;
    std::map<route, std::deque<bus_message>> expected_;
};

}  // namespace

std::string replay_result::text() const {
    if (difference) {
        const auto& d = *difference;
        std::string line = "record " + std::to_string(d.record) + " (time " + std::to_string(d.time) + " ns): " + d.core;
        if (d.replayed.empty()) return line + " said nothing here; recorded: " + d.recorded;
        return line + " differs" + (d.field.empty() ? std::string() : " in " + d.field) + ": recorded " + d.recorded +
               "; replayed " + d.replayed;
    }
    if (!stopped.empty()) return "not followed to the end: " + stopped + " (" + std::to_string(compared) + " messages agreed)";
    std::string line = "identical, " + std::to_string(compared) + " messages";
    if (cut_record) line += "; the file ends within record " + std::to_string(*cut_record) + ", which is left out";
    return line;
}

replay_result replay_journal(std::string_view bytes, replay_core which) {
    replay_result result;
    stage cores(which, result);
    journal_reader reader(bytes);
    journal_record record, ahead;
    bool more = reader.next(ahead);
    bool first = true;
    while (more && !cores.over()) {
        record = std::move(ahead);
        ahead = {};
        more = reader.next(ahead);
        ++result.records;
        // A header followed by "rotated" opens the next file of the same life.
        const bool rotated = more && std::holds_alternative<journal_rotation>(ahead.content);
        if (first && rotated) {
            result.stopped = "the journal's beginning was rotated away";
            break;
        }
        cores.expect_continuation(rotated);
        cores.take(record);
        first = false;
    }
    if (reader.cut_short()) result.cut_record = result.records + 1;
    if (result.records == 0) result.stopped = "there is no record in it; a journal begins with a header";
    cores.finish();
    return result;
}

replay_result replay_journal_file(const std::string& file, replay_core which) {
    return replay_journal(read_journal_files(file), which);
}

}  // namespace fermata
