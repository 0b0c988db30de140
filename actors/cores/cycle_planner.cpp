#include "actors/cores/cycle_planner.hpp"

#include <algorithm>

#include "messages/paging.hpp"

namespace fermata::scheduling {

namespace {

std::uint32_t pages_of(const prefill_demand& row, std::uint32_t tokens, std::uint32_t page_tokens) {
    if (row.permitted) return 0;
    if (row.pages_reported > 0) return row.pages_reported;
    return pages_for(row.frontier.value + tokens, page_tokens) - pages_for(row.frontier.value, page_tokens);
}

}  // namespace

std::vector<ticket> plan_units(const std::vector<decode_demand>& decodes, std::vector<prefill_demand>& prefills,
                               const unit_budget& budget, cycle_plan& plan) {
    std::vector<ticket> doubted;
    std::int64_t pages = budget.pages;
    std::uint32_t room = budget.batch_tokens;
    const auto fits = [&](ticket who, std::uint32_t needed) {
        if (needed > pages) {
            doubted.push_back(who);
            return false;
        }
        pages -= needed;
        return true;
    };
    for (const decode_demand& each : decodes) {
        plan.decodes.push_back(each.who);
        if (fits(each.who, each.pages)) --room;
    }
    std::sort(prefills.begin(), prefills.end(), [](const prefill_demand& a, const prefill_demand& b) {
        return a.last_prefill != b.last_prefill ? a.last_prefill < b.last_prefill : a.who < b.who;
    });
    for (const prefill_demand& each : prefills) {
        const std::uint32_t tokens = std::min({room, budget.chunk_tokens, each.left.value});
        if (tokens == 0) continue;
        plan.prefills.push_back({each.who, token_pos(tokens)});
        if (fits(each.who, pages_of(each, tokens, budget.page_tokens))) room -= tokens;
    }
    return doubted;
}

}  // namespace fermata::scheduling
