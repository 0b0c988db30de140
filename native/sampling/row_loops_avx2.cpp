// The row loops for AVX2; empty elsewhere. Compiled with -mavx2 and without -mfma: nothing may fuse.
#include "native/sampling/row_loops.hpp"

#if defined(__AVX2__)

#pragma GCC diagnostic ignored "-Wpsabi"

namespace fermata::sampling {

namespace avx2 {
#define FERMATA_LANES 8
#include "native/sampling/row_loops_body.hpp"
}

const row_loops& avx2_loops();
const row_loops& avx2_loops() { return avx2::table; }

}  // namespace fermata::sampling

#endif
