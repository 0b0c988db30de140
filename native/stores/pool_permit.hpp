// A reservation across all typed pools of a model: all or nothing (C2). Today models have one pool (Main); draft
// backends add theirs behind the same class.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "native/stores/page_store.hpp"

namespace fermata {

inline constexpr std::size_t pools_max = 4;
using page_pools = std::vector<std::unique_ptr<page_store>>;  // [0] is Main
using pool_counts = std::array<std::uint32_t, pools_max>;

class pool_permit {
public:
    pool_permit() = default;
    explicit pool_permit(page_pools& pools) {
        for (std::size_t i = 0; i < pools.size() && i < pools_max; ++i) parts_[i] = page_reservation(*pools[i]);
    }

    std::uint32_t left(std::size_t pool) const noexcept { return parts_[pool].left(); }

    // Brings every pool to at least `wanted` promised pages, or changes nothing and returns false.
    bool raise_to(const pool_counts& wanted) noexcept {
        pool_counts added{};
        for (std::size_t i = 0; i < pools_max; ++i) {
            added[i] = wanted[i] > parts_[i].left() ? wanted[i] - parts_[i].left() : 0;
            if (parts_[i].extend(added[i])) continue;
            for (std::size_t j = 0; j < i; ++j) parts_[j].give_back(added[j]);
            return false;
        }
        return true;
    }

    page_id take(std::size_t pool) { return parts_[pool].take(); }
    void put_back(std::size_t pool, page_id page) { parts_[pool].put_back(page); }
    void give_back() noexcept {
        for (auto& part : parts_) part.give_back();
    }

private:
    std::array<page_reservation, pools_max> parts_;
};

}  // namespace fermata
