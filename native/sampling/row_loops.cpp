// The row loops at the base instruction set, and the choice between versions.
#include "native/sampling/row_loops.hpp"

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are passed between inlined functions of this file alone

namespace fermata::sampling {

namespace base {
#define FERMATA_LANES 4
#include "native/sampling/row_loops_body.hpp"
}

const row_loops& avx2_loops();  // row_loops_avx2.cpp

const row_loops& base_loops() { return base::table; }

const row_loops& loops() {
#if defined(__x86_64__)
    static const bool has_avx2 = __builtin_cpu_supports("avx2");
    if (has_avx2) return avx2_loops();
#endif
    return base::table;
}

}  // namespace fermata::sampling
