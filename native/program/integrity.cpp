// Recounts every holder from scratch and compares with what the stores believe.
#include <algorithm>
#include <set>

#include "native/program/core.hpp"

namespace fermata::program_detail {

namespace {

std::string of_ticket(ticket who, const char* what) {
    return "sequence " + std::to_string(who.value) + ": " + what;
}

std::string fault_of(const sequence& seq, const limits& sizes, const std::vector<sequence*>& lanes) {
    const auto fault = [&](const char* what) { return of_ticket(seq.who, what); };
    if (seq.in_unit) return fault("still marked as part of a unit");
    if (seq.prompt != seq.spec->prompt.size() || seq.ledger.size() < seq.prompt) return fault("ledger below its prompt");
    if (!std::equal(seq.ledger.begin(), seq.ledger.begin() + seq.prompt, seq.spec->prompt.span().begin()))
        return fault("ledger differs from its prompt");
    if (seq.frontier > seq.prefill_end()) return fault("frontier beyond what was committed");
    if (seq.reached > seq.prefill_end()) return fault("reached frontier beyond what was committed");
    if (seq.at == stage::paused) {
        if (!seq.pages.empty() || seq.slot || seq.permit.left(0) || seq.recovering || seq.frontier)
            return fault("paused, yet holds device memory");
        return {};
    }
    if (seq.where.value >= lanes.size() || lanes[seq.where.value] != &seq) return fault("not on the lane it claims");
    if (seq.slot.has_value() != (sizes.state_slots > 0)) return fault("state slot missing or too much");
    const std::uint32_t needed = pages_for(seq.frontier, sizes.page_tokens);
    if (seq.pages.size() != needed) return fault("page table and frontier disagree");
    if (seq.permit.left(0) && !seq.first_unit_due && !seq.recovering) return fault("holds a settled permit");
    return {};
}

}  // namespace

std::string program_core::check_integrity() const {
    std::vector<page_store::expectation> pages(limits_.pages);
    std::vector<std::uint32_t> slot_holders(limits_.state_slots, 0), slot_leases(limits_.state_slots, 0);
    std::uint32_t promised = 0, on_lanes = 0, recovering = 0;
    for (const auto& [who, seq] : sequences_) {
        if (std::string fault = fault_of(*seq, limits_, lanes_); !fault.empty()) return fault;
        if (std::set(seq->pages.begin(), seq->pages.end()).size() != seq->pages.size())
            return of_ticket(who, "names a page twice");
        for (page_id page : seq->pages) ++pages[page.value].sequences;
        if (seq->slot) ++slot_holders[seq->slot->value];
        promised += seq->permit.left(0);
        on_lanes += seq->at != stage::paused ? 1u : 0u;
        recovering += seq->recovering ? 1u : 0u;
    }
    if (recovering > 1) return "more than one recovery permit is held";  // M5
    if (on_lanes != static_cast<std::uint32_t>(std::count_if(lanes_.begin(), lanes_.end(), [](auto* s) { return s; })))
        return "lanes and bound sequences disagree";
    std::map<checkpoint_id, std::uint32_t> readers;
    for (const auto& [id, copy] : copies_) {
        for (const page_copy& each : copy.order.pages) ++pages[each.from.value].leases, ++pages[each.to.value].leases;
        for (const state_copy& each : copy.order.states) ++slot_leases[each.from.value], ++slot_leases[each.to.value];
        if (copy.source) ++readers[*copy.source];
    }
    for (const auto& [id, point] : points_) {
        const std::string name = "checkpoint " + std::to_string(id.value) + ": ";
        if (point.pages.empty() || point.pages.size() != pages_for(point.coverage(), limits_.page_tokens))
            return name + "pages and coverage disagree";  // G6, G8
        if (point.slot.has_value() != (limits_.state_slots > 0)) return name + "image missing or too much";
        if (point.slot && !states_.defined(*point.slot)) return name + "its image is undefined";  // fault 4
        if (point.readers != (readers.count(id) ? readers[id] : 0)) return name + "readers and copies disagree";
        if (point.leaving && point.readers == 0) return name + "should have left";
        for (page_id page : point.pages) ++pages[page.value].points;
        if (point.slot) ++slot_holders[point.slot->value];
    }
    if (points_.size() > limits_.pages) return "more checkpoints than pages";  // B5
    if (std::string fault = pools_[0]->check_integrity(pages, promised); !fault.empty()) return fault;
    return states_.check_integrity(slot_holders, slot_leases);
}

}  // namespace fermata::program_detail
