// The CPU backend: kernels for scalar, AVX2, AVX-512 and NEON that give the same bits, chosen at run time, and a
// fork-join pool of their own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "native/backend.hpp"

namespace fermata {

struct cpu_options {
    unsigned threads = 0;      // calling thread included; 0: one per physical core this process may use
    std::string simd = "best"; // best, scalar, avx2, avx512, neon
    compute_mode compute = compute_mode::int8;
};

// Throws backend_error for an instruction set that the name doesn't denote, this build lacks or this CPU lacks.
std::unique_ptr<backend> make_cpu_backend(const cpu_options& options);

// The instruction sets that can be forced here, best first; "scalar" is always one of them.
std::vector<std::string> cpu_simd_levels();
unsigned physical_cores();

}  // namespace fermata
