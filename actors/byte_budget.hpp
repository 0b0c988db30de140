// One bound for the memory of all requests that a node has taken, from the moment a client hands one over to its end.
// A request holds a lease; a lease that can't be had is a request that is refused. Any thread may take and give back.
//
// Invariant: the leases together never exceed the bound.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace fermata {

class byte_budget {
public:
    explicit byte_budget(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
    std::uint64_t bytes_max() const noexcept { return bytes_max_; }
    std::uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }

    bool take(std::uint64_t bytes) noexcept {
        std::uint64_t used = used_.load(std::memory_order_relaxed);
        do {
            if (bytes > bytes_max_ - used) return false;
        } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
        return true;
    }
    void give_back(std::uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }

private:
    const std::uint64_t bytes_max_;
    std::atomic<std::uint64_t> used_{0};
};

// A part of a budget; given back at the end of its life. Without a budget any size is fine.
class byte_lease {
public:
    byte_lease() = default;
    explicit byte_lease(std::shared_ptr<byte_budget> budget) noexcept : budget_(std::move(budget)) {}
    byte_lease(byte_lease&& from) noexcept
        : budget_(std::move(from.budget_)), bytes_(std::exchange(from.bytes_, 0)) {}
    byte_lease& operator=(byte_lease&& from) noexcept {
        std::swap(budget_, from.budget_);
        std::swap(bytes_, from.bytes_);
        return *this;
    }
    ~byte_lease() {
        if (budget_) budget_->give_back(bytes_);
    }

    // False: the budget hasn't so much left, and nothing changed.
    bool resize(std::uint64_t bytes) noexcept {
        if (!budget_) return true;
        if (bytes > bytes_ && !budget_->take(bytes - bytes_)) return false;
        if (bytes < bytes_) budget_->give_back(bytes_ - bytes);
        bytes_ = bytes;
        return true;
    }
    std::uint64_t bytes() const noexcept { return bytes_; }

private:
    std::shared_ptr<byte_budget> budget_;
    std::uint64_t bytes_ = 0;
};

}  // namespace fermata
