#include "actors/cores/fresh_queue.hpp"

#include <algorithm>

namespace fermata::scheduling {

void fresh_queue::push(ticket who) {
    queue_.insert(std::upper_bound(queue_.begin(), queue_.end(), who), who);
    ++version_;
}

void fresh_queue::remove(ticket who) {
    if (std::erase(queue_, who) > 0) ++version_;
}

std::uint32_t fresh_queue::admitted(ticket who, request_table& table) {
    std::uint32_t passed = 0;
    for (const ticket older : queue_) {
        if (older == who) break;
        if (sequence* s = table.find(older)) ++s->overtaken, ++passed;
    }
    remove(who);
    return passed;
}

std::optional<ticket> fresh_queue::next(const std::vector<ticket>& taken, const request_table& table,
                                        const std::function<bool(const sequence&)>& may_try) const {
    const auto is_taken = [&](ticket who) { return std::find(taken.begin(), taken.end(), who) != taken.end(); };
    const std::size_t window = std::min<std::size_t>(queue_.size(), std::size_t{bypass_max_} + 1);
    // Tries of one turn may fail singly, so a request counts as overtaken by every younger try beside it.
    for (std::size_t i = 0; i < window; ++i) {
        const sequence& candidate = *table.find(queue_[i]);
        if (!is_taken(candidate.who) && may_try(candidate)) return candidate.who;
        const auto younger_tries =
            std::count_if(taken.begin(), taken.end(), [&](ticket who) { return who > candidate.who; });
        if (candidate.overtaken + static_cast<std::uint32_t>(younger_tries) >= bypass_max_) return std::nullopt;
    }
    return std::nullopt;
}

}  // namespace fermata::scheduling
