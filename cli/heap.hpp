// Giving freed memory back to the system. The allocator keeps what was freed for later; after a peak (large bodies, many
// connections) that could be a gigabyte that nobody uses.
#pragma once

#include <cstdint>

namespace fermata::cli {

class heap_keeper {
public:
    // Once in a while, from one thread. Trims when much more is free in the heap than was after the last trim: 32 MiB at
    // rest, 256 MiB under work (a trim holds the allocator's locks). Returns the bytes by which the process shrank.
    std::uint64_t look(bool at_rest);

private:
    std::uint64_t resident_after_ = 0;  // anonymous memory after the last trim; 0: none yet
    std::uint64_t unused_after_ = 0;    // free in the heap then, given back or not
};

}  // namespace fermata::cli
