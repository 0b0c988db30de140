// One request, many requests, ends of every kind.
#include <doctest/doctest.h>

#include "rig.hpp"

using namespace fermata;
using namespace fermata::testing;

TEST_CASE("a request is prefilled in chunks, decoded, and ends once") {
    rig r(small_options());
    r.submit(1, 20, 3);
    REQUIRE(r.run());
    CHECK(r.answer(1).tokens == std::vector<token_id>{7, 7, 7});
    CHECK(r.answer(1).finish == finish_reason::length);
    CHECK(r.answer(1).ends == 1);
    CHECK(r.answer(1).usage.prompt == token_pos(20));
    CHECK(r.answer(1).usage.generated == token_pos(3));
    CHECK(r.plans.size() == 5);  // chunks 8, 8, 4 (first token), then two decode cycles
    CHECK(r.core.quiet());
    CHECK_FALSE(r.program.bad_order);
}

TEST_CASE("steady decode is one plan and one answer a cycle, and nothing else") {  // architecture 3
    rig r(small_options(4));
    for (std::uint64_t i = 1; i <= 4; ++i) r.submit(i, 4, 100);
    for (int i = 0; i < 12; ++i) REQUIRE(r.step());
    const auto messages = r.messages, plans = r.plans.size(), batches = r.outputs_seen;
    for (int i = 0; i < 50; ++i) REQUIRE(r.step_program());
    CHECK(r.plans.size() - plans == 50);
    CHECK(r.outputs_seen - batches == 50);
    CHECK(r.messages - messages == 100);  // a plan to Program and one batch of tokens to the Frontend
}

TEST_CASE("the next plan leaves before the tokens do") {
    scheduler_options o = small_options();
    fake_program program(16, o.page_tokens);
    scheduler core(o, program.view());
    scheduler::commands out;
    enqueue e;
    e.request = request_id{1};
    e.choices.push_back(rig::spec(1, 4, 5));
    core.on(e, 0, out);
    const auto plan = std::get<cycle_plan>(out[1]);
    out.clear();
    core.on(program.run(plan), 1, out);
    REQUIRE(out.size() >= 2);
    CHECK(std::holds_alternative<cycle_plan>(out[0]));
    CHECK(std::holds_alternative<outputs>(out[1]));
}

TEST_CASE("answers of another turn change nothing") {  // D6
    rig r(small_options());
    r.submit(1, 4, 2);
    cycle_done old;
    old.cycle = cycle_no{77};
    old.device_failed = true;
    r.give(old);
    r.give(source_chosen{cycle_no{99}, ticket{1}, checkpoint_id{5}, token_pos(4)});
    r.give(victims_chosen{cycle_no{99}, {checkpoint_id{5}}, 1, 0, true});
    REQUIRE(r.run());
    CHECK(r.answer(1).finish == finish_reason::length);
    CHECK(r.answer(1).ends == 1);
}

TEST_CASE("several short prompts share one unit, within batch_tokens; long ones rotate") {  // D5
    scheduler_options o = small_options(4);
    rig r(o);
    r.submit(9, 40, 1);
    for (std::uint64_t i = 1; i <= 3; ++i) r.submit(i, 4, 1);
    REQUIRE(r.run());
    for (const cycle_plan& plan : r.plans) {
        std::uint32_t tokens = static_cast<std::uint32_t>(plan.decodes.size());
        for (const auto& each : plan.prefills) {
            CHECK(each.tokens_max.value <= o.prefill_chunk_tokens);
            tokens += each.tokens_max.value;
        }
        CHECK(tokens <= o.batch_tokens);
    }
    CHECK(r.plans[1].prefills.size() == 3);  // the long one's 8, then two of 4
}

