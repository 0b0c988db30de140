// How tokens fill pages.
#pragma once

#include <cstdint>

namespace fermata {

// Pages that hold `tokens` tokens. The one rule that sizes pools, permits, estimates and refusals (fault 68).
constexpr std::uint32_t pages_for(std::uint64_t tokens, std::uint32_t page_tokens) {
    return static_cast<std::uint32_t>((tokens + page_tokens - 1) / page_tokens);
}

}  // namespace fermata
