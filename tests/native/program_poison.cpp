// An invariant violation costs the objects it touched and nothing else (architecture 7). The tables of a Program are
// broken from inside; what follows is told in the row of the sequence they were broken for, and nobody else notices.
#include "native/program/core.hpp"
#include "native/program_driver.hpp"

using namespace fermata;
using namespace fermata::test;

namespace fermata::program_detail {

struct saboteur {
    program_core& core;
    page_store& pages() { return *core.pools_[0]; }
    const std::vector<page_id>& pages_of(ticket who) { return core.sequences_.at(who)->pages; }
    const std::vector<page_id>& pages_of(checkpoint_id point) { return core.points_.find(point)->pages; }
    bool knows(ticket who) const { return core.sequences_.contains(who); }
    bool lane_is_free(std::size_t which) const { return core.lanes_[which] == nullptr; }
};

}  // namespace fermata::program_detail

namespace {

const ticket a{1}, b{2};

struct scene {
    scene() : core(small_options(), oracle::make(how)) {
        cycle_plan plan;
        plan.binds.push_back({a, lane(0), spec_of(some_tokens(30, 1), 20), {}, token_pos(0), token_pos(64)});
        plan.binds.push_back({b, lane(1), spec_of(some_tokens(50, 2), 20), {}, token_pos(0), token_pos(64)});
        plan.prefills = {{a, token_pos(64)}, {b, token_pos(64)}};
        run(plan);
        REQUIRE(done.rows.size() == 2);
        REQUIRE(core.check_integrity() == "");
    }
    void run(const cycle_plan& plan) {
        core.run_cycle(plan, done);
        for (const row_result& row : done.rows) {
            if (row.who == b && row.token != no_token) of_b.push_back(row.token);
            if (row.who == a) of_a = row;
        }
    }
    void decode() {
        cycle_plan plan;
        plan.decodes = {a, b};
        run(plan);
    }
    // The other sequence and the lane of the lost one serve on.
    void others_go_on() {
        while (of_b.size() < 20) decode();
        CHECK(of_b == oracle::expected(how, some_tokens(50, 2), 20));
        cycle_plan plan;
        const ticket next(3);
        plan.binds.push_back({next, lane(0), spec_of(some_tokens(20, 3), 1), {}, token_pos(0), token_pos(64)});
        plan.prefills = {{next, token_pos(64)}};
        run(plan);
        REQUIRE(done.rows.size() == 1);
        CHECK(done.rows.front().token == oracle::expected(how, some_tokens(20, 3), 1).front());
    }

    oracle::options how = small_oracle(0);
    program_detail::program_core core;
    program_detail::saboteur inside{core};
    cycle_done done;
    row_result of_a;
    std::vector<token_id> of_b;
};

}  // namespace

TEST_CASE("a page that got a second holder is not written: its sequence ends with an error, others go on") {  // G7
    scene s;
    const page_id shared = s.inside.pages_of(a).back();
    s.inside.pages().add_reference(shared, holder::point);
    s.decode();
    CHECK(s.of_a.finish == finish_reason::error);
    CHECK(s.of_a.error == "internal: a page that others hold would be written");
    CHECK(s.of_a.frontier == token_pos(30));
    CHECK(s.of_a.token == no_token);
    CHECK_FALSE(s.inside.knows(a));
    CHECK(s.inside.lane_is_free(0));
    CHECK(s.of_b.size() == 2);  // in the very unit
    s.inside.pages().release(shared, holder::point);
    CHECK(s.core.check_integrity() == "");
    s.others_go_on();
    CHECK(s.core.check_integrity() == "");
}

TEST_CASE("a sequence whose pages can't be given back is dropped all the same; they stay out of use") {
    scene s;
    const page_id lost = s.inside.pages_of(a).back();
    s.inside.pages().release(lost, holder::sequence);  // behind its back
    s.decode();
    CHECK(s.of_a.finish == finish_reason::error);
    CHECK(s.of_a.error.starts_with("internal: "));
    CHECK_FALSE(s.inside.knows(a));
    CHECK(s.inside.lane_is_free(0));
    s.others_go_on();
}

TEST_CASE("a checkpoint whose pages can't be given back is dropped and told") {
    scene s;
    std::vector<context_event> events;
    s.core.take_events(events);  // the points at the ends of the prompts
    std::vector<checkpoint_id> points;
    for (const auto& event : events)
        if (const auto* made = std::get_if<checkpoint_published>(&event)) points.push_back(made->checkpoint);
    REQUIRE_FALSE(points.empty());
    s.inside.pages().release(s.inside.pages_of(points.front()).front(), holder::point);
    cycle_plan plan;
    plan.drops = {points.front()};
    s.run(plan);
    events.clear();
    s.core.take_events(events);
    REQUIRE(events.size() == 1);
    CHECK(std::get<checkpoint_dropped>(events.front()).checkpoint == points.front());
    CHECK(s.core.view()->points.size() == points.size() - 1);
    s.others_go_on();
}
