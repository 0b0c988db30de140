// Every type of messages/all.hpp goes through CAF's own binary serializer and comes back to the bit; bytes that are no
// legal value are refused.
#include <doctest/doctest.h>

#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>

#include "../messages/random_content.hpp"
#include "actors/handles.hpp"

using namespace fermata;

namespace {

#if FERMATA_CAF_1
using bytes = caf::byte_buffer;
#else
using bytes = std::vector<char>;
#endif

template <class T>
bytes save(caf::actor_system& system, T& x) {
    bytes out;
#if FERMATA_CAF_1
    (void)system;
    caf::binary_serializer to{out};
    REQUIRE(to.apply(x));
#else
    caf::binary_serializer to{system, out};
    REQUIRE_FALSE(to(x));
#endif
    return out;
}

template <class T>
bool load(caf::actor_system& system, const bytes& in, T& x) {
#if FERMATA_CAF_1
    (void)system;
    caf::binary_deserializer from{in};
    return from.apply(x);
#else
    caf::binary_deserializer from{system, in};
    return !from(x);
#endif
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
            REQUIRE(load(system, stored, back));
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
        REQUIRE_FALSE(load(system, bytes(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(n)), back));

    bind_result bind;
    bind.outcome = static_cast<bind_outcome>(200);
    auto wrong = save(system, bind);
    bind_result other;
    CHECK_FALSE(load(system, wrong, other));
}

#if !FERMATA_CAF_1
TEST_CASE("CAF's printer shows messages field by field") {
    CHECK(caf::deep_to_string(copy_done{copy_id(3), true, "x"}).find("3, true, \"x\"") != std::string::npos);
}
#endif
