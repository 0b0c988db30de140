// Every type of messages/all.hpp goes through the msgpack adapter and comes back to the bit; an independent reader
// (msgpack-cxx's own) sees the same maps; wrong input is named with its place.
#include <doctest/doctest.h>

#define MSGPACK_NO_BOOST
#include <msgpack/unpack.hpp>

#include "messages/wire/bus.hpp"
#include "messages/wire/msgpack.hpp"
#include "random_content.hpp"

using namespace fermata;
using namespace fermata::wire;

namespace {

template <class List, class Visit>
void each_type(Visit&& visit) {
    for_each_type(List{}, visit);
}

// Keys in order, as msgpack-cxx reads them.
template <class T>
bool library_sees_fields(const std::string& bytes) {
    auto handle = msgpack::unpack(bytes.data(), bytes.size());
    const auto& object = handle.get();
    if (object.type != msgpack::type::MAP || object.via.map.size != field_count<T>) return false;
    std::size_t i = 0;
    bool all = true;
    for_each_field<T>([&](const auto& each) {
        const auto& key = object.via.map.ptr[i++].key;
        all = all && key.type == msgpack::type::STR && std::string_view(key.via.str.ptr, key.via.str.size) == each.name;
    });
    return all;
}

template <class T>
std::string error_of(std::string_view bytes) {
    try {
        from_msgpack<T>(bytes);
    } catch (const pack_error& error) {
        return error.what();
    }
    return "";
}

// The message with one top-level field left out, renamed or replaced by `value` bytes.
template <class T>
std::string edited(const T& x, std::string_view name, const std::string* value) {
    std::string out;
    pack_writer to(out);
    to.map(field_count<T> - (value ? 0 : 1));
    for_each_field<T>([&](const auto& each) {
        if (each.name != name) {
            to.text(each.name);
            wire::detail::write(to, x.*each.member);
        } else if (value) {
            to.text(each.name);
            out += *value;
        }
    });
    return out;
}

template <class Write>
std::string packed(Write&& write) {
    std::string out;
    pack_writer to(out);
    write(to);
    return out;
}

}  // namespace

TEST_CASE("every message and part survives msgpack, bit for bit") {
    test::rng random(20240607);
    auto check = [&]<class T>(std::type_identity<T>) {
        for (int i = 0; i < 40; ++i) {
            T x;
            test::fill(random, x);
            const auto bytes = to_msgpack(x);
            CAPTURE(T::type_name);
            REQUIRE(test::same(from_msgpack<T>(bytes), x));
            REQUIRE(library_sees_fields<T>(bytes));
        }
    };
    each_type<message_parts>(check);
    each_type<bus_messages>(check);
}

TEST_CASE("a message of the bus is found by its name") {
    test::rng random(3);
    each_type<bus_messages>([&]<class T>(std::type_identity<T>) {
        T x;
        test::fill(random, x);
        std::string bytes;
        write_bus(bytes, bus_message(x));
        pack_reader from(bytes);
        auto back = read_bus(T::type_name, from);
        REQUIRE(back);
        REQUIRE(from.done());
        REQUIRE(type_name(*back) == T::type_name);
        REQUIRE(test::same(std::get<T>(*back), x));
    });
    pack_reader nothing("\x80");
    CHECK_FALSE(read_bus("no_such_message", nothing));
}

TEST_CASE("the bytes are those of the msgpack specification") {
    // {"token": -1, "logprob": -0.5f}: fixmap 2, fixstr 5, negative fixint, fixstr 7, float 32.
    CHECK(to_msgpack(token_logprob{no_token, -0.5f}) == std::string("\x82\xa5token\xff\xa7logprob\xca\xbf\x00\x00\x00", 21));
}

TEST_CASE("readers skip fields they do not know, whatever they hold") {
    const token_bias x{7, 0.25f};
    std::string out;
    pack_writer to(out);
    to.map(5);
    to.text("later");
    to.array(2);
    to.map(1);
    to.text("deep");
    to.nil();
    out += std::string("\xc7\x03\x01" "abc", 6);  // ext 8
    to.text("bias");
    to.number(x.bias);
    to.text("fix");
    out += std::string("\xd5\x01xy", 4);  // fixext 2
    to.text("numbers");
    to.array(6);
    to.unsigned_integer(1u << 20);
    to.signed_integer(-70000);
    to.number(1.0f);
    to.number(2.0);
    to.boolean(true);
    to.text(std::string(300, 'x'));
    to.text("token");
    to.signed_integer(x.token);
    CHECK(from_msgpack<token_bias>(out) == x);
}

TEST_CASE("each missing field of each type is named") {
    test::rng random(11);
    auto check = [&]<class T>(std::type_identity<T>) {
        T x;
        test::fill(random, x);
        for_each_field<T>([&](const auto& each) {
            CHECK(error_of<T>(edited(x, each.name, nullptr)) ==
                  std::string(T::type_name) + "." + std::string(each.name) + ": missing");
        });
    };
    each_type<message_parts>(check);
    each_type<bus_messages>(check);
}

