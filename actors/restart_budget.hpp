// How many restarts a node may still have. Each costs one; a node that then runs for `forgiven_after` gets one back, so
// that rare troubles of a long life never add up to a broken node, while a trouble that returns at once soon does.
// Pure: the caller says what time it is.
#pragma once

#include <algorithm>
#include <cstdint>

#include "messages/serving.hpp"

namespace fermata {

class restart_budget {
public:
    // `forgiven_after` 0: none is ever forgiven.
    restart_budget(std::uint32_t restarts_max, time_ns forgiven_after)
        : restarts_max_(restarts_max), forgiven_after_(forgiven_after) {}

    // The node runs from now on.
    void running(time_ns now) { since_ = now; }
    // It ran until now.
    void stopped(time_ns now) {
        if (forgiven_after_ <= 0 || now <= since_) return;
        const time_ns forgiven = (now - since_) / forgiven_after_;
        used_ -= static_cast<std::uint32_t>(std::min<time_ns>(forgiven, used_));
    }
    // One more try, if there is one.
    bool take() {
        if (used_ >= restarts_max_) return false;
        ++used_;
        return true;
    }
    std::uint32_t used() const noexcept { return used_; }

private:
    std::uint32_t restarts_max_, used_ = 0;
    time_ns forgiven_after_, since_ = 0;
};

}  // namespace fermata
