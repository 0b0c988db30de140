// What the four adapters (CAF 0.17, CAF 1.x, msgpack, printer) and the schema hash share: which kind of member is
// this, what are the names of enumerators and ids. Everything is derived from the one field list of a type.
//
// `check_field_list<T>` refuses, at compile time, a list that forgets a member: the struct is taken apart with a
// structured binding of exactly as many names as the list has entries.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "messages/all.hpp"

namespace fermata::wire {

// -- kinds of members ------------------------------------------------------------------------------------------

template <class T>
struct is_strong : std::false_type {};
template <class Tag, class Rep>
struct is_strong<strong_id<Tag, Rep>> : std::true_type {
    using tag = Tag;
};
template <class Tag, class Rep>
struct is_strong<strong_count<Tag, Rep>> : std::true_type {
    using tag = Tag;
};
template <class T>
concept strong = is_strong<T>::value;

template <class T>
struct is_vector : std::false_type {};
template <class E>
struct is_vector<std::vector<E>> : std::true_type {};
template <class T>
concept vector_of = is_vector<T>::value;

template <class T>
struct is_optional : std::false_type {};
template <class E>
struct is_optional<std::optional<E>> : std::true_type {};
template <class T>
concept optional_of = is_optional<T>::value;

template <class T>
struct is_shared : std::false_type {};
template <class E>
struct is_shared<std::shared_ptr<const E>> : std::true_type {
    using element = E;
};
template <class T>
concept shared_const = is_shared<T>::value;

template <class T>
concept enumeration = std::is_enum_v<T>;

template <class T>
concept plain_integer = std::integral<T> && !std::same_as<T, bool>;

// -- names the compiler knows ----------------------------------------------------------------------------------

namespace detail {

template <auto V>
constexpr std::string_view pretty_value() {
    return __PRETTY_FUNCTION__;
}

template <class T>
constexpr std::string_view pretty_type() {
    return __PRETTY_FUNCTION__;
}

// The value after "V = " or "T = ", without what follows it.
constexpr std::string_view after(std::string_view text, std::string_view mark) {
    auto start = text.find(mark);
    if (start == std::string_view::npos) return {};
    text.remove_prefix(start + mark.size());
    return text.substr(0, text.find_first_of(";]"));
}

constexpr std::string_view last_name(std::string_view text) {
    auto colon = text.rfind(':');
    return colon == std::string_view::npos ? text : text.substr(colon + 1);
}

inline constexpr std::size_t enumerators_max = 64;

// A value without an enumerator prints as "(type)7".
template <class E, std::size_t I>
constexpr std::string_view enumerator() {
    constexpr auto text = after(pretty_value<static_cast<E>(I)>(), "V = ");
    return text.empty() || text.front() == '(' ? std::string_view{} : last_name(text);
}

template <class E, std::size_t... I>
constexpr std::size_t count_enumerators(std::index_sequence<I...>) {
    std::size_t count = 0;
    bool open = true;
    ((open = open && !enumerator<E, I>().empty(), count += open ? 1u : 0u), ...);
    return count;
}

}  // namespace detail

// Enumerations of the bus count from 0 without gaps.
template <enumeration E>
inline constexpr std::size_t enum_size =
    detail::count_enumerators<E>(std::make_index_sequence<detail::enumerators_max>{});

template <enumeration E>
inline constexpr auto enum_names = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<std::string_view, sizeof...(I)>{detail::enumerator<E, I>()...};
}(std::make_index_sequence<enum_size<E>>{});

template <enumeration E>
constexpr std::string_view enum_name(E value) {
    auto i = static_cast<std::size_t>(value);
    return i < enum_size<E> ? enum_names<E>[i] : std::string_view("?");
}

template <enumeration E>
constexpr std::string_view enum_type_name() {
    return detail::last_name(detail::after(detail::pretty_type<E>(), "T = "));
}

// "ticket_tag" for a ticket.
template <strong T>
constexpr std::string_view id_name() {
    return detail::last_name(detail::after(detail::pretty_type<typename is_strong<T>::tag>(), "T = "));
}

// -- no member is forgotten ------------------------------------------------------------------------------------

namespace detail {

// Compiles only when T has exactly N members.
template <class T, std::size_t N>
void take_apart(T& x) {
    static_assert(N >= 1 && N <= 20, "add a case");
#define FERMATA_CASE(n, ...)                   \
    if constexpr (N == n) {                    \
        [[maybe_unused]] auto& [__VA_ARGS__] = x; \
    }
    FERMATA_CASE(1, a)
    FERMATA_CASE(2, a, b)
    FERMATA_CASE(3, a, b, c)
    FERMATA_CASE(4, a, b, c, d)
    FERMATA_CASE(5, a, b, c, d, e)
    FERMATA_CASE(6, a, b, c, d, e, f)
    FERMATA_CASE(7, a, b, c, d, e, f, g)
    FERMATA_CASE(8, a, b, c, d, e, f, g, h)
    FERMATA_CASE(9, a, b, c, d, e, f, g, h, i)
    FERMATA_CASE(10, a, b, c, d, e, f, g, h, i, j)
    FERMATA_CASE(11, a, b, c, d, e, f, g, h, i, j, k)
    FERMATA_CASE(12, a, b, c, d, e, f, g, h, i, j, k, l)
    FERMATA_CASE(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
    FERMATA_CASE(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
    FERMATA_CASE(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
    FERMATA_CASE(16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
    FERMATA_CASE(17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
    FERMATA_CASE(18, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
    FERMATA_CASE(19, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s)
    FERMATA_CASE(20, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
#undef FERMATA_CASE
}

}  // namespace detail

// Odr-use it once per type (the schema does, for every type of messages/all.hpp).
template <message T>
inline constexpr auto check_field_list = &detail::take_apart<T, field_count<T>>;

// -- lists of types --------------------------------------------------------------------------------------------

// visit(std::type_identity<T>) for each type.
template <class... Ts, class Visit>
constexpr void for_each_type(type_list<Ts...>, Visit&& visit) {
    (visit(std::type_identity<Ts>{}), ...);
}

template <class List>
struct variant_over;
template <class... Ts>
struct variant_over<type_list<Ts...>> {
    using type = std::variant<Ts...>;
};

}  // namespace fermata::wire

namespace fermata {

// One message of the bus, whichever it is.
using bus_message = wire::variant_over<bus_messages>::type;

}  // namespace fermata
