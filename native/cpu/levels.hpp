// The levels of the instruction set this CPU can run, best first.
#pragma once

#include <string>
#include <vector>

#include "native/cpu/kernel_table.hpp"

namespace fermata::cpu {

struct level {
    std::string name;         // as `simd` names it: several levels may share one
    std::string description;
    const kernel_table* table = nullptr;
};

std::vector<level> levels_here();
level choose_level(const std::string& wanted);  // throws backend_error

}  // namespace fermata::cpu
