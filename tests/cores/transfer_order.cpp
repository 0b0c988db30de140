#include <doctest/doctest.h>

#include <stdexcept>

#include "actors/cores/transfer.hpp"

using namespace fermata;

namespace {

copy_order order(std::uint64_t id) {
    copy_order o;
    o.copy = copy_id{id};
    return o;
}
std::uint64_t started(const transfer_command& c) { return std::get<start_copy>(c).order.copy.value; }
std::uint64_t ended(const transfer_command& c) { return std::get<copy_done>(c).copy.value; }

}  // namespace

TEST_CASE("first submitted, first started; one at a time unless told otherwise") {
    transfer t;
    transfer::commands out;
    t.on(order(1), out);
    t.on(order(2), out);
    REQUIRE(out.size() == 1);
    CHECK(started(out[0]) == 1);
    t.on(copy_done{copy_id{1}, true, ""}, out);
    REQUIRE(out.size() == 3);
    CHECK(ended(out[1]) == 1);
    CHECK(started(out[2]) == 2);
    transfer two({2});
    out.clear();
    for (std::uint64_t i = 1; i <= 3; ++i) two.on(order(i), out);
    CHECK(out.size() == 2);
}

TEST_CASE("a late, repeated or unknown end is nothing") {  // N2
    transfer t;
    transfer::commands out;
    t.on(copy_done{copy_id{9}, true, ""}, out);
    CHECK(out.empty());
    t.on(order(1), out);
    t.on(copy_done{copy_id{1}, false, "broken"}, out);
    t.on(copy_done{copy_id{1}, true, ""}, out);
    REQUIRE(out.size() == 2);
    CHECK_FALSE(std::get<copy_done>(out[1]).complete);
}

TEST_CASE("a Transfer that may run nothing is refused") {
    CHECK_THROWS_AS(transfer({0}), std::invalid_argument);
}
