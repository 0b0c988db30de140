// The bookkeeping of one pool's pages: holders, leases, promises. It knows ids only; the bytes lie elsewhere.
//
// A page has holders of two kinds: sequences (active) and resume points (cached). Both count as references.
//
// Invariants:
//  - a page is on the free list exactly when it has neither a reference nor a lease (N4, fault 8);
//  - promised() <= pages on the free list, so taking a promised page cannot fail;
//  - the free list is a stack: the page that became free last is taken first, so the same calls give the same ids;
//  - nothing here chooses a victim: short of pages, the answer is how many are missing (C6).
// Misuse (a reference to a free page, a release without reference) throws std::logic_error before anything changes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "messages/ids.hpp"
#include "messages/paging.hpp"

namespace fermata {

enum class holder : std::uint8_t { sequence, point };

class page_reservation;

class page_store {
public:
    explicit page_store(std::uint32_t pages);
    page_store(const page_store&) = delete;
    page_store& operator=(const page_store&) = delete;

    std::uint32_t total() const noexcept { return static_cast<std::uint32_t>(pages_.size()); }
    std::uint32_t promised() const noexcept { return promised_; }
    // Free and promised to nobody.
    std::uint32_t available() const noexcept { return static_cast<std::uint32_t>(free_.size()) - promised_; }
    // Held by points alone, no copy under way.
    std::uint32_t cached() const noexcept { return cached_; }
    // Leased without any holder: waiting for the end of a copy.
    std::uint32_t orphaned() const noexcept { return orphaned_; }
    // Taken at least once. Fresh pages lie at the bottom of the free list in order, so these are the pages below the
    // highest ever taken: what the pool's memory may have become resident for.
    std::uint32_t touched() const noexcept { return touched_; }

    // A further holder of a page somebody holds already.
    void add_reference(page_id page, holder kind);
    void release(page_id page, holder kind);
    // A sequence's reference becomes a point's.
    void hand_over(page_id page);
    std::uint32_t references(page_id page, holder kind) const {
        const entry& e = at(page);
        return kind == holder::sequence ? e.sequences : e.points;
    }

    // A copy reads or writes the page: it is not reused before end_lease, whatever its references.
    void lease(page_id page);
    void end_lease(page_id page);
    std::uint32_t leases(page_id page) const { return at(page).leases; }

    // One sequence alone holds it and no copy is under way: that sequence may write (G7).
    bool writable(page_id page) const {
        const entry& e = at(page);
        return e.sequences == 1 && e.points == 0 && e.leases == 0;
    }

    struct expectation {
        std::uint32_t sequences = 0, points = 0, leases = 0;
    };
    // Compares with what the holders say; empty, or the first disagreement.
    std::string check_integrity(std::span<const expectation> pages, std::uint32_t promised) const;

private:
    friend class page_reservation;
    struct entry {
        std::uint32_t sequences = 0, points = 0, leases = 0;
        bool idle() const { return sequences == 0 && points == 0 && leases == 0; }
        bool cached() const { return sequences == 0 && points > 0 && leases == 0; }
        bool orphaned() const { return sequences == 0 && points == 0 && leases > 0; }
    };
    bool promise(std::uint32_t pages) noexcept;
    void forget_promise(std::uint32_t pages) noexcept { promised_ -= pages; }
    page_id take_promised();
    const entry& at(page_id page) const;
    void replace(page_id page, const entry& after);

    std::vector<entry> pages_;
    std::vector<page_id> free_;
    std::uint32_t promised_ = 0;
    std::uint32_t cached_ = 0;
    std::uint32_t orphaned_ = 0;
    std::uint32_t touched_ = 0;
};

// A promise of pages: moved, never copied; what was not taken goes back when it ends.
class page_reservation {
public:
    page_reservation() = default;
    explicit page_reservation(page_store& store) : store_(&store) {}
    page_reservation(page_reservation&& other) noexcept;
    page_reservation& operator=(page_reservation&& other) noexcept;
    ~page_reservation() { give_back(); }

    std::uint32_t left() const noexcept { return left_; }
    // Promises `pages` more, all or none.
    bool extend(std::uint32_t pages) noexcept;
    // One promised page, now held by the caller's sequence. Throws std::logic_error when nothing is left.
    page_id take();
    // The caller's only reference to `page` goes; the page is promised to this reservation again.
    void put_back(page_id page);
    void give_back() noexcept { give_back(left_); }
    // Of what is left, the promise of `pages` goes.
    void give_back(std::uint32_t pages) noexcept;

private:
    page_store* store_ = nullptr;
    std::uint32_t left_ = 0;
};

}  // namespace fermata
