// NEON of ARMv8.0.
#if defined(__aarch64__)

#define FERMATA_LEVEL neon
#include "native/cpu/simd/neon.hpp"
#include "native/cpu/kernels/level.hpp"

namespace fermata::cpu {

const kernel_table& neon_table() noexcept {
    static constexpr kernel_table table = neon::make_table("neon");
    return table;
}

}  // namespace fermata::cpu
#endif
