// The simulator's own generator: the same numbers from the same seed on every machine and library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fermata::simulation {

class random_source {
public:
    explicit random_source(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 0x1234567) {}

    std::uint64_t next() {  // splitmix64
        std::uint64_t x = state_ += 0x9E3779B97F4A7C15ull;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
        return x ^ (x >> 31);
    }
    // In [low, high], both included.
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
    }
    std::uint32_t upto(std::uint32_t high) { return static_cast<std::uint32_t>(between(0, high)); }
    bool chance(int percent) { return between(0, 99) < percent; }
    // Spread over magnitudes: low .. high, both at least 1.
    std::int64_t magnitude(std::int64_t low, std::int64_t high) {
        std::int64_t top = low;
        while (top < high && !chance(25)) top = top * 2 < high ? top * 2 : high;
        return between(low, top);
    }
    template <class T>
    const T& pick(const std::vector<T>& from) {
        return from[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(from.size()) - 1))];
    }

private:
    std::uint64_t state_;
};

}  // namespace fermata::simulation
