// The complete resume points, by id, which is also their order of publication. Plain data: references to pages and
// slots are counted by those who change this table.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "messages/ids.hpp"
#include "messages/token_run.hpp"

namespace fermata::program_detail {

struct checkpoint {
    checkpoint_id id{};
    token_run tokens;  // exactly what it covers; its size is the coverage
    std::vector<page_id> pages;
    std::optional<state_slot> slot;  // a StateImage: resumable at its coverage alone (A3)
    std::string session;
    std::uint32_t readers = 0;  // copies under way that read it
    bool leaving = false;       // dropped as soon as the last reader is done (N2); not offered meanwhile

    std::uint32_t coverage() const { return static_cast<std::uint32_t>(tokens.size()); }
};

class checkpoint_table {
public:
    checkpoint& add(checkpoint point) {
        point.id = checkpoint_id(++last_);
        return points_.emplace(point.id, std::move(point)).first->second;
    }
    checkpoint* find(checkpoint_id id) {
        const auto it = points_.find(id);
        return it == points_.end() ? nullptr : &it->second;
    }
    auto find(checkpoint_id id) const { return points_.find(id); }
    void erase(checkpoint_id id) { points_.erase(id); }
    auto begin() const { return points_.begin(); }
    auto end() const { return points_.end(); }
    std::size_t size() const { return points_.size(); }

private:
    std::map<checkpoint_id, checkpoint> points_;
    std::uint64_t last_ = 0;
};

}  // namespace fermata::program_detail
