// Plain C++ for the base instruction set.

#define FERMATA_LEVEL scalar
#include "native/cpu/simd/scalar.hpp"
#include "native/cpu/kernels/level.hpp"

namespace fermata::cpu {

const kernel_table& scalar_table() noexcept {
    static constexpr kernel_table table = scalar::make_table("scalar");
    return table;
}

}  // namespace fermata::cpu
