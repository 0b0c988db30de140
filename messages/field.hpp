// One constexpr list of fields a message type; every adapter (CAF, msgpack, printer, field-list hash) is generated
// from it. A message is a plain struct with
//
//     static constexpr std::string_view type_name = "copy_order";
//     static constexpr auto fields() { return std::tuple{field("copy", &copy_order::copy), ...}; }
#pragma once

#include <string_view>
#include <tuple>
#include <type_traits>

namespace fermata {

template <class Struct, class Member>
struct field_descriptor {
    std::string_view name;
    Member Struct::*member;
};

template <class Struct, class Member>
constexpr field_descriptor<Struct, Member> field(std::string_view name, Member Struct::*member) {
    return {name, member};
}

template <class T>
concept message = requires {
    T::type_name;
    T::fields();
};

template <message T>
inline constexpr std::size_t field_count = std::tuple_size_v<decltype(T::fields())>;

// visit(descriptor) for each field, in declaration order.
template <message T, class Visit>
constexpr void for_each_field(Visit&& visit) {
    std::apply([&](const auto&... each) { (visit(each), ...); }, T::fields());
}

template <class... Ts>
struct type_list {
    static constexpr std::size_t size = sizeof...(Ts);
};

}  // namespace fermata