TEST_CASE("two long prefills take turns and a decoding row is in every unit") {  // fault 73
    scheduler_options o = small_options(3);
    o.batch_tokens = 9;  // one chunk beside one decode row
    rig r(o);
    r.submit(1, 4, 60);
    REQUIRE(r.step());
    r.submit(2, 64, 1);
    r.submit(3, 64, 1);
    REQUIRE(r.run());
    ticket last{};
    int same = 0;
    for (std::size_t i = 2; i < 16; ++i) {
        REQUIRE(r.plans[i].decodes.size() == 1);
        REQUIRE(r.plans[i].prefills.size() == 1);
        same = r.plans[i].prefills[0].who == last ? same + 1 : 0;
        CHECK(same == 0);
        last = r.plans[i].prefills[0].who;
    }
}

TEST_CASE("cancel at every stage ends once, frees the lane, and leaves others alone") {  // O1, faults 82, 83
    for (int when = 0; when < 12; ++when) {
        rig r(small_options(1));
        r.submit(1, 20, 4);
        r.submit(2, 20, 4);
        for (int i = 0; i < when; ++i) r.step();
        const bool already = r.answer(1).ends > 0;
        r.cancel(1);
        r.cancel(1);
        REQUIRE(r.run());
        CHECK(r.answer(1).ends == 1);
        if (!already) CHECK(r.answer(1).finish == finish_reason::cancelled);
        CHECK(r.answer(2).tokens.size() == 4);
        CHECK(r.core.quiet());
        CHECK(r.core.look().lanes_used == 0);
        CHECK(r.program.rows.empty());
        r.cancel(1);  // long gone
        CHECK(r.run());
    }
}

TEST_CASE("cancelling a queued request does nothing to a running one") {  // fault 82
    rig r(small_options(1));
    r.submit(1, 8, 6);
    r.step();
    r.submit(2, 8, 6);
    r.cancel(2);
    REQUIRE(r.run());
    CHECK(r.answer(2).finish == finish_reason::cancelled);
    CHECK(r.answer(2).tokens.empty());
    CHECK(r.answer(1).tokens.size() == 6);
    for (const cycle_plan& plan : r.plans) CHECK(plan.cancels.empty());
}

TEST_CASE("a row that isn't finite fails alone") {
    rig r(small_options(2));
    r.submit(1, 4, 5);
    r.submit(2, 4, 5);
    r.step();
    r.program.broken_rows.insert(ticket{1});
    REQUIRE(r.run());
    CHECK(r.answer(1).failure == failure_kind::not_finite);
    CHECK(r.answer(2).tokens.size() == 5);
}

TEST_CASE("why a row failed is what Program says of it, whatever its text") {
    rig r(small_options(2));
    r.program.row_error = "internal matters";  // a journal without text has another text still
    r.submit(1, 4, 5);
    r.step();
    r.program.broken_rows.insert(ticket{1});
    REQUIRE(r.run());
    CHECK(r.answer(1).failure == failure_kind::not_finite);
}

TEST_CASE("a fresh Scheduler has nothing under way, whatever the one before it left in the gauges") {
    scheduler_options o = small_options(2);
    o.numbers = std::make_shared<telemetry>();
    telemetry& n = *o.numbers;
    {
        rig died(o);
        died.submit(1, 4, 50);
        died.submit(2, 4, 50);
        died.submit(3, 4, 50);
        died.step();
        REQUIRE(n.work_since_ns != 0);
        REQUIRE(n.queue_length > 0);
        REQUIRE(n.lanes_used > 0);
    }
    const rig fresh(o);
    CHECK(n.work_since_ns == 0);
    CHECK(n.queue_length == 0);
    CHECK(n.lanes_used == 0);
    for (const gauge* each : {&n.requests_queued, &n.requests_waiting_source, &n.requests_prefill, &n.requests_decode,
                              &n.requests_replay, &n.requests_paused})
        CHECK(*each == 0);
    CHECK(n.queue_limit == o.max_pending);
}

