// The bookkeeping of StateImage slots: who holds one, which copy leases one, and whether its content means anything.
// A model without recurrent state has no slots at all.
//
// Invariants: a slot is free exactly when it has neither holder nor lease; a slot that is taken comes back with
// `undefined` content, so that whoever runs on it starts from the empty state (faults 11, 13, 14). An image has one
// holder: sharing an image means copying it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "messages/ids.hpp"

namespace fermata {

class state_store {
public:
    explicit state_store(std::uint32_t slots);
    state_store(const state_store&) = delete;
    state_store& operator=(const state_store&) = delete;

    std::uint32_t total() const noexcept { return static_cast<std::uint32_t>(slots_.size()); }
    std::uint32_t available() const noexcept { return static_cast<std::uint32_t>(free_.size()); }

    // The slot freed last, its content undefined; none when all are in use.
    std::optional<state_slot> take() noexcept;
    void release(state_slot slot);

    void lease(state_slot slot);
    void end_lease(state_slot slot);

    bool defined(state_slot slot) const { return at(slot).defined; }
    // A unit or a complete copy wrote the image; or it was abandoned half way.
    void set_defined(state_slot slot, bool defined) { at(slot).defined = defined; }

    std::string check_integrity(std::span<const std::uint32_t> holders, std::span<const std::uint32_t> leases) const;

private:
    struct entry {
        bool held = false;
        bool defined = false;
        std::uint32_t leases = 0;
    };
    entry& at(state_slot slot);
    const entry& at(state_slot slot) const;
    void free_if_idle(state_slot slot);

    std::vector<entry> slots_;
    std::vector<state_slot> free_;
};

}  // namespace fermata