TEST_CASE("errors name the place inside lists and parts") {
    cycle_plan plan;
    plan.binds.resize(3);
    const std::string good = to_msgpack(plan.binds[0]);
    const std::string list = packed([](pack_writer& to) { to.array(3); }) + good + good + edited(plan.binds[2], "who", nullptr);
    CHECK(error_of<cycle_plan>(edited(plan, "binds", &list)) == "cycle_plan.binds[2].who: missing");

    const std::string text = packed([](pack_writer& to) { to.text("seven"); });
    CHECK(error_of<cycle_plan>(edited(plan, "cycle", &text)) ==
          "cycle_plan.cycle: expected an unsigned integer, found a string at byte 7");
    CHECK(error_of<cycle_plan>(edited(plan, "drops", &text)).starts_with("cycle_plan.drops: expected an array, found a string"));
    CHECK(error_of<cycle_plan>(text).starts_with("cycle_plan: expected a map, found a string"));

    const std::string big = packed([](pack_writer& to) { to.unsigned_integer(70000); });
    CHECK(error_of<client_error>(edited(client_error{}, "status", &big)).starts_with("client_error.status: 70000 is above 65535"));
    const std::string minus = packed([](pack_writer& to) { to.signed_integer(-1); });
    CHECK(error_of<client_error>(edited(client_error{}, "status", &minus)).starts_with("client_error.status: -1 is below 0"));
    CHECK(error_of<row_result>(edited(row_result{}, "finish", &text)) ==
          "row_result.finish: \"seven\" is none of none, stop, length, cancelled, error");
    const std::string wide = packed([](pack_writer& to) { to.number(1.0); });
    CHECK(error_of<token_bias>(edited(token_bias{}, "bias", &wide)).starts_with("token_bias.bias: expected a 32-bit float, found a 64-bit float"));
    const std::string number = packed([](pack_writer& to) { to.unsigned_integer(3000000000u); });
    CHECK(error_of<token_bias>(edited(token_bias{}, "token", &number)).starts_with("token_bias.token: 3000000000 is outside"));
    CHECK(error_of<token_bias>(to_msgpack(token_bias{}) + "x") == "token_bias: 1 bytes follow the message");
    std::string twice = packed([](pack_writer& to) {
        to.map(2);
        for (int i = 0; i < 2; ++i) to.text("token"), to.signed_integer(1);
    });
    CHECK(error_of<token_bias>(twice) == "token_bias.token: given twice");
}

TEST_CASE("a claimed size is not believed beyond the bytes left") {
    const std::string huge("\xdd\xff\xff\xff\xff", 5);  // array 32 of 4294967295 elements
    CHECK(error_of<cycle_plan>(edited(cycle_plan{}, "decodes", &huge)).find("cycle_plan.decodes: 4294967295 elements are claimed") == 0);
    CHECK(error_of<pause_result>(edited(pause_result{}, "ledger", &huge)).find("pause_result.ledger: 4294967295 elements") == 0);
    const std::string map("\xdf\xff\xff\xff\xff", 5);
    CHECK(error_of<cycle_plan>(map).find("cycle_plan: 4294967295 elements") == 0);
    const std::string text("\xdb\xff\xff\xff\xff" "abc", 8);
    CHECK(error_of<copy_done>(edited(copy_done{}, "error", &text)).find("copy_done.error: the input ends at byte") == 0);
}

TEST_CASE("every truncation and every changed byte is an error or a message, never a crash") {
    test::rng random(5);
    cycle_done x;
    test::fill(random, x);
    const auto bytes = to_msgpack(x);
    for (std::size_t n = 0; n < std::min<std::size_t>(bytes.size(), 4000); ++n)
        REQUIRE(error_of<cycle_done>(std::string_view(bytes).substr(0, n)) != "");
    for (int i = 0; i < 4000; ++i) {
        auto changed = bytes;
        changed[test::below(random, changed.size())] = static_cast<char>(random());
        error_of<cycle_done>(changed);
    }
}

TEST_CASE("bytes that are no UTF-8 travel as bin, text as str") {
    CHECK(packed([](pack_writer& to) { to.text("\xc3\xa9"); }) == "\xa2\xc3\xa9");
    CHECK(packed([](pack_writer& to) { to.text("\xc3"); }) == std::string("\xc4\x01\xc3"));
    CHECK(packed([](pack_writer& to) { to.text("\xed\xa0\x80"); })[0] == '\xc4');  // a surrogate
    CHECK(packed([](pack_writer& to) { to.text("\xf4\x8f\xbf\xbf"); })[0] == '\xa4');
    CHECK(packed([](pack_writer& to) { to.text("\xf4\x90\x80\x80"); })[0] == '\xc4');
    CHECK(packed([](pack_writer& to) { to.text("\xc0\xaf"); })[0] == '\xc4');
}