TEST_CASE("a request counts once, as the worst that became of a choice, whichever ended last") {
    auto options = small_options(4);
    options.numbers = std::make_shared<telemetry>();
    rig r(options);
    const telemetry& n = *options.numbers;
    r.submit(1, 4, 5, 2);
    REQUIRE(r.run());
    CHECK(n.requests_length == 1);
    for (const std::uint64_t broken : {3U, 6U}) {  // choice 0 of the next request, then choice 1 of the one after
        r.submit(broken, 4, 5, 2);
        r.program.broken_rows.insert(ticket{broken});
        REQUIRE(r.run());
    }
    CHECK(n.requests_failed == 2);
    CHECK(n.requests_length == 1);
    r.submit(9, 4, 5, 3);
    r.cancel(9);
    REQUIRE(r.run());
    CHECK(n.requests_cancelled == 1);
    CHECK(n.requests_stop == 0);
}

TEST_CASE("a failed device ends everything with an internal error and takes no more") {
    rig r(small_options(1));
    r.submit(1, 4, 50);
    r.submit(2, 4, 50);
    r.step();
    r.program.fail_device = true;
    REQUIRE(r.run());
    CHECK(r.answer(1).failure == failure_kind::internal);
    CHECK(r.answer(2).failure == failure_kind::internal);
    CHECK(r.core.quiet());
    r.submit(3, 4, 1);
    CHECK_FALSE(r.admissions.back().accepted);
    CHECK(r.admissions.back().why == refusal::out_of_order);
}

TEST_CASE("a request that is wrong is no full queue") {
    rig r(small_options(1));
    r.submit(1, 4, 5, 0);
    CHECK(r.admissions.back().why == refusal::malformed);
    r.submit(2, 4, 5);
    CHECK(r.admissions.back().why == refusal::none);
    r.submit(2, 4, 5);
    CHECK_FALSE(r.admissions.back().accepted);
    CHECK(r.admissions.back().why == refusal::malformed);
}

TEST_CASE("the queue has a limit, and says when to come back") {
    scheduler_options o = small_options(1);
    o.max_pending = 2;
    rig r(o);
    r.submit(1, 4, 30);
    r.step();
    r.submit(2, 4, 1, 3);  // three choices are one pending request
    r.submit(3, 4, 1);
    CHECK(r.admissions.back().accepted);
    r.submit(4, 4, 1);
    CHECK_FALSE(r.admissions.back().accepted);
    CHECK(r.admissions.back().why == refusal::queue_full);
    CHECK(r.admissions.back().retry_after_s > 0);
    REQUIRE(r.run());
    CHECK(r.answers.count({4, 0}) == 0);
    r.submit(3, 4, 1);
    CHECK(r.admissions.back().accepted);
}

TEST_CASE("deadlines and the pending timeout end exactly the late ones") {
    scheduler_options o = small_options(1);
    o.pending_timeout = 50'000'000;
    rig r(o);
    r.submit(1, 4, 1000, 1, r.now + 80'000'000);
    r.submit(2, 4, 2);
    CHECK(r.wakes.size() >= 1);
    for (int i = 0; i < 200 && r.step(); ++i) {}
    CHECK(r.answer(2).failure == failure_kind::queue_timeout);
    CHECK(r.answer(1).failure == failure_kind::deadline);
    CHECK(r.answer(1).tokens.size() > 60);
    CHECK(r.core.quiet());
    CHECK(r.program.rows.empty());
}

TEST_CASE("draining finishes accepted work; what outlives the grace time is cut short") {
    rig r(small_options(1));
    r.submit(1, 4, 3);
    r.submit(2, 4, 1000);
    r.submit(3, 4, 5);
    r.give(drain{r.now + 40'000'000});
    r.submit(4, 4, 1);
    CHECK_FALSE(r.admissions.back().accepted);
    CHECK(r.admissions.back().why == refusal::shutting_down);
    CHECK(r.drains.empty());
    REQUIRE(r.run());
    CHECK(r.answer(1).finish == finish_reason::length);
    CHECK(r.answer(2).failure == failure_kind::shutting_down);
    CHECK(r.answer(3).failure == failure_kind::shutting_down);
    REQUIRE(r.drains.size() == 1);
    CHECK(r.drains[0].cut_short == 2);
}

