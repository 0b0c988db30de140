// The msgpack adapter: a message is a map from field name to value. Enumerators go by name, ids as integers, an
// absent part as nil, bytes that aren't UTF-8 as bin. Readers skip fields they don't know and name what is wrong with
// the place: `cycle_plan.binds[2].who: missing`. Allocation is bounded by the input: no count is believed that the
// bytes left could not hold.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>

#include "messages/wire/pack.hpp"
#include "messages/wire/reflect.hpp"

namespace fermata::wire {

namespace detail {

template <class T>
void write(pack_writer& to, const T& x) {
    if constexpr (std::same_as<T, bool>) {
        to.boolean(x);
    } else if constexpr (std::floating_point<T>) {
        to.number(x);
    } else if constexpr (std::signed_integral<T>) {
        to.signed_integer(x);
    } else if constexpr (std::unsigned_integral<T>) {
        to.unsigned_integer(x);
    } else if constexpr (std::same_as<T, std::string>) {
        to.text(x);
    } else if constexpr (strong<T>) {
        write(to, x.value);
    } else if constexpr (enumeration<T>) {
        to.text(enum_name(x));
    } else if constexpr (std::same_as<T, token_run>) {
        to.array(x.size());
        for (token_id each : x.span()) to.signed_integer(each);
    } else if constexpr (vector_of<T>) {
        to.array(x.size());
        for (const auto& each : x) write(to, each);
    } else if constexpr (optional_of<T> || shared_const<T>) {
        if (x) write(to, *x);
        else to.nil();
    } else {
        to.map(field_count<T>);
        for_each_field<T>([&](const auto& each) {
            to.text(each.name);
            write(to, x.*each.member);
        });
    }
}

// The place of a value, as a list on the stack; joined only for an error.
struct place {
    const place* parent = nullptr;
    std::string_view name;
    std::size_t index = 0;
    std::string text() const {
        std::string before = parent ? parent->text() : std::string();
        if (name.empty()) return before + "[" + std::to_string(index) + "]";
        return before.empty() ? std::string(name) : before + "." + std::string(name);
    }
};

template <class T>
std::string one_of() {
    std::string text;
    for (auto name : enum_names<T>) text.append(text.empty() ? "" : ", ").append(name);
    return text;
}

template <class T>
void read(pack_reader& from, T& x, const place& where);

// Errors of the primitives get the place of the value they were found at.
template <class Read>
auto at_place(const place& where, Read&& read_one) {
    try {
        return read_one();
    } catch (const pack_error& error) {
        throw pack_error(where.text() + ": " + error.what());
    }
}

template <class T>
void read_list(pack_reader& from, std::vector<T>& list, const place& where) {
    const std::size_t size = from.array();
    list.clear();
    // An element in memory may be larger than its bytes: grow as elements really come.
    list.reserve(std::min<std::size_t>(size, 64));
    for (std::size_t i = 0; i < size; ++i) {
        if constexpr (std::is_arithmetic_v<T>) {
            T value{};
            read(from, value, place{&where, {}, i});
            list.push_back(value);
        } else {
            read(from, list.emplace_back(), place{&where, {}, i});
        }
    }
}

template <message T>
void read_fields(pack_reader& from, T& x, const place& where) {
    std::array<bool, field_count<T>> seen{};
    const std::size_t size = from.map();
    for (std::size_t i = 0; i < size; ++i) {
        const std::string_view key = at_place(where, [&] { return from.text(); });
        std::size_t index = 0;
        bool known = false;
        for_each_field<T>([&](const auto& each) {
            if (!known && each.name == key) {
                known = true;
                const place field_place{&where, each.name, 0};
                if (seen[index]) throw pack_error(field_place.text() + ": given twice");
                seen[index] = true;
                read(from, x.*each.member, field_place);
            }
            ++index;
        });
        if (!known) at_place(where, [&] { from.skip(); });
    }
    std::size_t index = 0;
    for_each_field<T>([&](const auto& each) {
        if (!seen[index++]) throw pack_error(place{&where, each.name, 0}.text() + ": missing");
    });
}

template <class T>
void read(pack_reader& from, T& x, const place& where) {
    if constexpr (message<T>) {
        at_place(where, [&] {
            auto ahead = from;
            ahead.map();
        });
        read_fields(from, x, where);
    } else if constexpr (vector_of<T>) {
        at_place(where, [&] {
            auto ahead = from;
            ahead.array();
        });
        read_list(from, x, where);
    } else if constexpr (optional_of<T>) {
        if (at_place(where, [&] { return from.peek(); }) == pack_kind::nil) return from.nil(), x.reset();
        read(from, x.emplace(), where);
    } else if constexpr (shared_const<T>) {
        if (at_place(where, [&] { return from.peek(); }) == pack_kind::nil) return from.nil(), x.reset();
        auto fresh = std::make_shared<typename is_shared<T>::element>();
        read(from, *fresh, where);
        x = std::move(fresh);
    } else if constexpr (std::same_as<T, token_run>) {
        std::vector<token_id> tokens;
        read(from, tokens, where);
        x = token_run(std::move(tokens));
    } else if constexpr (strong<T>) {
        read(from, x.value, where);
    } else {
        at_place(where, [&] {
            using limits = std::numeric_limits<T>;
            if constexpr (std::same_as<T, bool>) x = from.boolean();
            else if constexpr (std::same_as<T, float>) x = from.float32();
            else if constexpr (std::same_as<T, double>) x = from.float64();
            else if constexpr (std::same_as<T, std::string>) x = from.text();
            else if constexpr (std::signed_integral<T>) x = static_cast<T>(from.signed_integer(limits::min(), limits::max()));
            else if constexpr (std::unsigned_integral<T>) x = static_cast<T>(from.unsigned_integer(limits::max()));
            else if constexpr (enumeration<T>) {
                const auto name = from.text();
                std::size_t i = 0;
                while (i < enum_size<T> && enum_names<T>[i] != name) ++i;
                if (i == enum_size<T>)
                    throw pack_error("\"" + std::string(name.substr(0, 40)) + "\" is none of " + one_of<T>());
                x = static_cast<T>(i);
            }
        });
    }
}

}  // namespace detail

// Appends one message.
template <message T>
void write_msgpack(std::string& out, const T& x) {
    pack_writer to(out);
    detail::write(to, x);
}

// Reads one message and leaves `from` after it. Throws pack_error. `x` is then valid, its content unspecified.
template <message T>
void read_msgpack(pack_reader& from, T& x) {
    detail::read(from, x, detail::place{nullptr, T::type_name, 0});
}

template <message T>
std::string to_msgpack(const T& x) {
    std::string out;
    write_msgpack(out, x);
    return out;
}

// The whole input is one message.
template <message T>
T from_msgpack(std::string_view bytes) {
    pack_reader from(bytes);
    T x;
    read_msgpack(from, x);
    if (!from.done())
        throw pack_error(std::string(T::type_name) + ": " + std::to_string(bytes.size() - from.offset()) +
                         " bytes follow the message");
    return x;
}

}  // namespace fermata::wire
