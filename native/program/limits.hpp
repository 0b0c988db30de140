// The sizes a Program runs with, worked out from options and model in one place (fault 68): what is checked at start
// is what admission uses later.
#pragma once

#include "native/program.hpp"

namespace fermata::program_detail {

struct limits {
    std::uint32_t page_tokens = 0;
    std::uint32_t max_context_tokens = 0;
    std::uint32_t pages = 0;        // Main pool
    std::uint32_t state_slots = 0;  // 0 when the model has no recurrent state
    std::uint32_t lanes = 0;
    std::uint32_t score_rows = 0;   // logit rows kept at once for prompts that are scored
};

// Throws std::invalid_argument that names the option and both ends of its range (B2).
limits check_options(const program_options& options, const model_layout& layout);
memory_plan plan_of(const limits& sizes, const model_layout& layout);

}  // namespace fermata::program_detail
