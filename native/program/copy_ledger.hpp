// Copies on their way: submitted, handed to Transfer, done. A copy leases what it reads and writes from submission to
// completion, whatever happens to its owner meanwhile (N2, N4). An answer is recognised by its id alone; a second or
// unknown one is nobody's.
#pragma once

#include <deque>
#include <map>
#include <optional>

#include "messages/transfer.hpp"
#include "native/stores/pool_permit.hpp"
#include "native/stores/state_store.hpp"

namespace fermata::program_detail {

struct copy_under_way {
    copy_order order;
    ticket owner{};  // the sequence that waits; it may be gone
    std::optional<checkpoint_id> source;
    bool handed_out = false;
};

class copy_ledger {
public:
    copy_ledger(page_pools& pools, state_store& states) : pools_(pools), states_(states) {}

    copy_id submit(copy_under_way copy) {
        const copy_id id(++last_);
        copy.order.copy = id;
        for (const page_copy& each : copy.order.pages) {
            pools_[each.pool]->lease(each.from);
            pools_[each.pool]->lease(each.to);
        }
        for (const state_copy& each : copy.order.states) {
            states_.lease(each.from);
            states_.lease(each.to);
        }
        waiting_.push_back(id);
        copies_.emplace(id, std::move(copy));
        return id;
    }

    // The oldest copy not handed out yet.
    bool next(copy_order& order) {
        if (waiting_.empty()) return false;
        copy_under_way& copy = copies_.at(waiting_.front());
        waiting_.pop_front();
        copy.handed_out = true;
        order = copy.order;
        return true;
    }

    // Takes a copy off the books and ends its leases; none when the id is not (or no longer) known, or when it was
    // never handed out, so that nobody can have finished it.
    std::optional<copy_under_way> finish(copy_id id) {
        const auto it = copies_.find(id);
        if (it == copies_.end() || !it->second.handed_out) return std::nullopt;
        return close(it);
    }

    // A copy nobody has begun: taken back. None once it is handed out: then its readers finish first.
    std::optional<copy_under_way> withdraw(copy_id id) {
        const auto it = copies_.find(id);
        if (it == copies_.end() || it->second.handed_out) return std::nullopt;
        std::erase(waiting_, id);
        return close(it);
    }

    std::uint32_t in_flight() const { return static_cast<std::uint32_t>(copies_.size()); }
    auto begin() const { return copies_.begin(); }
    auto end() const { return copies_.end(); }

private:
    using entry = std::map<copy_id, copy_under_way>::iterator;
    copy_under_way close(entry it) {
        copy_under_way copy = std::move(it->second);
        copies_.erase(it);
        for (const page_copy& each : copy.order.pages) {
            pools_[each.pool]->end_lease(each.from);
            pools_[each.pool]->end_lease(each.to);
        }
        for (const state_copy& each : copy.order.states) {
            states_.end_lease(each.from);
            states_.end_lease(each.to);
        }
        return copy;
    }

    page_pools& pools_;
    state_store& states_;
    std::map<copy_id, copy_under_way> copies_;
    std::deque<copy_id> waiting_;
    std::uint64_t last_ = 0;
};

}  // namespace fermata::program_detail
