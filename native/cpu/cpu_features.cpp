// Which levels this CPU has, which of them the user asked for, and how many threads are worth starting.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <thread>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include "native/cpu/cpu_backend.hpp"
#include "native/cpu/levels.hpp"

namespace fermata {
namespace cpu {
namespace {

#if defined(__x86_64__)
// Leaf 1, ECX bit 29: clang 14 has no name for it.
bool has_f16c() {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> 29 & 1u) != 0;
}
bool has_fma() { return __builtin_cpu_supports("fma") != 0 && __builtin_cpu_supports("avx") != 0; }
bool has_avx2() {
    return has_fma() && __builtin_cpu_supports("avx2") != 0 && has_f16c();
}
bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0;
}
bool has_vnni() { return has_avx512() && __builtin_cpu_supports("avx512vnni") != 0; }
#elif defined(__aarch64__)
bool has_dot_product() {
#if defined(__linux__)
    return (getauxval(AT_HWCAP) & (1ul << 20)) != 0;  // HWCAP_ASIMDDP
#else
    return false;
#endif
}
#endif

}  // namespace

std::vector<level> levels_here() {
    std::vector<level> found;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (has_vnni()) found.push_back({"avx512", "AVX-512 with VNNI", &avx512_vnni_table()});
    if (has_avx512()) found.push_back({"avx512", "AVX-512", &avx512_table()});
    if (has_avx2()) found.push_back({"avx2", "AVX2", &avx2_table()});
    if (has_fma()) found.push_back({"scalar", "scalar with FMA", &scalar_fma_table()});
#elif defined(__aarch64__)
    if (has_dot_product()) found.push_back({"neon", "NEON with dot products", &neon_dot_table()});
    found.push_back({"neon", "NEON", &neon_table()});
#endif
    found.push_back({"scalar", "scalar", &scalar_table()});
    return found;
}

level choose_level(const std::string& wanted) {
    const std::vector<level> here = levels_here();
    if (wanted == "best") return here.front();
    for (const level& l : here)
        if (wanted == l.name) return l;
    const bool known = wanted == "avx2" || wanted == "avx512" || wanted == "neon";
    if (!known)
        throw backend_error("--simd " + wanted + ": unknown; one of best, scalar, avx2, avx512, neon");
    std::string has;
    for (const std::string& name : cpu_simd_levels()) has += (has.empty() ? "" : ", ") + name;
    throw backend_error("--simd " + wanted + ": this CPU lacks it; it has " + has);
}

}  // namespace cpu

std::vector<std::string> cpu_simd_levels() {
    std::vector<std::string> names;
    for (const cpu::level& l : cpu::levels_here())
        if (names.empty() || names.back() != l.name) names.emplace_back(l.name);
    return names;
}

unsigned physical_cores() {
    unsigned count = std::max(1u, std::thread::hardware_concurrency());
#if defined(__linux__)
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
        std::set<std::pair<int, int>> cores;
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (!CPU_ISSET(cpu, &allowed)) continue;
            const std::string base = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
            int core = -1 - cpu, package = 0;  // unknown: a core of its own
            std::ifstream(base + "core_id") >> core;
            std::ifstream(base + "physical_package_id") >> package;
            cores.emplace(package, core);
        }
        if (!cores.empty()) count = static_cast<unsigned>(cores.size());
    }
    // A container's share: "quota period" in microseconds, or "max".
    double quota = 0, period = 0;
    if (std::ifstream file("/sys/fs/cgroup/cpu.max"); file >> quota >> period && quota > 0 && period > 0)
        count = std::min(count, std::max(1u, static_cast<unsigned>(quota / period + 0.5)));
#endif
    return count;
}

}  // namespace fermata
