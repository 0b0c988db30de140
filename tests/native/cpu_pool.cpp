// The fork-join pool: every item once, any number of threads, jobs in quick succession.
#include <doctest/doctest.h>

#include <atomic>
#include <numeric>

#include "native/cpu/pool.hpp"

using fermata::cpu::fork_join_pool;

TEST_CASE("every item runs once, by a thread that exists, and all before run returns") {
    for (const unsigned threads : {1u, 2u, 3u, 4u, 9u}) {
        fork_join_pool pool(threads);
        CHECK(pool.threads() == threads);
        for (const std::size_t items : {0U, 1U, 2U, 3U, 7U, 64U, 1000U}) {
            std::vector<std::atomic<int>> count(items);
            std::atomic<bool> wild{false};
            pool.run(items, [&](std::size_t item, unsigned thread) {
                count[item].fetch_add(1);
                if (thread >= threads) wild = true;
            });
            for (const auto& c : count) CHECK(c.load() == 1);
            CHECK_FALSE(wild.load());
        }
    }
}

TEST_CASE("jobs follow each other without mixing") {
    fork_join_pool pool(4);
    std::vector<std::uint64_t> value(64, 0);
    for (std::uint64_t job = 1; job <= 20000; ++job)
        pool.run(64, [&](std::size_t item, unsigned) { value[item] += job * (item + 1); });
    for (std::size_t item = 0; item < 64; ++item) CHECK(value[item] == 20000ull * 20001ull / 2 * (item + 1));
}

TEST_CASE("a pool that parked wakes again, and one that is parked ends") {
    fork_join_pool pool(3);
    std::atomic<int> sum{0};
    for (int round = 0; round < 3; ++round) {
        pool.run(8, [&](std::size_t, unsigned) { sum.fetch_add(1); });
        // Long enough for the workers to park on any machine that is not wholly busy; either way the result is the same.
        volatile std::uint64_t busy = 0;
        for (std::uint64_t i = 0; i < 3000000; ++i) busy = busy + i;
    }
    CHECK(sum.load() == 24);
}
