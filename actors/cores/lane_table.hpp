// Which sequence holds which lane. A lane of a sequence that was ended from outside stays taken until Program has
// answered the plan that cancels it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "messages/ids.hpp"

namespace fermata::scheduling {

class lane_table {
public:
    explicit lane_table(std::uint32_t lanes) : holders_(lanes) {}

    std::optional<lane> take(ticket who) {
        for (std::uint32_t i = 0; i < holders_.size(); ++i) {
            if (!holders_[i]) {
                holders_[i] = who;
                ++used_;
                return lane{i};
            }
        }
        return std::nullopt;
    }
    void release(lane where) {
        if (holders_[where.value]) --used_;
        holders_[where.value].reset();
    }
    std::uint32_t size() const { return static_cast<std::uint32_t>(holders_.size()); }
    std::uint32_t used() const { return used_; }
    std::uint32_t free() const { return size() - used_; }

private:
    std::vector<std::optional<ticket>> holders_;
    std::uint32_t used_ = 0;
};

}  // namespace fermata::scheduling
