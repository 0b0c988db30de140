// Order, bypassing, pressure, recovery: the rules of sections D, E, F and M, on a stand-in Program.
#include <doctest/doctest.h>

#include "actors/cores/fresh_queue.hpp"
#include "actors/cores/pressure.hpp"
#include "rig.hpp"

using namespace fermata;
using namespace fermata::testing;

namespace {

// First binds in the order in which they succeeded.
std::vector<std::uint64_t> bind_order_of(const rig& r) {
    std::vector<std::uint64_t> order;
    for (const cycle_plan& plan : r.plans)
        for (const bind_order& each : plan.binds)
            if (each.spec) order.push_back(each.spec->request.value);
    return order;
}

}  // namespace

TEST_CASE("first come, first served") {
    rig r(small_options(2));
    for (std::uint64_t i = 1; i <= 6; ++i) r.submit(i, 4, 2);
    REQUIRE(r.run());
    CHECK(bind_order_of(r) == std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6});
    CHECK(r.core.look().bypasses == 0);
}

TEST_CASE("a request that doesn't fit is overtaken by at most C younger ones, then nobody passes") {  // E1, fault 80
    // 8 pages of 4 tokens; request 1 holds 6 for long; request 2 needs 4 at once (chunk 16), the small ones need 1.
    scheduler_options o = small_options(3);
    o.prefill_chunk_tokens = 16;
    o.batch_tokens = 64;
    rig r(o, 8);
    r.submit(1, 21, 3);  // 6 pages
    REQUIRE(r.step());
    REQUIRE(r.step());
    r.submit(2, 16, 1);  // 4 pages: must wait for request 1
    for (std::uint64_t i = 3; i <= 12; ++i) r.submit(i, 2, 1);
    std::uint32_t passed = 0;
    bool second_in = false;
    REQUIRE(r.run());
    for (const std::uint64_t each : bind_order_of(r)) {
        if (each == 2) second_in = true;
        else if (each > 2 && !second_in) ++passed;
    }
    CHECK(second_in);
    CHECK(passed > 0);
    CHECK(passed <= 3);
    CHECK(r.core.look().overtaken_max <= 3);
    for (std::uint64_t i = 1; i <= 12; ++i) CHECK(r.answer(i).ends == 1);
}

TEST_CASE("tries of one turn count against each other, so the bound holds when the older one fails") {  // E1
    scheduling::request_table table;
    scheduling::fresh_queue queue(2);
    for (std::uint64_t i = 1; i <= 5; ++i) {
        enqueue e;
        e.request = request_id{i};
        e.choices.push_back(rig::spec(i, 4, 1));
        queue.push(*table.accept(e, 0, false));
    }
    const auto any = [](const scheduling::sequence&) { return true; };
    CHECK(queue.next({}, table, any) == ticket{1});
    CHECK(queue.next({ticket{1}}, table, any) == ticket{2});
    CHECK(queue.next({ticket{1}, ticket{2}}, table, any) == ticket{3});
    // 1 has two younger tries beside it: a third would make three overtakes if it fails.
    CHECK(queue.next({ticket{1}, ticket{2}, ticket{3}}, table, any) == std::nullopt);
    // Failed tries cost nothing: 1 and 2 failed, 3 may still go, once.
    const auto not_first_two = [](const scheduling::sequence& s) { return s.who > ticket{2}; };
    CHECK(queue.next({}, table, not_first_two) == ticket{3});
    CHECK(queue.admitted(ticket{3}, table) == 2);
    CHECK(table.find(ticket{1})->overtaken == 1);
    CHECK(table.find(ticket{2})->overtaken == 1);
    CHECK(queue.admitted(ticket{2}, table) == 1);
    CHECK(table.find(ticket{1})->overtaken == 2);
    CHECK(queue.next({}, table, not_first_two) == std::nullopt);  // 1 has been overtaken C times
}

TEST_CASE("a scan looks at the head and C younger ones, no deeper") {  // E2
    scheduling::request_table table;
    scheduling::fresh_queue queue(2);
    for (std::uint64_t i = 1; i <= 6; ++i) {
        enqueue e;
        e.request = request_id{i};
        e.choices.push_back(rig::spec(i, 4, 1));
        queue.push(*table.accept(e, 0, false));
    }
    CHECK(queue.next({}, table, [](const auto& s) { return s.who == ticket{3}; }) == ticket{3});
    CHECK(queue.next({}, table, [](const auto& s) { return s.who == ticket{4}; }) == std::nullopt);
}

