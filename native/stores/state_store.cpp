// See state_store.hpp.
#include "native/stores/state_store.hpp"

#include <stdexcept>

namespace fermata {

namespace {

[[noreturn]] void misuse(const char* what, state_slot slot) {
    throw std::logic_error("state store: " + std::string(what) + " slot " + std::to_string(slot.value));
}

}  // namespace

state_store::state_store(std::uint32_t slots) : slots_(slots) {
    free_.reserve(slots);
    for (std::uint32_t i = slots; i > 0; --i) free_.emplace_back(i - 1);
}

state_store::entry& state_store::at(state_slot slot) {
    if (slot.value >= slots_.size()) misuse("no such", slot);
    return slots_[slot.value];
}

const state_store::entry& state_store::at(state_slot slot) const {
    if (slot.value >= slots_.size()) misuse("no such", slot);
    return slots_[slot.value];
}

void state_store::free_if_idle(state_slot slot) {
    const entry& e = slots_[slot.value];
    if (!e.held && e.leases == 0) free_.push_back(slot);
}

std::optional<state_slot> state_store::take() noexcept {
    if (free_.empty()) return std::nullopt;
    const state_slot slot = free_.back();
    free_.pop_back();
    slots_[slot.value].held = true;
    slots_[slot.value].defined = false;
    return slot;
}

void state_store::release(state_slot slot) {
    entry& e = at(slot);
    if (!e.held) misuse("a release of the unheld", slot);
    e.held = false;
    e.defined = false;
    free_if_idle(slot);
}

void state_store::lease(state_slot slot) {
    entry& e = at(slot);
    if (!e.held) misuse("a lease of the unheld", slot);
    ++e.leases;
}

void state_store::end_lease(state_slot slot) {
    entry& e = at(slot);
    if (e.leases == 0) misuse("the end of no lease of", slot);
    --e.leases;
    free_if_idle(slot);
}

std::string state_store::check_integrity(std::span<const std::uint32_t> holders,
                                         std::span<const std::uint32_t> leases) const {
    if (holders.size() != total() || leases.size() != total()) return "state store: asked about another size";
    std::vector<std::uint8_t> listed(total(), 0);
    for (state_slot slot : free_) {
        if (slot.value >= total()) return "state store: the free list names slot " + std::to_string(slot.value);
        if (listed[slot.value]++) return "state store: slot " + std::to_string(slot.value) + " is free twice";
    }
    for (std::size_t i = 0; i < total(); ++i) {
        const entry& e = slots_[i];
        const std::string name = "state store: slot " + std::to_string(i);
        if (holders[i] > 1) return name + " has " + std::to_string(holders[i]) + " holders";
        if (e.held != (holders[i] == 1)) return name + (e.held ? " is held by nobody" : " is held and not taken");
        if (e.leases != leases[i])
            return name + " counts " + std::to_string(e.leases) + " leases, the copies " + std::to_string(leases[i]);
        const bool idle = !e.held && e.leases == 0;
        if (idle != (listed[i] != 0)) return name + (idle ? " is idle and not free" : " is in use and free");
        if (e.defined && !e.held) return name + " is free and its content counts as defined";
    }
    return {};
}

}  // namespace fermata
