// Restarts are counted against a bound that a long quiet life refills.
#include <doctest/doctest.h>

#include "actors/restart_budget.hpp"

using namespace fermata;

TEST_CASE("a trouble that returns at once uses the restarts up") {
    restart_budget budget(3, 100);
    budget.running(0);
    for (int i = 0; i < 3; ++i) {
        budget.stopped(99);  // 99 after it began to run: nothing is forgiven
        CHECK(budget.take());
        budget.running(99);
        budget.stopped(198);
    }
    CHECK_FALSE(budget.take());
}

TEST_CASE("each quiet stretch gives one back, and never more than were used") {
    restart_budget budget(2, 100);
    budget.running(0);
    CHECK(budget.take());
    CHECK(budget.take());
    CHECK_FALSE(budget.take());
    budget.running(1'000);
    budget.stopped(1'150);  // one stretch and a half
    CHECK(budget.used() == 1);
    CHECK(budget.take());
    CHECK_FALSE(budget.take());
    budget.running(2'000);
    budget.stopped(1'000'000);
    CHECK(budget.used() == 0);
    CHECK(budget.take());
    CHECK(budget.take());
    CHECK_FALSE(budget.take());
}

TEST_CASE("nothing is forgiven where that was not asked for, or where the clock stands") {
    restart_budget never(1, 0);
    CHECK(never.take());
    never.running(0);
    never.stopped(1'000'000'000);
    CHECK_FALSE(never.take());
    restart_budget still(1, 100);
    CHECK(still.take());
    still.running(500);
    still.stopped(500);
    CHECK_FALSE(still.take());
}
