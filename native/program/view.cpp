// What others may see: occupancy (exact, every answer) and the picture of points and holders (rebuilt only when one
// of them changed; steady decoding takes private pages and leaves it alone).
#include <utility>

#include "native/program/core.hpp"

namespace fermata::program_detail {

occupancy program_core::room() const {
    const page_store& main = *pools_[0];
    occupancy out;
    out.pages_total = main.total();
    out.pages_free = main.available();
    out.pages_cached = main.cached();
    out.pages_active = out.pages_total - out.pages_free - out.pages_cached;  // promised ones too (B3)
    out.state_slots_total = states_.total();
    out.state_slots_free = states_.available();
    return out;
}

std::shared_ptr<const program_view> program_core::view() {
    if (!view_outdated_ && view_) return view_;
    auto next = std::make_shared<program_view>();
    next->at = epoch_;
    next->page_tokens = limits_.page_tokens;
    next->room = room();
    next->points.reserve(points_.size());
    for (const auto& [id, point] : points_) {
        if (point.leaving) continue;
        point_view& out = next->points.emplace_back();
        out.checkpoint = id;
        out.coverage = token_pos(point.coverage());
        out.exact_only = point.slot.has_value();
        out.pages = point.pages;
        out.other_holders.reserve(point.pages.size());
        // A reader's lease counts: dropping the point would not free the page yet.
        for (page_id page : point.pages)
            out.other_holders.push_back(pools_[0]->references(page, holder::sequence) + pools_[0]->leases(page));
    }
    view_ = std::move(next);
    view_outdated_ = false;
    view_reported_ = false;
    return view_;
}

// The picture when the Scheduler hasn't seen it yet; else null.
std::shared_ptr<const program_view> program_core::unreported_view() {
    if (view_outdated_) view();
    return std::exchange(view_reported_, true) ? nullptr : view_;
}

void program_core::set_gauges() const {
    if (!options_.numbers) return;
    telemetry& to = *options_.numbers;
    const occupancy now = room();
    const auto set = [](gauge& which, std::int64_t value) { which.store(value, std::memory_order_relaxed); };
    set(to.pages_total, now.pages_total);
    set(to.pages_free, now.pages_free);
    set(to.pages_active, now.pages_active);
    set(to.pages_cached, now.pages_cached);
    set(to.pages_touched, pools_[0]->touched());
    set(to.dead_kv_pages, pools_[0]->orphaned());
    set(to.state_slots_free, now.state_slots_free);
    set(to.state_slots_used, std::int64_t{now.state_slots_total} - now.state_slots_free);
}

}  // namespace fermata::program_detail
