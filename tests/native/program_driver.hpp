// Drives a Program the way a Scheduler would, one obvious step at a time, checking integrity after each: what tests
// of Program share. It decides nothing clever: a test says what happens.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "native/models/oracle/oracle.hpp"
#include "native/program.hpp"
#include "native/stores/page_store.hpp"

namespace fermata::test {

inline std::vector<token_id> some_tokens(std::size_t n, std::uint32_t seed, std::uint32_t vocabulary = 1024) {
    std::vector<token_id> out(n);
    std::uint64_t x = seed * 2654435761u + 12345;
    for (auto& t : out) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        t = static_cast<token_id>((x >> 33) % vocabulary);
    }
    return out;
}

inline oracle::options small_oracle(std::size_t state_bytes, std::uint32_t page_tokens = 16) {
    oracle::options how;
    how.state_bytes = state_bytes;
    how.vocabulary = 1024;
    how.page_tokens = page_tokens;
    return how;
}

inline program_options small_options() {
    program_options out;
    out.max_context_tokens = 512;
    out.max_concurrency = 4;
    out.device_state_slots = 4;
    out.prefill_chunk_tokens = 64;
    out.batch_tokens = 128;
    return out;
}

// What a sequence brought so far, as a client would add it up.
struct answer {
    std::vector<token_id> tokens;
    std::vector<float> logprobs;
    std::vector<std::vector<token_logprob>> top_logprobs;
    std::vector<float> prompt_logprobs;
    std::vector<std::vector<token_logprob>> prompt_top_logprobs;
    std::vector<float> logits;
    std::uint32_t computed = 0, replayed = 0, reused = 0, pauses = 0;
    finish_reason finish = finish_reason::none;
    failure_kind failure = failure_kind::none;
    std::string error;
};

class driver {
public:
    driver(program_options options, oracle::options how) : driver(std::move(options), oracle::make(how)) {}
    driver(program_options options, std::unique_ptr<model> family) : core(std::move(options), std::move(family)) {}

    // One exchange; results are added to `answers`, events to `points`.
    const cycle_done& run(cycle_plan plan) {
        plan.cycle = cycle_no(++cycle_);
        core.run_cycle(plan, done);
        REQUIRE(core.check_integrity() == "");
        REQUIRE(done.cycle == plan.cycle);
        for (const row_result& row : done.rows) add(row);
        for (const pause_result& each : done.pauses) ++answers[each.who].pauses;
        for (const bind_result& each : done.binds) note(each);
        take_events();
        return done;
    }

    bind_result bind(ticket who, std::shared_ptr<const sequence_spec> spec, lane where,
                     std::optional<checkpoint_id> source = {}, std::uint32_t position = 0, std::uint32_t first = 0) {
        cycle_plan plan;
        plan.binds.push_back({who, where, std::move(spec), source, token_pos(position), token_pos(first)});
        run(plan);
        REQUIRE(done.binds.size() == 1);
        return done.binds.front();
    }

    bind_result resume(ticket who, lane where, std::optional<checkpoint_id> source = {}, std::uint32_t position = 0) {
        return bind(who, nullptr, where, source, position);
    }

    const cycle_done& decode(std::vector<ticket> who) {
        cycle_plan plan;
        plan.decodes = std::move(who);
        return run(plan);
    }
    const cycle_done& prefill(ticket who, std::uint32_t tokens = 0) {
        cycle_plan plan;
        plan.prefills.push_back({who, token_pos(tokens)});
        return run(plan);
    }
    const cycle_done& pause(ticket who) {
        cycle_plan plan;
        plan.pauses.push_back(who);
        return run(plan);
    }
    const cycle_done& cancel(ticket who) {
        cycle_plan plan;
        plan.cancels.push_back(who);
        return run(plan);
    }
    const cycle_done& drop(checkpoint_id id) {
        cycle_plan plan;
        plan.drops.push_back(id);
        return run(plan);
    }

