// See page_store.hpp. Every public change checks first and changes after, so a refused call leaves no trace.
#include "native/stores/page_store.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace fermata {

namespace {

[[noreturn]] void misuse(const char* what, page_id page) {
    throw std::logic_error("page store: " + std::string(what) + " page " + std::to_string(page.value));
}

}  // namespace

page_store::page_store(std::uint32_t pages) : pages_(pages) {
    free_.reserve(pages);
    for (std::uint32_t i = pages; i > 0; --i) free_.emplace_back(i - 1);  // page 0 on top
}

const page_store::entry& page_store::at(page_id page) const {
    if (page.value >= pages_.size()) misuse("no such", page);
    return pages_[page.value];
}

// The only place where a page's counts change: free list and totals follow.
void page_store::replace(page_id page, const entry& after) {
    entry& now = pages_[page.value];
    cached_ = cached_ - (now.cached() ? 1u : 0u) + (after.cached() ? 1u : 0u);
    orphaned_ = orphaned_ - (now.orphaned() ? 1u : 0u) + (after.orphaned() ? 1u : 0u);
    const bool freed = after.idle() && !now.idle();
    now = after;
    if (freed) free_.push_back(page);
}

void page_store::add_reference(page_id page, holder kind) {
    entry e = at(page);
    if (e.sequences + e.points == 0) misuse("a reference to the unheld", page);
    ++(kind == holder::sequence ? e.sequences : e.points);
    replace(page, e);
}

void page_store::release(page_id page, holder kind) {
    entry e = at(page);
    std::uint32_t& count = kind == holder::sequence ? e.sequences : e.points;
    if (count == 0) misuse("a release without reference of", page);
    --count;
    replace(page, e);
}

void page_store::hand_over(page_id page) {
    entry e = at(page);
    if (e.sequences == 0) misuse("a hand-over without reference of", page);
    --e.sequences;
    ++e.points;
    replace(page, e);
}

void page_store::lease(page_id page) {
    entry e = at(page);
    if (e.sequences + e.points == 0) misuse("a lease of the unheld", page);
    ++e.leases;
    replace(page, e);
}

void page_store::end_lease(page_id page) {
    entry e = at(page);
    if (e.leases == 0) misuse("the end of no lease of", page);
    --e.leases;
    replace(page, e);
}

bool page_store::promise(std::uint32_t pages) noexcept {
    if (pages > available()) return false;
    promised_ += pages;
    return true;
}

page_id page_store::take_promised() {
    const page_id page = free_.back();
    free_.pop_back();
    --promised_;
    pages_[page.value].sequences = 1;
    touched_ = std::max(touched_, page.value + 1);
    return page;
}

std::string page_store::check_integrity(std::span<const expectation> expected, std::uint32_t promised) const {
    if (expected.size() != total()) return "page store: asked about another pool size";
    std::vector<std::uint8_t> listed(total(), 0);
    for (page_id page : free_) {
        if (page.value >= total()) return "page store: the free list names page " + std::to_string(page.value);
        if (listed[page.value]++) return "page store: page " + std::to_string(page.value) + " is free twice";
    }
    std::uint32_t cached = 0, orphaned = 0;
    for (std::size_t i = 0; i < total(); ++i) {
        const entry& e = pages_[i];
        const std::string name = "page store: page " + std::to_string(i);
        const auto differs = [&](const char* what, std::uint32_t counted, std::uint32_t found) {
            return name + " counts " + std::to_string(counted) + " " + what + ", its holders " + std::to_string(found);
        };
        if (e.sequences != expected[i].sequences) return differs("sequences", e.sequences, expected[i].sequences);
        if (e.points != expected[i].points) return differs("points", e.points, expected[i].points);
        if (e.leases != expected[i].leases) return differs("leases", e.leases, expected[i].leases);
        // By the holders' own word, not by this store's idea of idle: a page with a reader is never free (N4).
        const auto& [sequences, points, leases] = expected[i];
        const bool unheld = sequences == 0 && points == 0;
        if (leases > 0 && listed[i]) return name + " is free while a copy reads or writes it";
        if ((unheld && leases == 0) != (listed[i] != 0)) return name + (listed[i] ? " is in use and free" : " is idle and not free");
        cached += sequences == 0 && points > 0 && leases == 0 ? 1u : 0u;
        orphaned += unheld && leases > 0 ? 1u : 0u;
    }
    if (cached != cached_ || orphaned != orphaned_) return "page store: the totals of cached or orphaned pages are off";
    if (promised_ != promised)
        return "page store: " + std::to_string(promised_) + " pages promised, the permits hold " +
               std::to_string(promised);
    if (promised_ > free_.size()) return "page store: more pages promised than free";
    return {};
}

page_reservation::page_reservation(page_reservation&& other) noexcept
    : store_(other.store_), left_(std::exchange(other.left_, 0)) {}

page_reservation& page_reservation::operator=(page_reservation&& other) noexcept {
    if (this != &other) {
        give_back();
        store_ = other.store_;
        left_ = std::exchange(other.left_, 0);
    }
    return *this;
}

bool page_reservation::extend(std::uint32_t pages) noexcept {
    if (pages == 0) return true;
    if (!store_ || !store_->promise(pages)) return false;
    left_ += pages;
    return true;
}

page_id page_reservation::take() {
    if (left_ == 0) throw std::logic_error("page store: a page taken beyond the reservation");
    --left_;
    return store_->take_promised();
}

void page_reservation::put_back(page_id page) {
    if (!store_->writable(page)) misuse("put back of the shared", page);
    store_->release(page, holder::sequence);
    store_->promise(1);
    ++left_;
}

void page_reservation::give_back(std::uint32_t pages) noexcept {
    pages = std::min(pages, left_);
    if (pages == 0) return;
    store_->forget_promise(pages);
    left_ -= pages;
}

}  // namespace fermata
