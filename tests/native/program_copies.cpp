// Copies under way: leases, cancels on both sides of the hand-out, late and failed answers. Races are written down in
// both orders.
#include <cstring>

#include "native/program_driver.hpp"

using namespace fermata;
using namespace fermata::test;

namespace {

const ticket a{1}, b{2}, c{3};

struct scene {
    explicit scene(std::size_t state_bytes) : how(small_oracle(state_bytes)), d(make_options(), how) {
        start = some_tokens(40, 1);
        all = joined(start, d.complete(a, spec_of(start, 10)).tokens);
        end = d.last_point();
    }
    static program_options make_options() {
        auto out = small_options();
        out.kv_capacity_tokens = 512;
        return out;
    }
    // Binds b to the end of a's history (49 tokens: a copied tail, and an image for hybrids).
    void bind_b() {
        prompt = joined(all, some_tokens(10, 3));
        REQUIRE(d.bind(b, spec_of(prompt, 10), lane(1), end.checkpoint, 49).outcome == bind_outcome::copying);
    }
    copy_order hand_out() {
        copy_order order;
        REQUIRE(d.core.next_copy(order));
        return order;
    }
    oracle::options how;
    driver d;
    std::vector<token_id> start, all, prompt;
    checkpoint_published end;
};

}  // namespace

TEST_CASE("a bind that copies waits: no unit runs before the copy is complete") {  // N1, N2
    for (std::size_t state_bytes : {0u, 64u}) {
        scene s(state_bytes);
        s.bind_b();
        CHECK(s.d.done.copies_in_flight == 1);
        CHECK(s.d.prefill(b).rows.empty());
        CHECK(s.d.decode({b}).rows.empty());
        const copy_order order = s.hand_out();
        CHECK(order.pages.size() == 1);
        CHECK(order.states.size() == (state_bytes ? 1 : 0));
        copy_order none;
        CHECK_FALSE(s.d.core.next_copy(none));  // each once
        CHECK(s.d.prefill(b).rows.empty());
        program_notice notice;
        CHECK(s.d.core.complete(s.d.core.copies()->run(order), notice));
        REQUIRE(notice.binds.size() == 1);
        CHECK(notice.binds[0].outcome == bind_outcome::bound);
        CHECK(notice.binds[0].position.value == 49);
        CHECK(notice.copies_in_flight == 0);
        CHECK(s.d.prefill(b).rows.size() == 1);
        s.d.run_until(b, 10);
        CHECK(s.d.answers[b].tokens == oracle::expected(s.how, s.prompt, 10));
    }
}

TEST_CASE("an answer is taken once; unknown and early ones are nobody's") {  // N2
    scene s(0);
    s.bind_b();
    CHECK_FALSE(s.d.finish_copy({copy_id(1), true, {}}));   // not handed out yet: nobody can have done it
    CHECK_FALSE(s.d.finish_copy({copy_id(77), true, {}}));
    const copy_order order = s.hand_out();
    const copy_done done = s.d.core.copies()->run(order);
    CHECK(s.d.finish_copy(done));
    CHECK_FALSE(s.d.finish_copy(done));
    s.d.run_until(b, 10);
    CHECK(s.d.answers[b].tokens == oracle::expected(s.how, s.prompt, 10));
}

TEST_CASE("cancelled before the copy began: everything is undone at once") {  // N2
    for (std::size_t state_bytes : {0u, 64u}) {
        scene s(state_bytes);
        const occupancy before = s.d.done.room;
        s.bind_b();
        s.d.cancel(b);
        CHECK(s.d.done.room == before);
        CHECK(s.d.done.copies_in_flight == 0);
        copy_order none;
        CHECK_FALSE(s.d.core.next_copy(none));
        CHECK(s.d.points.count(s.end.checkpoint) == 1);
    }
}

TEST_CASE("cancelled while the copy runs: its destination is not reused before it is complete") {  // N4, fault 8
    for (std::size_t state_bytes : {0u, 64u}) {
        scene s(state_bytes);
        const occupancy before = s.d.done.room;
        s.bind_b();
        const copy_order order = s.hand_out();
        s.d.cancel(b);
        CHECK(s.d.done.room.pages_free == before.pages_free - 1);
        if (state_bytes) CHECK(s.d.done.room.state_slots_free == before.state_slots_free - 1);
        CHECK(s.d.done.copies_in_flight == 1);
        // The lane is free at once. Somebody takes all pages that can be had: the destination is not among them.
        CHECK(s.d.bind(c, spec_of(some_tokens(16 * before.pages_free - 5, 9), 5), lane(1), {}, 0, 128).outcome ==
              bind_outcome::bound);
        while (s.d.prefill(c, 128).shortages.empty()) continue;
        CHECK(s.d.done.shortages[0].pages >= 1);
        program_notice notice;
        CHECK(s.d.core.complete(s.d.core.copies()->run(order), notice));  // room came: the Scheduler hears of it
        CHECK(notice.binds.empty());
        CHECK(s.d.core.check_integrity() == "");
        s.d.run_until(c, 99, 128);
        CHECK(s.d.answers[c].tokens ==
              oracle::expected(s.how, some_tokens(16 * before.pages_free - 5, 9), s.d.answers[c].tokens.size()));
    }
}