TEST_CASE("draining an idle node is done at once") {
    rig r(small_options(1));
    r.give(drain{r.now});
    REQUIRE(r.drains.size() == 1);
    CHECK(r.drains[0].cut_short == 0);
}

TEST_CASE("choices of one request: later ones wait for the first one's prompt, then run beside it") {
    rig r(small_options(4));
    r.submit(1, 20, 6, 3);
    r.step();
    CHECK(r.plans[0].binds.size() == 1);
    CHECK(r.plans[1].binds.empty());
    REQUIRE(r.run());
    for (std::uint32_t i = 0; i < 3; ++i) CHECK(r.answer(1, i).tokens.size() == 6);
    std::size_t bind_plan = 0;
    for (std::size_t i = 1; i < r.plans.size(); ++i)
        if (r.plans[i].binds.size() == 2) bind_plan = i;
    CHECK(bind_plan == 3);  // after 8 + 8 + 4 tokens
}

TEST_CASE("choices don't wait where positions can't be shared, nor for a first one that was cancelled") {
    scheduler_options o = small_options(4);
    o.attention_only = false;
    rig r(o);
    r.submit(1, 20, 6, 3);
    CHECK(r.plans[0].binds.size() == 3);
    REQUIRE(r.run());
}

TEST_CASE("a failed copy puts the request back, and it is bound again") {
    rig r(small_options(2));
    r.program.copy_binds = {ticket{1}};
    r.submit(1, 8, 2);
    r.step();
    CHECK(r.to_program.empty());  // nothing to run: no idle spinning while the copy is on its way
    r.give(r.program.finish_copy(ticket{1}, false));
    REQUIRE(r.run());
    CHECK(r.answer(1).tokens.size() == 2);
}

TEST_CASE("cancel while a copy is in flight") {
    rig r(small_options(1));
    r.program.copy_binds = {ticket{1}};
    r.submit(1, 8, 2);
    r.submit(2, 8, 2);
    r.step();
    r.cancel(1);
    REQUIRE(r.run());
    r.give(r.program.finish_copy(ticket{1}));
    REQUIRE(r.run());
    CHECK(r.answer(1).finish == finish_reason::cancelled);
    CHECK(r.answer(2).tokens.size() == 2);
    CHECK_FALSE(r.program.lane_clash);
}

TEST_CASE("a copy that never completes has a deadline") {  // D4
    scheduler_options o = small_options(1);
    o.copy_timeout = 5'000'000;
    rig r(o);
    r.program.copy_binds = {ticket{1}};
    r.submit(1, 8, 2);
    r.step();
    REQUIRE_FALSE(r.wakes.empty());
    r.now = r.wakes.back();
    r.give(tick{});
    REQUIRE(r.run());
    CHECK(r.answer(1).failure == failure_kind::internal);
    CHECK(r.core.look().lanes_used == 0);
}

TEST_CASE("a stale source is chosen again, in the end from the root") {
    rig r(small_options(1));
    r.program.stale_binds = {ticket{1}};
    r.submit(1, 8, 2);
    REQUIRE(r.run());
    CHECK(r.answer(1).tokens.size() == 2);
    CHECK(r.plans.size() == 4 - 1);
}

TEST_CASE("options are checked by name") {
    scheduler_options o = small_options(8);
    o.batch_tokens = 8;
    CHECK_THROWS_WITH_AS(scheduler(o, nullptr), doctest::Contains("batch-tokens (8)"), std::invalid_argument);
    o.batch_tokens = 9;
    o.prefill_chunk_tokens = 0;
    CHECK_THROWS_AS(scheduler(o, nullptr), std::invalid_argument);
}
