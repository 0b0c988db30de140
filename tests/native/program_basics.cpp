// One sequence on Program: prefill, greedy decoding, natural end. The right tokens come from the oracle's reference,
// which knows nothing of pages.
#include "native/program_driver.hpp"

using namespace fermata;
using namespace fermata::test;

namespace {

[[maybe_unused]] const ticket a{1}, b{2}, c{3}, d{4};

}  // namespace

TEST_CASE("a cold run gives the oracle's tokens, with and without state, however the prompt is cut") {
    for (std::size_t state_bytes : {0u, 64u})
        for (std::uint32_t chunk : {1u, 7u, 16u, 64u}) {
            CAPTURE(state_bytes);
            CAPTURE(chunk);
            const auto how = small_oracle(state_bytes);
            const auto prompt = some_tokens(50, 1);
            driver d(small_options(), how);
            const answer& got = d.complete(a, spec_of(prompt, 40), {}, 0, chunk);
            CHECK(got.tokens == oracle::expected(how, prompt, 40));
            CHECK(got.finish == finish_reason::length);
            CHECK(got.computed == 50 + 39);  // the last token is never fed
            CHECK(got.replayed == 0);
        }
}

TEST_CASE("while a sequence generates, the ledger is one longer than the frontier") {  // A1
    driver d(small_options(), small_oracle(0));
    d.bind(a, spec_of(some_tokens(20, 1), 10), lane(0));
    d.prefill(a);
    CHECK(d.done.rows.front().frontier.value == 20);
    CHECK(d.done.rows.front().generated.value == 1);
    d.decode({a});
    CHECK(d.done.rows.front().frontier.value == 21);
    CHECK(d.done.rows.front().generated.value == 2);
}

TEST_CASE("company on other lanes changes nothing") {
    for (std::size_t state_bytes : {0u, 64u}) {
        const auto how = small_oracle(state_bytes);
        driver d(small_options(), how);
        std::vector<ticket> all;
        for (std::uint32_t i = 0; i < 4; ++i) {
            all.emplace_back(i + 1);
            d.bind(all.back(), spec_of(some_tokens(10 + 17 * i, i), 30), lane(i));
        }
        for (int i = 0; i < 60; ++i) {
            cycle_plan plan;
            plan.decodes = all;
            for (ticket t : all) plan.prefills.push_back({t, token_pos(13)});
            d.run(plan);
        }
        for (std::uint32_t i = 0; i < 4; ++i)
            CHECK(d.answers[all[i]].tokens == oracle::expected(how, some_tokens(10 + 17 * i, i), 30));
    }
}

TEST_CASE("a natural end freezes what was computed and gives back lane, slot and pages") {  // G4, C3
    for (std::size_t state_bytes : {0u, 64u}) {
        CAPTURE(state_bytes);
        driver d(small_options(), small_oracle(state_bytes));
        const auto prompt = some_tokens(40, 3);
        const auto tokens = d.complete(a, spec_of(prompt, 9)).tokens;
        REQUIRE(d.points.size() == 1);
        const checkpoint_published& end = d.last_point();
        CHECK(end.coverage.value == 48);  // 40 + 9 - 1: the last token was never fed
        CHECK(end.exact_only == (state_bytes > 0));
        const auto all = joined(prompt, tokens);
        CHECK(end.tokens == token_run({all.begin(), all.begin() + 48}));
        CHECK(d.done.room.pages_cached == 3);
        CHECK(d.done.room.pages_active == 0);
        CHECK(d.done.room.pages_free == d.done.room.pages_total - 3);
        if (state_bytes) CHECK(d.done.room.state_slots_free == d.done.room.state_slots_total - 1);
        CHECK(d.bind(b, spec_of(prompt, 1), lane(0)).outcome == bind_outcome::bound);  // the lane is free again
    }
}
