#include "actors/cores/cycle_planner.hpp"

#include <algorithm>

namespace fermata::scheduling {

void plan_units(const std::vector<ticket>& decodes, std::vector<prefill_demand>& prefills, const unit_budget& budget,
                cycle_plan& plan) {
    plan.decodes.insert(plan.decodes.end(), decodes.begin(), decodes.end());
    std::sort(prefills.begin(), prefills.end(), [](const prefill_demand& a, const prefill_demand& b) {
        return a.last_prefill != b.last_prefill ? a.last_prefill < b.last_prefill : a.who < b.who;
    });
    std::uint32_t room = budget.batch_tokens - std::min<std::uint32_t>(budget.batch_tokens,
                                                                       static_cast<std::uint32_t>(decodes.size()));
    for (const prefill_demand& each : prefills) {
        const std::uint32_t tokens = std::min({room, budget.chunk_tokens, each.left.value});
        if (tokens == 0) continue;
        plan.prefills.push_back({each.who, token_pos(tokens)});
        room -= tokens;
    }
}

}  // namespace fermata::scheduling
