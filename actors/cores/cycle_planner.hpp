// The units of one cycle: every row that holds a token, then prefill and replay chunks in rotation.
//
// D5: decode rows plus chunk tokens stay within batch_tokens. The chunk that waited longest goes first and gets up to
// prefill_chunk_tokens; what is left of the batch goes to the next ones in rotation, so short prompts share a unit.
// Decode rows are in every unit, so no prefill can starve them (fault 73).
//
// D1: a row short of pages doesn't stop the rest. One that the figures find short is offered all the same (Program has
// the last word) but costs the unit neither tokens nor pages: the rows behind it may use both. Should it fit after
// all, Program cuts the unit to batch_tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "messages/cycle.hpp"

namespace fermata::scheduling {

struct decode_demand {
    ticket who{};
    std::uint32_t pages = 0;  // beyond those it holds
};

struct prefill_demand {
    ticket who{};
    token_pos left{0};
    std::uint64_t last_prefill = 0;  // rotation key, smaller first
    token_pos frontier{0};
    bool permitted = false;          // its permit covers this unit: no page of the pool is needed
    std::uint32_t pages_reported = 0;  // Program's own figure after a shortage; 0: by the frontier
};

struct unit_budget {
    std::uint32_t batch_tokens = 1024;  // more than there are lanes
    std::uint32_t chunk_tokens = 512;
    std::uint32_t page_tokens = 64;
    std::int64_t pages = 0;             // free when the unit begins
};

// Adds decodes and chunks to the plan. Sorts `prefills` into rotation order. Returns the rows it expects to be short.
std::vector<ticket> plan_units(const std::vector<decode_demand>& decodes, std::vector<prefill_demand>& prefills,
                               const unit_budget& budget, cycle_plan& plan);

}  // namespace fermata::scheduling