TEST_CASE("decoding arms no scan: a request that failed isn't tried again until something is released") {  // E2
    scheduler_options o = small_options(2);
    o.prefill_chunk_tokens = 16;
    o.batch_tokens = 32;
    rig r(o, 8);
    r.submit(1, 13, 16);  // grows to 7 pages
    REQUIRE(r.step());
    r.submit(2, 20, 1);  // 4 pages in its first unit; 4 are free, then fewer
    while (r.answer(1).ends == 0 && r.plans.size() < 14) REQUIRE(r.step());
    std::size_t tries = 0;
    for (const auto& plan : r.plans) tries += plan.binds.size();
    CHECK(tries <= 3);  // 1, and 2 at most twice: with the forecast, then with Program's own figure
    REQUIRE(r.run());
    CHECK(r.answer(2).tokens.size() == 1);
}

TEST_CASE("short of pages: cache goes first, nobody is paused for what the cache can give") {  // M1
    rig r(small_options(2), 8);
    r.program.cache = {{checkpoint_id{1}, 3}, {checkpoint_id{2}, 3}};
    scheduler fresh(small_options(2), r.program.view());
    r.core = std::move(fresh);
    r.submit(1, 8, 12);
    r.submit(2, 4, 2);
    REQUIRE(r.run());
    CHECK(r.core.look().pauses == 0);
    CHECK(r.program.cache.size() <= 1);
    CHECK(r.answer(1).tokens.size() == 12);
}

TEST_CASE("then the youngest is put back, never one older than the row in need, and is replayed later") {  // M1, M2, M4
    rig r(small_options(3), 9);
    r.submit(1, 8, 20);
    r.submit(2, 8, 20);
    r.submit(3, 8, 20);
    REQUIRE(r.run());
    std::vector<std::uint64_t> paused;
    for (const cycle_plan& plan : r.plans)
        for (const ticket who : plan.pauses) paused.push_back(who.value);
    REQUIRE_FALSE(paused.empty());
    CHECK(paused.front() == 3);
    for (const auto who : paused) CHECK(who != 1);  // the oldest is never put back
    for (std::uint64_t i = 1; i <= 3; ++i) {
        CHECK(r.answer(i).tokens.size() == 20);
        CHECK(r.answer(i).usage.generated == token_pos(20));
    }
    CHECK(r.answer(3).usage.pauses >= 1);
    CHECK(r.answer(3).usage.replayed > token_pos(0));
    CHECK(r.answer(1).usage.replayed == token_pos(0));
    CHECK_FALSE(r.program.bad_order);
    CHECK(r.core.look().watchdog_ends == 0);
}

TEST_CASE("who gives way") {  // M2, F7
    using namespace scheduling;
    std::map<int, sequence> s;
    for (int i = 1; i <= 3; ++i) {
        s[i].who = ticket{static_cast<std::uint64_t>(i)};
        s[i].now = phase::decode;
    }
    const std::vector<const sequence*> all{&s[1], &s[2], &s[3]};
    CHECK(relieve_resident(s[1], all).whom == ticket{3});
    CHECK(relieve_resident(s[3], all).whom == ticket{3});  // itself: it is the youngest
    CHECK(relieve_resident(s[3], all).what == relief::pause);
    s[3].recovering = true;
    CHECK(relieve_resident(s[1], all).whom == ticket{2});  // the holder of the recovery permit is never paused
    CHECK(relieve_resident(s[2], all).what == relief::wait);
    s[3].recovering = false;
    s[3].now = phase::copying;
    CHECK(relieve_resident(s[2], all).what == relief::wait);  // nor one that waits for a copy
    CHECK(relieve_resident(s[1], {&s[1]}).what == relief::fail);
    CHECK(relieve_paused(s[1], {&s[2]}).what == relief::pause);
    CHECK(relieve_paused(s[2], {&s[1], &s[3]}).what == relief::wait);  // an older resident is there (M4)
    CHECK(relieve_paused(s[1], {}).what == relief::fail);
}

