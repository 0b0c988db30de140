#include "cli/heap.hpp"

#include <algorithm>
#include <cstdio>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace fermata::cli {

#if defined(__GLIBC__)
namespace {

// RssAnon of this process; 0 where the system doesn't say.
std::uint64_t anonymous_bytes() {
    std::FILE* const file = std::fopen("/proc/self/status", "r");
    if (file == nullptr) return 0;
    char line[256];
    unsigned long long kib = 0;
    while (std::fgets(line, sizeof line, file) != nullptr)
        if (std::sscanf(line, "RssAnon: %llu kB", &kib) == 1) break;
    std::fclose(file);
    return std::uint64_t{kib} * 1024;
}

}  // namespace

// What is free in the heap includes what was given back already: only more of it since the last trim (freed behind it), or a
// process that grew again (used and freed once more), is worth another.
std::uint64_t heap_keeper::look(bool at_rest) {
    const std::uint64_t limit = std::uint64_t{at_rest ? 32u : 256u} << 20;
    const std::uint64_t unused = mallinfo2().fordblks, before = anonymous_bytes();
    if (unused < limit) return 0;
    if (resident_after_ != 0 && unused < unused_after_ + limit && before < resident_after_ + limit) return 0;
    malloc_trim(0);
    unused_after_ = unused;
    resident_after_ = std::max<std::uint64_t>(anonymous_bytes(), 1);
    return before > resident_after_ ? before - resident_after_ : 0;
}
#else
std::uint64_t heap_keeper::look(bool) { return 0; }
#endif

}  // namespace fermata::cli
