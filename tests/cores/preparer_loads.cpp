// Who prepares what: the least loaded, and short prompts never behind a long one.
#include <doctest/doctest.h>

#include "actors/preparer_loads.hpp"

using namespace fermata;

TEST_CASE("the preparer with the fewest bytes before it gets the next job") {
    preparer_loads loads(3);
    CHECK(loads.pick(10) == 0);
    const auto first = loads.ticket(0, 100);
    CHECK(loads.pick(10) == 1);
    auto second = loads.ticket(1, 50);
    const auto third = loads.ticket(2, 70);
    CHECK(loads.pick(10) == 1);
    const auto copy = second;
    second.reset();
    CHECK(loads.bytes_before(1) == 50);  // the job is still somewhere
}

TEST_CASE("a job that is done or lost counts no more") {
    preparer_loads loads(1);
    {
        const auto job = loads.ticket(0, 100);
        CHECK(loads.bytes_before(0) == 100);
    }
    CHECK(loads.bytes_before(0) == 0);
    CHECK(loads.pick(preparer_loads::large_bytes) == 0);  // there is no other
}

TEST_CASE("large jobs leave the first preparer to short ones") {
    preparer_loads loads(2);
    std::vector<std::shared_ptr<const void>> jobs;
    for (int i = 0; i < 16; ++i) {
        const auto whom = loads.pick(28'000'000);
        CHECK(whom == 1);
        jobs.push_back(loads.ticket(whom, 28'000'000));
    }
    CHECK(loads.pick(100) == 0);
    CHECK(loads.bytes_before(0) == 0);
}
