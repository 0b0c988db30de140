// Who gives way when a resident can't get its next unit and no optional cache is left: the last rungs of the pressure
// ladder (M1, M2, F7).
#pragma once

#include <vector>

#include "actors/cores/sequence.hpp"

namespace fermata::scheduling {

enum class relief : std::uint8_t {
    pause,  // put `whom` back; younger than the row in need, or the row itself when it is the youngest
    wait,   // someone is about to be able to release: a copy, or the holder of the recovery permit
    fail,   // alone, and nothing optional is left: a capacity error of its own (F7)
};

struct relief_choice {
    relief what = relief::wait;
    ticket whom{};
};

// `residents` in ticket order; `in_need` is one of them.
relief_choice relieve_resident(const sequence& in_need, const std::vector<const sequence*>& residents);

// A paused request that wants its lane and room back, and finds no older resident: the youngest borrower moves aside
// (M4). `fail`: no resident is left to move.
relief_choice relieve_paused(const sequence& in_need, const std::vector<const sequence*>& residents);

}  // namespace fermata::scheduling
