// Every type of messages/all.hpp goes through CAF's own binary serializer and comes back to the bit; bytes that are no
// legal value are refused.
#include <doctest/doctest.h>

#include <caf/deep_to_string.hpp>

#include "../messages/random_content.hpp"
#include "actors/handles.hpp"

using namespace fermata;

namespace {

using bytes = bus::byte_buffer;

template <class T>
bytes save(caf::actor_system& system, T& x) {
    bytes out;
    REQUIRE(bus::save(system, x, out));
    return out;
}

}  // namespace

TEST_CASE("every message and part survives CAF's binary format, bit for bit") {
    auto config = bus::make_config(1, false);
    caf::actor_system system{*config};
    test::rng random(77);
    auto check = [&]<class T>(std::type_identity<T>) {
        for (int i = 0; i < 20; ++i) {
            T x, back;
            test::fill(random, x);
            CAPTURE(T::type_name);
            const auto stored = save(system, x);
            REQUIRE(bus::load(system, stored, back));
            REQUIRE(test::same(x, back));
        }
    };
    wire::for_each_type(message_parts{}, check);
    wire::for_each_type(bus_messages{}, check);
}

TEST_CASE("truncated bytes and values without an enumerator are errors") {
    auto config = bus::make_config(1, false);
    caf::actor_system system{*config};
    test::rng random(78);
    cycle_done done;
    while (done.rows.size() < 2 || !done.view) test::fill(random, done);
    const auto stored = save(system, done);
    cycle_done back;
    for (std::size_t n = 0; n < std::min<std::size_t>(stored.size(), 300); ++n)
        REQUIRE_FALSE(bus::load(system, bytes(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(n)), back));

    bind_result bind;
    bind.outcome = static_cast<bind_outcome>(200);
    auto wrong = save(system, bind);
    bind_result other;
    CHECK_FALSE(bus::load(system, wrong, other));
}

TEST_CASE("CAF's printer shows messages field by field") {
    CHECK(caf::deep_to_string(copy_done{copy_id(3), true, "x"}).find("3, true, \"x\"") != std::string::npos);
}
