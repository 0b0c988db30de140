#include "actors/cores/request_table.hpp"

#include <algorithm>

namespace fermata::scheduling {

std::optional<ticket> request_table::accept(const enqueue& request, time_ns now, bool share_prompt) {
    if (request.choices.empty() || requests_.contains(request.request)) return std::nullopt;
    const ticket first{next_ticket_};
    auto& tickets = requests_[request.request];
    for (std::size_t i = 0; i < request.choices.size(); ++i) {
        sequence s;
        s.who = ticket{next_ticket_++};
        s.request = request.request;
        s.choice = static_cast<std::uint32_t>(i);
        s.spec = request.choices[i];
        s.deadline = request.deadline;
        s.accepted_at = now;
        s.target = token_pos(static_cast<std::uint32_t>(s.spec->prompt.size()));
        s.usage.prompt = s.target;
        if (i > 0 && share_prompt && s.spec->prompt == request.choices[0]->prompt) s.leader = first;
        if (s.deadline != 0) deadlines_.emplace(s.deadline, s.who);
        tickets.push_back(s.who);
        sequences_.emplace(s.who, std::move(s));
    }
    return first;
}

sequence* request_table::find(ticket who) {
    const auto it = sequences_.find(who);
    return it == sequences_.end() ? nullptr : &it->second;
}

const sequence* request_table::find(ticket who) const {
    const auto it = sequences_.find(who);
    return it == sequences_.end() ? nullptr : &it->second;
}

std::vector<ticket> request_table::of_request(request_id request) const {
    const auto it = requests_.find(request);
    return it == requests_.end() ? std::vector<ticket>{} : it->second;
}

void request_table::erase(ticket who) {
    const auto it = sequences_.find(who);
    if (it == sequences_.end()) return;
    if (it->second.deadline != 0) deadlines_.erase({it->second.deadline, who});
    const auto owner = requests_.find(it->second.request);
    std::erase(owner->second, who);
    if (owner->second.empty()) requests_.erase(owner);
    sequences_.erase(it);
}

std::optional<std::pair<time_ns, ticket>> request_table::earliest_deadline() const {
    if (deadlines_.empty()) return std::nullopt;
    return *deadlines_.begin();
}

}  // namespace fermata::scheduling
