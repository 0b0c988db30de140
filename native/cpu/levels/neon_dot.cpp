// NEON with the dot products of ARMv8.2.
#if defined(__aarch64__)
#define FERMATA_DOT
#define FERMATA_LEVEL neon_dot
#include "native/cpu/simd/neon.hpp"
#include "native/cpu/kernels/level.hpp"

namespace fermata::cpu {

const kernel_table& neon_dot_table() noexcept {
    static constexpr kernel_table table = neon_dot::make_table("neon_dot");
    return table;
}

}  // namespace fermata::cpu
#endif