TEST_CASE("a lone request whose next page doesn't exist ends at that token; the server lives on") {  // F7, fault 74
    rig r(small_options(2), 4);
    r.submit(1, 12, 40);  // 16 positions fit: 12 of the prompt, then 5 tokens
    REQUIRE(r.run());
    CHECK(r.answer(1).failure == failure_kind::capacity);
    CHECK(r.answer(1).tokens.size() == 5);
    CHECK(r.answer(1).error.find("at token 16") != std::string::npos);
    CHECK(r.core.look().watchdog_ends == 0);
    r.submit(2, 8, 2);
    REQUIRE(r.run());
    CHECK(r.answer(2).tokens.size() == 2);
}

TEST_CASE("a prompt that the pool can never hold is refused at once and blocks nobody") {  // fault 68
    scheduler_options o = small_options(1);
    o.request_tokens_max = 16;
    rig r(o, 4);
    r.submit(1, 17, 1);
    CHECK(r.answer(1).failure == failure_kind::capacity);
    CHECK(r.answer(1).error.find("17 tokens") != std::string::npos);
    CHECK(r.plans.empty());
    r.submit(2, 16, 1);
    REQUIRE(r.run());
    CHECK(r.answer(2).tokens.size() == 1);
}

TEST_CASE("without that limit, Program's `never` ends it") {  // fault 68
    scheduler_options o = small_options(1);
    o.prefill_chunk_tokens = 32;
    o.batch_tokens = 64;
    rig r(o, 4);
    r.submit(1, 17, 1);
    r.submit(2, 8, 1);
    REQUIRE(r.run());
    CHECK(r.answer(1).failure == failure_kind::capacity);
    CHECK(r.answer(2).tokens.size() == 1);
}

TEST_CASE("two requests that can't both stay never swap for ever") {  // D4: no livelock
    rig r(small_options(2), 6);
    r.submit(1, 8, 16);  // 6 pages each at the end
    r.submit(2, 8, 16);
    REQUIRE(r.run(4000));
    CHECK(r.answer(1).tokens.size() == 16);
    CHECK(r.answer(2).tokens.size() == 16);
    CHECK(r.answer(2).usage.pauses <= 3);
}

TEST_CASE("a paused request blocks only itself") {  // E6
    rig r(small_options(2), 8);
    r.submit(1, 8, 20);  // 7 pages in the end
    r.submit(2, 12, 12);
    while (r.core.look().paused == 0) REQUIRE(r.step());
    r.submit(3, 2, 1);  // one page
    while (r.answer(3).ends == 0) REQUIRE(r.step());
    CHECK(r.answer(1).ends == 0);
    CHECK(r.core.look().paused == 1);
    REQUIRE(r.run());
    CHECK(r.answer(2).tokens.size() == 12);
}

TEST_CASE("cancelling a paused one forgets its ledger too; cancelling during replay as well") {  // O1
    for (const bool in_replay : {false, true}) {
        rig r(small_options(2), 8);
        r.submit(1, 8, 20);
        r.submit(2, 12, 12);
        while (r.core.look().paused == 0) REQUIRE(r.step());
        if (in_replay)
            while (r.core.look().paused > 0) REQUIRE(r.step());
        r.cancel(2);
        REQUIRE(r.run());
        CHECK(r.answer(2).ends == 1);
        CHECK(r.answer(2).finish == finish_reason::cancelled);
        CHECK(r.program.rows.empty());
        CHECK(r.core.quiet());
        CHECK(r.answer(1).tokens.size() == 20);
    }
}

TEST_CASE("above tau_high new turns wait; below tau_admit they enter again") {  // Q1
    scheduler_options o = small_options(4);
    o.tau_high = 0.8;
    o.tau_admit = 0.4;
    rig r(o, 10);
    r.submit(1, 28, 4);  // 8 pages of 10
    while (r.answer(1).tokens.empty()) REQUIRE(r.step());
    r.submit(2, 4, 1);
    while (r.answer(1).ends == 0) {
        CHECK(r.answer(2).ends == 0);
        REQUIRE(r.step());
    }
    REQUIRE(r.run());
    CHECK(r.answer(2).tokens.size() == 1);
}

TEST_CASE("queue ages end at the first bind; first-token times are set once, pauses or not") {  // M6
    rig r(small_options(2), 8);
    r.submit(1, 8, 20);
    r.submit(2, 12, 12);
    REQUIRE(r.run());
    CHECK(r.answer(2).usage.pauses > 0);
    CHECK(r.answer(2).usage.ttft_ns < 10'000'000);  // its first token came before the pause: within ten cycles
    CHECK(r.answer(2).usage.queued_ns <= r.answer(2).usage.ttft_ns);
}
