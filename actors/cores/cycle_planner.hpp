// The units of one cycle: every row that holds a token, then prefill and replay chunks in rotation.
//
// D5: decode rows plus chunk tokens stay within batch_tokens. The chunk that waited longest goes first and gets up to
// prefill_chunk_tokens; what is left of the batch goes to the next ones in rotation, so short prompts share a unit.
// Decode rows are in every unit, so no prefill can starve them (fault 73).
#pragma once

#include <cstdint>
#include <vector>

#include "messages/cycle.hpp"

namespace fermata::scheduling {

struct prefill_demand {
    ticket who{};
    token_pos left{0};
    std::uint64_t last_prefill = 0;  // rotation key, smaller first
};

struct unit_budget {
    std::uint32_t batch_tokens = 1024;  // more than there are lanes
    std::uint32_t chunk_tokens = 512;
};

// Adds `decodes` and chunks for `prefills` to the plan. Sorts `prefills` into rotation order.
void plan_units(const std::vector<ticket>& decodes, std::vector<prefill_demand>& prefills, const unit_budget& budget,
                cycle_plan& plan);

}  // namespace fermata::scheduling
