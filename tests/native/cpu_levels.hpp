// Shared by the tests of the CPU kernels: the levels of this machine, reproducible inputs, comparison of bits.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "native/cpu/levels.hpp"

namespace fermata::test {

inline std::vector<float> normal_floats(std::size_t count, float deviation, std::uint32_t seed) {
    std::mt19937 generator(seed);
    std::vector<float> values(count);
    for (float& v : values) {
        // Sum of uniforms: the same numbers with every standard library.
        double sum = 0;
        for (int i = 0; i < 12; ++i) sum += static_cast<double>(generator()) / 4294967296.0;
        v = static_cast<float>((sum - 6.0) * static_cast<double>(deviation));
    }
    return values;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// Memory aligned as the kernels' scratch is.
class aligned_floats {
public:
    explicit aligned_floats(std::size_t count) : storage_(count + 16) {}
    float* data() {
        const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
        return storage_.data() + (64 - address % 64) % 64 / sizeof(float);
    }
    std::byte* bytes() { return reinterpret_cast<std::byte*>(data()); }

private:
    std::vector<float> storage_;
};

}  // namespace fermata::test
