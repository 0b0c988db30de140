// All live sequences, by ticket and by request. Tickets are handed out here, in order of arrival, one a choice.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/cores/sequence.hpp"

namespace fermata::scheduling {

class request_table {
public:
    // Adds one sequence a choice with consecutive tickets and returns the first. `share_prompt`: later choices wait
    // for the first one's prompt pages. A request id in use is refused (nullopt).
    std::optional<ticket> accept(const enqueue& request, time_ns now, bool share_prompt);

    sequence* find(ticket who);
    const sequence* find(ticket who) const;
    std::vector<ticket> of_request(request_id request) const;
    void erase(ticket who);

    bool empty() const { return sequences_.empty(); }
    std::size_t size() const { return sequences_.size(); }
    std::size_t requests() const { return requests_.size(); }
    auto begin() { return sequences_.begin(); }  // ticket order
    auto end() { return sequences_.end(); }

    std::optional<std::pair<time_ns, ticket>> earliest_deadline() const;

private:
    std::map<ticket, sequence> sequences_;
    std::unordered_map<request_id, std::vector<ticket>> requests_;
    std::set<std::pair<time_ns, ticket>> deadlines_;
    std::uint64_t next_ticket_ = 1;
};

}  // namespace fermata::scheduling
