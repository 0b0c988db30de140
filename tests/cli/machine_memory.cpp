// What is available: the system's word, within the control group's limit; files in memory can be dropped.
#include <doctest/doctest.h>

#include "cli/machine_memory.hpp"

using namespace fermata::cli;

TEST_CASE("available memory is the system's, within the group's limit") {
    const std::string machine = "MemTotal:       24683520 kB\nMemFree:  1 kB\nMemAvailable:   1000 kB\nBuffers: 2 kB\n";
    CHECK(available_bytes({machine, "", "", ""}) == 1'024'000);
    CHECK(available_bytes({machine, "max\n", "5000\n", ""}) == 1'024'000);
    CHECK(available_bytes({machine, "900000\n", "500000\n", ""}) == 400'000);
    CHECK(available_bytes({machine, "900000\n", "500000\n", "anon 400000\ninactive_file 60000\nactive_file 40000\n"}) == 500'000);
    CHECK(available_bytes({machine, "9000000\n", "500000\n", ""}) == 1'024'000);
    CHECK(available_bytes({machine, "900000\n", "950000\n", ""}) == 0);
    CHECK(available_bytes({"", "900000\n", "500000\n", ""}) == 400'000);
    CHECK(available_bytes({"", "", "", ""}) == std::nullopt);
    CHECK(available_bytes({"MemAvailable: lots\n", "", "", ""}) == std::nullopt);
}

TEST_CASE("here something is available") {
    const auto now = available_bytes();
    REQUIRE(now);
    CHECK(*now > (std::uint64_t{1} << 20));
}
