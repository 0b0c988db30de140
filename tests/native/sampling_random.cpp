// Random numbers by address. The vectors are the known answers that the authors of Philox publish with Random123
// (kat_vectors, philox4x32 10 rounds).
#include <doctest/doctest.h>

#include <set>

#include "native/sampling/random.hpp"

using namespace fermata::sampling;
using words = std::array<std::uint32_t, 4>;

TEST_CASE("philox gives its authors' known answers") {
    CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    CHECK(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("every part of the address moves the number") {  // M6
    const double base = uniform(1, 0, 10, purpose::token);
    CHECK(base == uniform(1, 0, 10, purpose::token));
    std::set<double> all{base, uniform(2, 0, 10, purpose::token), uniform(std::uint64_t{1} << 32 | 1, 0, 10, purpose::token),
                         uniform(1, 1, 10, purpose::token), uniform(1, 0, 11, purpose::token),
                         uniform(1, 0, 10, purpose::draft)};
    CHECK(all.size() == 6);
}

TEST_CASE("numbers lie in [0, 1) and fill it evenly") {
    std::array<int, 20> bins{};
    constexpr int n = 100000;
    for (int i = 0; i < n; ++i) {
        const double u = uniform(42, 0, static_cast<std::uint32_t>(i), purpose::token);
        REQUIRE(u >= 0);
        REQUIRE(u < 1);
        ++bins[static_cast<std::size_t>(u * 20)];
    }
    double chi = 0;
    for (int count : bins) chi += (count - n / 20.0) * (count - n / 20.0) / (n / 20.0);
    CHECK(chi < 43.8);  // 19 degrees of freedom, one in a thousand
}
