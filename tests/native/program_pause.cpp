// Pause, resume and replay: the resumed run equals the uninterrupted one in everything a client sees.
#include <cmath>
#include <cstring>

#include "native/program_driver.hpp"

using namespace fermata;
using namespace fermata::test;

namespace {

[[maybe_unused]] const ticket a{1}, b{2}, c{3};

std::shared_ptr<sequence_spec> rich_spec(std::size_t prompt, std::uint32_t tokens, bool scored) {
    auto spec = spec_of(some_tokens(prompt, 12), tokens);
    spec->sampling.temperature = 0.8f;
    spec->sampling.seed = 99;
    spec->sampling.top_p = 0.95f;
    spec->sampling.repetition_penalty = 1.3f;
    spec->sampling.frequency_penalty = 0.4f;
    spec->sampling.presence_penalty = 0.2f;
    spec->report.logprobs = true;
    spec->report.top_logprobs = 3;
    spec->report.prompt_logprobs = scored;
    return spec;
}

void check_same(const answer& x, const answer& y) {
    CHECK(x.tokens == y.tokens);
    CHECK(x.logprobs == y.logprobs);
    CHECK(x.top_logprobs == y.top_logprobs);
    CHECK(x.finish == y.finish);
    CHECK(x.computed - x.replayed == y.computed - y.replayed);  // O2: replay is its own counter
    REQUIRE(x.prompt_logprobs.size() == y.prompt_logprobs.size());
    for (std::size_t i = 0; i < x.prompt_logprobs.size(); ++i)
        CHECK((x.prompt_logprobs[i] == y.prompt_logprobs[i] || (i == 0 && std::isnan(x.prompt_logprobs[i]))));
    CHECK(x.prompt_top_logprobs == y.prompt_top_logprobs);
}

}  // namespace

TEST_CASE("a run paused at any point equals the uninterrupted run") {  // M6, M7, faults 76, 77
    for (std::size_t state_bytes : {0u, 64u})
        for (bool scored : {false, true}) {
            driver whole(small_options(), small_oracle(state_bytes));
            whole.bind(a, rich_spec(50, 20, scored), lane(0));
            whole.run_until(a, 99, 13);
            REQUIRE(whole.answers[a].tokens.size() == 20);
            for (int stop_after = 1; stop_after <= 22; ++stop_after) {
                CAPTURE(stop_after);
                driver d(small_options(), small_oracle(state_bytes));
                d.bind(a, rich_spec(50, 20, scored), lane(0));
                for (int i = 0; i < stop_after; ++i) {
                    cycle_plan plan;
                    plan.decodes = {a};
                    plan.prefills = {{a, token_pos(13)}};
                    d.run(plan);
                }
                const std::uint32_t computed = d.answers[a].computed;
                d.pause(a);
                REQUIRE(d.done.pauses.size() == 1);
                CHECK(d.done.pauses[0].ledger.size() == computed);
                CHECK(d.done.pauses[0].decoding == !d.answers[a].tokens.empty());
                CHECK(d.done.room.pages_active == 0);  // M8: the pause gave everything back
                CHECK(d.resume(a, lane(3)).outcome == bind_outcome::bound);
                d.run_until(a, 99, 11);
                check_same(d.answers[a], whole.answers[a]);
                CHECK(d.answers[a].replayed == computed);
            }
        }
}

TEST_CASE("paused again and again, on other lanes, beside others") {
    for (std::size_t state_bytes : {0u, 64u}) {
        driver whole(small_options(), small_oracle(state_bytes));
        whole.bind(a, rich_spec(40, 30, true), lane(0));
        whole.run_until(a, 99, 9);
        driver d(small_options(), small_oracle(state_bytes));
        d.bind(b, spec_of(some_tokens(30, 3), 400), lane(3));
        d.bind(a, rich_spec(40, 30, true), lane(0));
        std::uint32_t at = 0;
        while (d.answers[a].finish == finish_reason::none) {
            // Some cycles until new progress, then away again.
            for (std::uint32_t i = 0; i < 10 + at % 7 && d.answers[a].finish == finish_reason::none; ++i) {
                cycle_plan plan;
                plan.decodes = {a, b};
                plan.prefills = {{b, token_pos(10)}, {a, token_pos(9)}};
                d.run(plan);
            }
            d.pause(a);
            if (!d.done.pauses.empty()) d.resume(a, lane(at++ % 3));
        }
        check_same(d.answers[a], whole.answers[a]);
        CHECK(d.answers[b].tokens ==
              oracle::expected(small_oracle(state_bytes), some_tokens(30, 3), d.answers[b].tokens.size()));
    }
}

