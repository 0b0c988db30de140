// AVX-512 F, BW, VL, DQ with VNNI.
#if defined(__x86_64__)
#define FERMATA_VNNI
#define FERMATA_LEVEL avx512_vnni
#include "native/cpu/simd/avx512.hpp"
#include "native/cpu/kernels/level.hpp"

namespace fermata::cpu {

const kernel_table& avx512_vnni_table() noexcept {
    static constexpr kernel_table table = avx512_vnni::make_table("avx512_vnni");
    return table;
}

}  // namespace fermata::cpu
#endif
