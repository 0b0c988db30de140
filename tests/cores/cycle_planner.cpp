// The units of one cycle, by hand arithmetic.
#include <doctest/doctest.h>

#include "actors/cores/cycle_planner.hpp"

using namespace fermata;
using namespace fermata::scheduling;

namespace {

prefill_demand chunk(std::uint64_t who, std::uint32_t left, std::uint64_t last, std::uint32_t frontier) {
    prefill_demand d;
    d.who = ticket{who};
    d.left = token_pos(left);
    d.last_prefill = last;
    d.frontier = token_pos(frontier);
    return d;
}

std::vector<std::pair<std::uint64_t, std::uint32_t>> chunks(const cycle_plan& plan) {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> out;
    for (const auto& each : plan.prefills) out.emplace_back(each.who.value, each.tokens_max.value);
    return out;
}

using list = std::vector<std::pair<std::uint64_t, std::uint32_t>>;

}  // namespace

TEST_CASE("decode rows first, then chunks in rotation, within batch_tokens") {  // D5
    cycle_plan plan;
    std::vector<prefill_demand> rows{chunk(1, 50, 9, 0), chunk(2, 50, 4, 0), chunk(3, 50, 7, 0)};
    const auto doubted = plan_units({{ticket{8}, 1}, {ticket{9}, 0}}, rows, {14, 8, 4, 100}, plan);
    CHECK(doubted.empty());
    CHECK(plan.decodes == std::vector<ticket>{ticket{8}, ticket{9}});
    CHECK(chunks(plan) == list{{2, 8}, {3, 4}});  // 2 decodes + 8 + 4 = 14
}

TEST_CASE("a row that the figures find short costs the unit neither tokens nor pages") {  // D1
    // Pages of 4 tokens, 2 free; Program told that row 1 needs 3.
    cycle_plan plan;
    std::vector<prefill_demand> rows{chunk(1, 50, 1, 4), chunk(2, 50, 2, 6), chunk(3, 50, 3, 4)};
    rows[0].pages_reported = 3;
    // Row 2: tokens 6 to 14, 2 pages held, 4 wanted. Row 3: tokens 4 to 4 + the rest of the batch.
    const auto doubted = plan_units({}, rows, {8, 8, 4, 2}, plan);
    CHECK(doubted == std::vector<ticket>{ticket{1}});
    CHECK(chunks(plan) == list{{1, 8}, {2, 8}});  // row 2 has the whole unit
}

TEST_CASE("everybody short: everybody is offered, so Program names them all at once") {
    cycle_plan plan;
    std::vector<prefill_demand> rows{chunk(1, 5, 1, 4), chunk(2, 50, 2, 8)};
    const auto doubted = plan_units({{ticket{3}, 1}}, rows, {8, 8, 4, 0}, plan);
    CHECK(doubted == std::vector<ticket>{ticket{3}, ticket{1}, ticket{2}});
    CHECK(plan.decodes.size() == 1);
    CHECK(chunks(plan) == list{{1, 5}, {2, 8}});
}

TEST_CASE("a permit of a bind needs no page of the pool; a chunk within a held page neither") {  // N1
    cycle_plan plan;
    std::vector<prefill_demand> rows{chunk(1, 50, 1, 0), chunk(2, 2, 2, 5)};
    rows[0].permitted = true;
    CHECK(plan_units({}, rows, {16, 8, 4, 0}, plan).empty());
    CHECK(chunks(plan) == list{{1, 8}, {2, 2}});  // 5 to 7 stays within its second page
}