TEST_CASE("a resume may start from a point instead of root; what the point covers isn't computed") {  // F1
    const auto how = small_oracle(0);
    driver d(small_options(), how);
    const auto prompt = some_tokens(40, 5);
    d.bind(a, spec_of(prompt, 30), lane(0));
    d.run_until(a, 10);
    const auto input = d.last_point();
    d.pause(a);
    CHECK(d.done.pauses[0].ledger.size() == 49);
    const bind_result got = d.resume(a, lane(1), input.checkpoint, 32);
    CHECK(got.outcome == bind_outcome::bound);
    CHECK(got.position.value == 32);
    d.run_until(a, 99);
    CHECK(d.answers[a].tokens == oracle::expected(how, prompt, 30));
    CHECK(d.answers[a].replayed == 49 - 32);
}

TEST_CASE("a resume at the old frontier goes straight on to decode") {
    for (std::size_t state_bytes : {0u, 64u}) {
        const auto how = small_oracle(state_bytes);
        driver d(small_options(), how);
        const auto prompt = some_tokens(40, 5);
        // b computes the very tokens that a will have covered when paused.
        d.bind(a, spec_of(prompt, 30), lane(0));
        d.run_until(a, 10);
        d.complete(b, spec_of(prompt, 10), {}, 0, 0, lane(1));
        const auto same = d.last_point();
        REQUIRE(same.coverage.value == 49);
        d.pause(a);
        CHECK(d.resume(a, lane(0), same.checkpoint, 49).outcome == bind_outcome::copying);
        d.finish_copies();
        d.decode({a});
        CHECK(d.done.rows.size() == 1);
        d.run_until(a, 99);
        CHECK(d.answers[a].tokens == oracle::expected(how, prompt, 30));
        CHECK(d.answers[a].replayed == 0);
        CHECK(d.resume(a, lane(0)).outcome == bind_outcome::refused);  // ended: nothing to resume
    }
}

TEST_CASE("a resume beyond the old frontier of an answer is refused") {
    driver d(small_options(), small_oracle(0));
    const auto prompt = some_tokens(40, 5);
    d.complete(b, spec_of(prompt, 12));
    d.bind(a, spec_of(prompt, 30), lane(0));
    d.run_until(a, 5);
    d.pause(a);
    CHECK(d.resume(a, lane(0), d.points.begin()->first, 48).text ==
          "position 48: at most 44, a token must be left to compute");
}

TEST_CASE("the recovery permit covers the rebuild and the first new unit, and is held until new progress") {  // M5
    auto options = small_options();
    options.max_concurrency = 2;
    options.kv_capacity_tokens = 512;  // 32 pages
    driver d(options, small_oracle(0));
    d.bind(a, spec_of(some_tokens(100, 5), 40), lane(0));
    d.run_until(a, 13);  // frontier 112: exactly 7 pages
    d.pause(a);
    d.drop(d.last_point().checkpoint);
    CHECK(d.free_pages() == 32);
    d.resume(a, lane(0));
    CHECK(d.free_pages() == 32 - 8);  // 112 to rebuild and the fed token's new page
    for (int i = 0; i < 7; ++i) {
        d.prefill(a, 16);
        CHECK(d.free_pages() == 32 - 8);
        d.pause(a);  // M2: the holder of a recovery permit is never paused
        CHECK(d.done.pauses.empty());
    }
    CHECK(d.answers[a].replayed == 112);
    d.decode({a});
    CHECK(d.done.rows.size() == 1);
    CHECK(d.free_pages() == 32 - 8);
    d.pause(a);  // new progress: now it may go
    CHECK(d.done.pauses.size() == 1);
}

TEST_CASE("at most one recovery permit is held") {  // M5
    driver d(small_options(), small_oracle(0));
    for (ticket t : {a, b}) d.bind(t, spec_of(some_tokens(40, 5), 40), lane(static_cast<std::uint32_t>(t.value)));
    d.run_until(a, 5);
    d.run_until(b, 5);
    d.pause(a);
    d.pause(b);
    CHECK(d.resume(a, lane(0)).outcome == bind_outcome::bound);
    CHECK(d.resume(b, lane(1)).outcome == bind_outcome::short_of_room);
    d.run_until(a, 6);
    CHECK(d.resume(b, lane(1)).outcome == bind_outcome::bound);
}

TEST_CASE("a paused sequence can be cancelled; then it is forgotten") {
    driver d(small_options(), small_oracle(64));
    d.bind(a, spec_of(some_tokens(40, 5), 40), lane(0));
    d.run_until(a, 5);
    d.pause(a);
    d.cancel(a);
    CHECK(d.resume(a, lane(0)).outcome == bind_outcome::refused);
    CHECK(d.free_pages() == d.done.room.pages_total);
    CHECK(d.done.room.state_slots_free == d.done.room.state_slots_total);
}

TEST_CASE("a budget of tokens counts across pauses") {  // fault 77
    driver d(small_options(), small_oracle(0));
    d.bind(a, spec_of(some_tokens(20, 5), 6), lane(0));
    for (int i = 0; i < 5; ++i) {
        d.run_until(a, static_cast<std::size_t>(i + 1));
        d.pause(a);
        d.resume(a, lane(0));
    }
    d.run_until(a, 99);
    CHECK(d.answers[a].tokens.size() == 6);
    CHECK(d.answers[a].finish == finish_reason::length);
}
