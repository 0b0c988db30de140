// The scalar level again, built with hardware fused multiply-add: the same bits, sooner.
#if defined(__x86_64__)

#define FERMATA_LEVEL scalar_fma
#include "native/cpu/simd/scalar.hpp"
#include "native/cpu/kernels/level.hpp"

namespace fermata::cpu {

const kernel_table& scalar_fma_table() noexcept {
    static constexpr kernel_table table = scalar_fma::make_table("scalar_fma");
    return table;
}

}  // namespace fermata::cpu
#endif
