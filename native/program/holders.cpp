// What is held and how it is given back; how computed context becomes a resume point.
//
// For a model without recurrent state a point serves every position it covers, so one whose tokens a newer point of
// the same descent covers too has nothing of its own to offer: it is retired at once. Every point was published with
// at least one page no older point had, so there are never more points than pages (B5).
#include <algorithm>

#include "native/program/core.hpp"

namespace fermata::program_detail {

void program_core::structure_changed() {
    if (!view_outdated_) epoch_ = epoch(epoch_.value + 1);
    view_outdated_ = true;
}

void program_core::unbind(sequence& seq) {
    if (seq.at == stage::paused) return;
    // A copy nobody has begun is undone; one under way keeps its leases until it is complete (N2).
    if (seq.at == stage::copying)
        if (const auto copy = copies_.withdraw(seq.waiting_for)) reader_done(*copy);
    bool shared = false;
    for (page_id page : seq.pages) {
        shared |= pools_[0]->references(page, holder::point) > 0;
        pools_[0]->release(page, holder::sequence);
    }
    if (shared) structure_changed();
    seq.pages.clear();
    seq.permit.give_back();
    if (seq.slot) states_.release(*seq.slot);
    seq.slot.reset();
    lanes_[seq.where.value] = nullptr;
    seq.recovering = false;
    seq.first_unit_due = false;
    seq.frontier = 0;
    seq.at = stage::paused;
}

void program_core::forget(sequence& seq) {
    unbind(seq);
    sequences_.erase(ticket(seq.who));
}

void program_core::release_point(checkpoint_id id) {
    const checkpoint& point = *points_.find(id);
    for (page_id page : point.pages) pools_[0]->release(page, holder::point);
    if (point.slot) states_.release(*point.slot);
    points_.erase(id);
    events_.emplace_back(std::in_place_type<checkpoint_dropped>, checkpoint_dropped{id});
    structure_changed();
}

void program_core::leave(checkpoint& point) {
    if (point.readers == 0) return release_point(checkpoint_id(point.id));
    point.leaving = true;
    structure_changed();
}

void program_core::reader_done(const copy_under_way& copy) {
    structure_changed();
    if (!copy.source) return;
    checkpoint* point = points_.find(*copy.source);
    if (!point) return;
    --point->readers;
    if (point->leaving && point->readers == 0) release_point(checkpoint_id(point->id));
}

checkpoint_id program_core::publish(checkpoint point, ticket from) {
    const checkpoint& added = points_.add(std::move(point));
    events_.emplace_back(std::in_place_type<checkpoint_published>,
                         checkpoint_published{added.id, from, added.tokens, token_pos(added.coverage()),
                                              added.slot.has_value(), added.session});
    structure_changed();
    if (!added.slot) retire_contained(added);
    return added.id;
}

// Points of the same pages that cover less. The last page is enough to compare: a page at the same place in both
// came to both with all the pages before it.
void program_core::retire_contained(const checkpoint& newer) {
    std::vector<checkpoint_id> contained;
    for (const auto& [id, older] : points_) {
        if (id == newer.id || older.slot || older.leaving || older.coverage() > newer.coverage()) continue;
        if (newer.pages[older.pages.size() - 1] == older.pages.back()) contained.push_back(id);
    }
    for (checkpoint_id id : contained) leave(*points_.find(id));
}

// Natural end: what was computed becomes a point, by hand-over of its pages and image; nothing is copied (G4).
void program_core::freeze_endpoint(sequence& seq) {
    checkpoint point;
    point.tokens = token_run({seq.ledger.begin(), seq.ledger.begin() + seq.frontier});
    point.session = seq.spec->session;
    point.pages.assign(seq.pages.begin(), seq.pages.end());
    for (page_id page : seq.pages) pools_[0]->hand_over(page);
    seq.pages.clear();
    point.slot = seq.slot;
    seq.slot.reset();
    publish(std::move(point), seq.who);
    retire_parent(seq, seq.frontier);
    if (options_.numbers) options_.numbers->captures_natural_end.fetch_add(1, std::memory_order_relaxed);
}

// The point a sequence grew from, taken to its very end, is covered token by token by a deeper one of that sequence:
// what it has alone is a tail page whose copy went on.
void program_core::retire_parent(const sequence& seq, std::uint32_t coverage) {
    checkpoint* parent = seq.source && limits_.state_slots == 0 ? points_.find(*seq.source) : nullptr;
    if (parent && !parent->leaving && parent->coverage() == seq.source_tokens && parent->coverage() <= coverage)
        leave(*parent);
}

// The prompt is computed: its full pages become a point others can share at once. The page still being written stays
// out of it. A model with recurrent state would need an image of that very position.
void program_core::publish_input_point(sequence& seq) {
    if (limits_.state_slots > 0) return;
    const std::uint32_t full = seq.prompt / limits_.page_tokens;
    const auto covered_by = [&](const checkpoint& point) {
        return !point.leaving && point.pages.size() >= full && point.coverage() >= full * limits_.page_tokens &&
               point.pages[full - 1] == seq.pages[full - 1];
    };
    if (full == 0 || std::any_of(points_.begin(), points_.end(),
                                 [&](const auto& each) { return covered_by(each.second); })) {
        if (options_.numbers) options_.numbers->captures_input_point_skipped.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    checkpoint point;
    point.tokens = seq.spec->prompt.part(0, std::size_t{full} * limits_.page_tokens);
    point.session = seq.spec->session;
    point.pages.assign(seq.pages.begin(), seq.pages.begin() + full);
    for (page_id page : point.pages) pools_[0]->add_reference(page, holder::point);
    seq.input_point = publish(std::move(point), seq.who);
    retire_parent(seq, full * limits_.page_tokens);
    if (options_.numbers) options_.numbers->captures_input_point.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace fermata::program_detail
