// AVX-512 F, BW, VL, DQ.
#if defined(__x86_64__)

#define FERMATA_LEVEL avx512
#include "native/cpu/simd/avx512.hpp"
#include "native/cpu/kernels/level.hpp"

namespace fermata::cpu {

const kernel_table& avx512_table() noexcept {
    static constexpr kernel_table table = avx512::make_table("avx512");
    return table;
}

}  // namespace fermata::cpu
#endif
