// StateImage slots.
#include <doctest/doctest.h>

#include <random>
#include <stdexcept>

#include "native/stores/state_store.hpp"

using namespace fermata;

TEST_CASE("a model without state has no slots") {
    state_store store(0);
    CHECK(store.total() == 0);
    CHECK_FALSE(store.take().has_value());
    CHECK(store.check_integrity({}, {}) == "");
}

TEST_CASE("a slot comes back undefined, whatever it held before") {  // faults 11, 13, 14
    state_store store(1);
    const state_slot slot = *store.take();
    CHECK_FALSE(store.defined(slot));
    store.set_defined(slot, true);
    store.release(slot);
    CHECK_FALSE(store.defined(slot));
    CHECK(*store.take() == slot);
    CHECK_FALSE(store.defined(slot));
}

TEST_CASE("a leased slot is not reused before its copy is complete") {  // N4
    state_store store(1);
    const state_slot slot = *store.take();
    store.lease(slot);
    store.release(slot);
    CHECK_FALSE(store.take().has_value());
    store.end_lease(slot);
    CHECK(store.take().has_value());
}

TEST_CASE("misuse of slots is refused") {
    state_store store(1);
    CHECK_THROWS_AS(store.release(state_slot(0)), std::logic_error);
    CHECK_THROWS_AS(store.lease(state_slot(0)), std::logic_error);
    CHECK_THROWS_AS(store.end_lease(state_slot(0)), std::logic_error);
    CHECK_THROWS_AS(store.defined(state_slot(1)), std::logic_error);
}

TEST_CASE("random operations on slots agree with a plain model") {
    constexpr std::uint32_t n = 5;
    std::mt19937 random(7);
    state_store store(n);
    std::vector<std::uint32_t> held(n, 0), leases(n, 0);
    for (int step = 0; step < 3000; ++step) {
        const state_slot slot(static_cast<std::uint32_t>(random() % n));
        std::uint32_t& h = held[slot.value];
        std::uint32_t& l = leases[slot.value];
        switch (random() % 4) {
            case 0:
                if (const auto got = store.take()) {
                    REQUIRE(held[got->value] + leases[got->value] == 0);
                    held[got->value] = 1;
                } else {
                    for (std::uint32_t i = 0; i < n; ++i) REQUIRE(held[i] + leases[i] > 0);
                }
                break;
            case 1: if (h) store.release(slot), h = 0; break;
            case 2: if (h) store.lease(slot), ++l; break;
            default: if (l) store.end_lease(slot), --l;
        }
        REQUIRE(store.check_integrity(held, leases) == "");
    }
}
