// See penalty_counts.hpp.
#include "native/sampling/penalty_counts.hpp"

#include <bit>

namespace fermata::sampling {

penalty_counts::penalty_counts(std::size_t distinct_max) : slots_(std::bit_ceil(2 * distinct_max + 2), 0) {
    entries_.reserve(distinct_max);
}

void penalty_counts::add_prompt(std::span<const token_id> tokens) {
    for (token_id token : tokens) find(token).in_prompt = true;
}

penalty_counts::entry& penalty_counts::find(token_id token) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = (static_cast<std::uint32_t>(token) * 0x9E3779B1u) & mask;
    while (slots_[i] != 0) {
        entry& e = entries_[slots_[i] - 1];
        if (e.token == token) return e;
        i = (i + 1) & mask;
    }
    entries_.push_back({token, 0, false});
    slots_[i] = static_cast<std::uint32_t>(entries_.size());
    return entries_.back();
}

}  // namespace fermata::sampling
