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

// What a copy reads stays until it is complete (N2), what it writes is nobody's but its owner's.
std::string program_core::fault_of_copy(const copy_under_way& copy) const {
    const auto source = copy.source ? points_.find(*copy.source) : points_.end();
    if (source == points_.end()) return "what it reads is gone";
    for (const page_copy& each : copy.order.pages) {
        const auto& held = source->second.pages;
        if (std::find(held.begin(), held.end(), each.from) == held.end()) return "it reads a page that its source gave up";
        if (pools_[0]->references(each.to, holder::point) > 0 || pools_[0]->references(each.to, holder::sequence) > 1)
            return "it writes a page that others hold";
    }
    return {};
}

// The picture that others decide on tells the truth about holders: sequences and readers (K3).
std::string program_core::fault_of_view(std::span<const page_store::expectation> pages) const {
    if (view_outdated_ || !view_) return {};
    for (const point_view& point : view_->points) {
        const std::string name = "the picture of checkpoint " + std::to_string(point.checkpoint.value) + ": ";
        const auto it = points_.find(point.checkpoint);
        if (it == points_.end() || it->second.leaving) return name + "it is gone";
        for (std::size_t i = 0; i < point.pages.size(); ++i) {
            const page_store::expectation& found = pages[point.pages[i].value];
            if (point.pages[i] != it->second.pages[i] || point.other_holders[i] != found.sequences + found.leases)
                return name + "other holders of its page " + std::to_string(i);
        }
    }
    return {};
}

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
        if (std::string fault = fault_of_copy(copy); !fault.empty()) return "copy " + std::to_string(id.value) + ": " + fault;
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
    if (std::string fault = fault_of_view(pages); !fault.empty()) return fault;
    if (std::string fault = pools_[0]->check_integrity(pages, promised); !fault.empty()) return fault;
    return states_.check_integrity(slot_holders, slot_leases);
}

}  // namespace fermata::program_detail