TEST_CASE("the source of a copy under way stays until it is complete, then goes") {  // N2, N4, K3
    for (std::size_t state_bytes : {0u, 64u})
        for (bool handed_out : {false, true}) {
            scene s(state_bytes);
            s.bind_b();
            copy_order order;
            if (handed_out) order = s.hand_out();
            s.d.drop(s.end.checkpoint);
            CHECK(s.d.points.size() == 1);  // not gone yet
            CHECK(s.d.core.view()->points.empty());  // but offered to nobody
            CHECK(s.d.bind(c, spec_of(s.prompt, 3), lane(2), s.end.checkpoint, 49).outcome == bind_outcome::stale);
            if (!handed_out) order = s.hand_out();
            // Units of others go on meanwhile (N3) and may not touch the source.
            s.d.complete(c, spec_of(some_tokens(60, 8), 5));
            s.d.finish_copy(s.d.core.copies()->run(order));
            CHECK(s.d.points.count(s.end.checkpoint) == 0);
            s.d.run_until(b, 10);
            CHECK(s.d.answers[b].tokens == oracle::expected(s.how, s.prompt, 10));
        }
}

TEST_CASE("a bind cancelled after its source was dropped lets the source go at once") {
    scene s(0);
    s.bind_b();
    s.d.drop(s.end.checkpoint);
    s.d.cancel(b);
    CHECK(s.d.points.empty());
    CHECK(s.d.free_pages() == s.d.done.room.pages_total);
}

TEST_CASE("a copy that failed undoes the bind; the sequence may choose again") {  // N2
    for (std::size_t state_bytes : {0u, 64u}) {
        scene s(state_bytes);
        const occupancy before = s.d.done.room;
        s.bind_b();
        const copy_order order = s.hand_out();
        program_notice notice;
        CHECK(s.d.core.complete({order.copy, false, "device lost the race"}, notice));
        REQUIRE(notice.binds.size() == 1);
        CHECK(notice.binds[0].outcome == bind_outcome::stale);
        CHECK(notice.binds[0].text == "the copy failed: device lost the race");
        CHECK(s.d.core.check_integrity() == "");
        s.d.run({});
        CHECK(s.d.done.room == before);
        CHECK(s.d.adopted.empty());  // F11: no use was made
        s.d.complete(b, spec_of(s.prompt, 10), {}, 0, 0, lane(1));
        CHECK(s.d.answers[b].tokens == oracle::expected(s.how, s.prompt, 10));
    }
}

TEST_CASE("a resume whose copy failed is paused again, with its ledger") {
    scene s(0);
    s.d.bind(b, spec_of(s.start, 30), lane(1));
    s.d.run_until(b, 15);
    s.d.pause(b);
    REQUIRE(s.d.resume(b, lane(1), s.end.checkpoint, 49).outcome == bind_outcome::copying);
    program_notice notice;
    s.d.core.complete({s.hand_out().copy, false, "no"}, notice);
    CHECK(s.d.core.check_integrity() == "");
    CHECK(s.d.resume(b, lane(2)).outcome == bind_outcome::bound);
    s.d.run_until(b, 30);
    CHECK(s.d.answers[b].tokens == oracle::expected(s.how, s.start, 30));
}

TEST_CASE("a waiting bind is not paused; the order is passed over") {  // M2
    scene s(0);
    s.bind_b();
    CHECK(s.d.pause(b).pauses.empty());
    s.d.finish_copies();
    s.d.run_until(b, 10);
    CHECK(s.d.answers[b].tokens == oracle::expected(s.how, s.prompt, 10));
}

TEST_CASE("a point that its own reader outgrows waits for another reader's copy") {
    scene s(0);
    // b and c both grow from the end of a; b is done before c's copy was made.
    s.bind_b();
    s.d.finish_copies();
    s.d.bind(c, spec_of(joined(s.all, {5}), 10), lane(2), s.end.checkpoint, 49);
    s.d.run_until(b, 99);
    CHECK(s.d.points.count(s.end.checkpoint) == 1);
    s.d.finish_copies();
    CHECK(s.d.points.count(s.end.checkpoint) == 0);
    s.d.run_until(c, 10);
    CHECK(s.d.answers[c].tokens == oracle::expected(s.how, joined(s.all, {5}), 10));
}

TEST_CASE("the copy engine refuses ids that don't exist") {
    scene s(64);
    auto engine = s.d.core.copies();
    CHECK_FALSE(engine->run({copy_id(1), {{0, page_id(0), page_id(9999)}}, {}}).complete);
    CHECK_FALSE(engine->run({copy_id(1), {{3, page_id(0), page_id(1)}}, {}}).complete);
    CHECK_FALSE(engine->run({copy_id(1), {}, {{state_slot(0), state_slot(999)}}}).complete);
}

TEST_CASE("the engine outlives its Program") {
    std::shared_ptr<copy_engine> engine;
    copy_order order;
    {
        scene s(0);
        s.bind_b();
        order = s.hand_out();
        engine = s.d.core.copies();
    }
    CHECK(engine->run(order).complete);
}
