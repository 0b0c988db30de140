// Everything a level consists of. A level's source defines FERMATA_LEVEL (its namespace), includes the lanes
// (simd/*.hpp) and then this file.
#pragma once

#include "native/cpu/kernel_table.hpp"
#include "native/cpu/packed_format.hpp"

#include "native/cpu/kernels/math.hpp"
#include "native/cpu/kernels/linear.hpp"
#include "native/cpu/kernels/attention.hpp"

namespace fermata::cpu::FERMATA_LEVEL {

inline constexpr kernel_table make_table(const char* name) {
    return {name,     static_cast<std::size_t>(tile_rows_best), rms_norm, rotate, silu_multiply, exponential_array, quantise,
            linear_quantised, linear_float, store_kv, attention};
}

}  // namespace fermata::cpu::FERMATA_LEVEL