    // Transfer's part: everything submitted is copied and told.
    void finish_copies() {
        copy_order order;
        while (core.next_copy(order)) finish_copy(core.copies()->run(order));
    }
    bool finish_copy(const copy_done& copy) {
        program_notice notice;
        const bool told = core.complete(copy, notice);
        REQUIRE(core.check_integrity() == "");
        if (told)
            for (const bind_result& each : notice.binds) note(each);
        take_events();
        return told;
    }

    // Prefills (or replays) and decodes until the sequence ends or `tokens` of its answer are there.
    void run_until(ticket who, std::size_t tokens, std::uint32_t chunk = 0) {
        while (answers[who].finish == finish_reason::none && answers[who].tokens.size() < tokens) {
            cycle_plan plan;
            plan.decodes.push_back(who);
            plan.prefills.push_back({who, token_pos(chunk)});
            const std::size_t rows = run(plan).rows.size();
            REQUIRE(rows == 1);
        }
    }

    // From bind to end, alone, on lane `where`.
    const answer& complete(ticket who, std::shared_ptr<const sequence_spec> spec,
                           std::optional<checkpoint_id> source = {}, std::uint32_t position = 0,
                           std::uint32_t chunk = 0, lane where = lane(0)) {
        const auto bound = bind(who, std::move(spec), where, source, position);
        REQUIRE((bound.outcome == bind_outcome::bound || bound.outcome == bind_outcome::copying));
        finish_copies();
        run_until(who, ~std::size_t{0}, chunk);
        return answers[who];
    }

    std::uint32_t free_pages() const { return done.room.pages_free; }
    const checkpoint_published& last_point() const { return points.rbegin()->second; }

    program core;
    cycle_done done;
    std::map<ticket, answer> answers;
    std::map<checkpoint_id, checkpoint_published> points;  // published and not dropped
    std::vector<checkpoint_adopted> adopted;

private:
    void add(const row_result& row) {
        answer& to = answers[row.who];
        REQUIRE(to.finish == finish_reason::none);  // a row that ended never runs another unit
        if (row.token != no_token) to.tokens.push_back(row.token);
        if (row.token != no_token) to.logprobs.push_back(row.logprob);
        if (row.token != no_token) to.top_logprobs.push_back(row.top_logprobs);
        to.prompt_logprobs.insert(to.prompt_logprobs.end(), row.prompt_logprobs.begin(), row.prompt_logprobs.end());
        to.prompt_top_logprobs.insert(to.prompt_top_logprobs.end(), row.prompt_top_logprobs.begin(),
                                      row.prompt_top_logprobs.end());
        to.logits.insert(to.logits.end(), row.logits.begin(), row.logits.end());
        to.computed += row.computed.value;
        to.replayed += row.replayed.value;
        to.finish = row.finish;
        to.failure = row.failure;
        to.error = row.error;
        CHECK(row.generated.value == to.tokens.size());
    }
    void note(const bind_result& each) {
        if (each.outcome == bind_outcome::bound && !answers.count(each.who)) answers[each.who].reused = each.position.value;
    }
    void take_events() {
        std::vector<context_event> events;
        core.take_events(events);
        for (const auto& event : events) {
            if (const auto* made = std::get_if<checkpoint_published>(&event)) points[made->checkpoint] = *made;
            if (const auto* gone = std::get_if<checkpoint_dropped>(&event)) CHECK(points.erase(gone->checkpoint) == 1);
            if (const auto* used = std::get_if<checkpoint_adopted>(&event)) adopted.push_back(*used);
        }
    }
    std::uint64_t cycle_ = 0;
};

inline std::shared_ptr<sequence_spec> spec_of(std::vector<token_id> prompt, std::uint32_t tokens) {
    auto out = std::make_shared<sequence_spec>();
    out->prompt = token_run(std::move(prompt));
    out->sampling.temperature = 0;
    out->guard.max_new_tokens = token_pos(tokens);
    return out;
}

inline std::vector<token_id> joined(const std::vector<token_id>& a, const std::vector<token_id>& b) {
    std::vector<token_id> out(a);
    out.insert(out.end(), b.begin(), b.end());
    return out;
}

}  // namespace fermata::test
