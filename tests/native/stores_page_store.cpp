// Pages: references, leases, promises. The random test compares the store with a plain model of the same rules.
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <set>
#include <stdexcept>

#include "native/stores/page_store.hpp"
#include "native/stores/pool_permit.hpp"

using namespace fermata;

TEST_CASE("pages for tokens round up") {
    CHECK(pages_for(0, 16) == 0);
    CHECK(pages_for(1, 16) == 1);
    CHECK(pages_for(16, 16) == 1);
    CHECK(pages_for(17, 16) == 2);
}

TEST_CASE("a reservation takes all or nothing and gives back what was not taken") {  // C2, C3
    page_store store(4);
    page_reservation one(store);
    CHECK(one.extend(3));
    CHECK(store.available() == 1);
    page_reservation two(store);
    CHECK_FALSE(two.extend(2));
    CHECK(two.left() == 0);
    CHECK(store.available() == 1);
    const page_id page = one.take();
    CHECK(one.left() == 2);
    one.give_back();
    CHECK(store.available() == 3);
    CHECK(store.references(page, holder::sequence) == 1);
}

TEST_CASE("a reservation is moved, never doubled") {
    page_store store(4);
    {
        page_reservation one(store);
        REQUIRE(one.extend(2));
        page_reservation two(std::move(one));
        CHECK(one.left() == 0);
        CHECK(two.left() == 2);
        page_reservation three(store);
        REQUIRE(three.extend(1));
        three = std::move(two);  // its own promise returns first
        CHECK(store.promised() == 2);
    }
    CHECK(store.available() == 4);
}

TEST_CASE("the same calls give the same pages: the page freed last is taken first") {
    page_store store(3);
    page_reservation all(store);
    REQUIRE(all.extend(3));
    CHECK(all.take() == page_id(0));
    CHECK(all.take() == page_id(1));
    store.release(page_id(0), holder::sequence);
    REQUIRE(all.extend(1));
    CHECK(all.take() == page_id(0));
}

TEST_CASE("a page with a second holder, or under a copy, may not be written") {  // G7
    page_store store(2);
    page_reservation some(store);
    REQUIRE(some.extend(1));
    const page_id page = some.take();
    CHECK(store.writable(page));
    store.add_reference(page, holder::point);
    CHECK_FALSE(store.writable(page));
    store.release(page, holder::point);
    CHECK(store.writable(page));
    store.lease(page);
    CHECK_FALSE(store.writable(page));
    store.end_lease(page);
    CHECK(store.writable(page));
    store.hand_over(page);
    CHECK_FALSE(store.writable(page));  // a point's page is never written
    CHECK(store.cached() == 1);
}

TEST_CASE("a leased page is not reused, whatever its references say") {  // N4, fault 8
    page_store store(1);
    page_reservation some(store);
    REQUIRE(some.extend(1));
    const page_id page = some.take();
    store.lease(page);
    store.release(page, holder::sequence);
    CHECK(store.available() == 0);
    CHECK(store.orphaned() == 1);
    CHECK_FALSE(some.extend(1));
    store.end_lease(page);
    CHECK(store.available() == 1);
    CHECK(store.orphaned() == 0);
}

TEST_CASE("misuse is refused before anything changes") {
    page_store store(2);
    CHECK_THROWS_AS(store.release(page_id(0), holder::sequence), std::logic_error);
    CHECK_THROWS_AS(store.add_reference(page_id(0), holder::point), std::logic_error);
    CHECK_THROWS_AS(store.lease(page_id(1)), std::logic_error);
    CHECK_THROWS_AS(store.end_lease(page_id(1)), std::logic_error);
    CHECK_THROWS_AS(store.release(page_id(7), holder::sequence), std::logic_error);
    page_reservation none(store);
    CHECK_THROWS_AS(none.take(), std::logic_error);
    const std::vector<page_store::expectation> idle(2);
    CHECK(store.check_integrity(idle, 0) == "");
}

TEST_CASE("the integrity check tells which count is off") {
    page_store store(2);
    page_reservation some(store);
    REQUIRE(some.extend(2));
    some.take();
    std::vector<page_store::expectation> truth(2);
    truth[0].sequences = 1;
    CHECK(store.check_integrity(truth, 1) == "");
    CHECK(store.check_integrity(truth, 0).find("promised") != std::string::npos);
    truth[0].sequences = 2;
    CHECK(store.check_integrity(truth, 1) == "page store: page 0 counts 1 sequences, its holders 2");
    truth[0].sequences = 1;
    truth[1].leases = 1;
    CHECK(store.check_integrity(truth, 1) == "page store: page 1 counts 0 leases, its holders 1");
}

TEST_CASE("a permit spans pools: what one lacks, none gives") {  // C2
    page_pools pools;
    pools.push_back(std::make_unique<page_store>(4));
    pools.push_back(std::make_unique<page_store>(1));
    pool_permit permit(pools);
    CHECK_FALSE(permit.raise_to({3, 2}));
    CHECK(permit.left(0) == 0);
    CHECK(pools[0]->available() == 4);
    CHECK(permit.raise_to({3, 1}));
    CHECK(permit.raise_to({2, 1}));  // a raise never lowers
    CHECK(permit.left(0) == 3);
    CHECK_FALSE(permit.raise_to({4, 2}));
    CHECK(permit.left(0) == 3);
}

TEST_CASE("random operations agree with a plain model") {
    constexpr std::uint32_t n = 12;
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
        std::mt19937 random(seed);
        page_store store(n);
        std::deque<page_reservation> permits;
        for (int i = 0; i < 3; ++i) permits.emplace_back(store);
        std::vector<page_store::expectation> model(n);
        std::vector<std::uint32_t> left(3, 0);
        const auto free_pages = [&] {
            return static_cast<std::uint32_t>(std::count_if(model.begin(), model.end(), [](const auto& e) {
                return e.sequences + e.points + e.leases == 0;
            }));
        };
        const auto promised = [&] { return left[0] + left[1] + left[2]; };
        for (int step = 0; step < 400; ++step) {
            const auto which = static_cast<std::uint32_t>(random() % 3), count = static_cast<std::uint32_t>(random() % 5);
            const page_id page(static_cast<std::uint32_t>(random() % n));
            auto& e = model[page.value];
            switch (random() % 9) {
                case 0:
                    if (const bool fits = count + promised() <= free_pages(); true) {
                        REQUIRE(permits[which].extend(count) == fits);
                        if (fits) left[which] += count;
                    }
                    break;
                case 1:
                    if (left[which]) {
                        const page_id got = permits[which].take();
                        REQUIRE(model[got.value].sequences + model[got.value].points + model[got.value].leases == 0);
                        model[got.value].sequences = 1;
                        --left[which];
                    }
                    break;
                case 2: permits[which].give_back(); left[which] = 0; break;
                case 3: if (e.sequences + e.points) store.add_reference(page, holder::sequence), ++e.sequences; break;
                case 4: if (e.sequences + e.points) store.add_reference(page, holder::point), ++e.points; break;
                case 5: if (e.sequences) store.release(page, holder::sequence), --e.sequences; break;
                case 6: if (e.points) store.release(page, holder::point), --e.points; break;
                case 7: if (e.sequences + e.points) store.lease(page), ++e.leases; break;
                default:
                    if (e.leases) store.end_lease(page), --e.leases;
                    else if (e.sequences) store.hand_over(page), --e.sequences, ++e.points;
            }
            REQUIRE(store.available() == free_pages() - promised());
            REQUIRE(store.check_integrity(model, promised()) == "");
        }
    }
}
