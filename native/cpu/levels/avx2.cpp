// AVX2 with FMA3 and F16C.
#if defined(__x86_64__)

#define FERMATA_LEVEL avx2
#include "native/cpu/simd/avx2.hpp"
#include "native/cpu/kernels/level.hpp"

namespace fermata::cpu {

const kernel_table& avx2_table() noexcept {
    static constexpr kernel_table table = avx2::make_table("avx2");
    return table;
}

}  // namespace fermata::cpu
#endif
