#include "actors/journal/held_bytes.hpp"

#include <string>
#include <type_traits>
#include <variant>

namespace fermata {
namespace {

// What a member keeps beside its own place in the struct.
template <class T>
std::size_t beside(const T& x) {
    using namespace wire;
    if constexpr (std::same_as<T, token_run>) {
        return x.span().size_bytes();
    } else if constexpr (std::same_as<T, std::string>) {
        return x.capacity();
    } else if constexpr (vector_of<T>) {
        using element = typename T::value_type;
        std::size_t bytes = x.capacity() * sizeof(element);
        if constexpr (!std::is_trivially_copyable_v<element>)
            for (const auto& each : x) bytes += beside(each);
        return bytes;
    } else if constexpr (optional_of<T>) {
        return x ? beside(*x) : 0;
    } else if constexpr (shared_const<T>) {
        return x ? sizeof(*x) + beside(*x) : 0;
    } else if constexpr (message<T>) {
        std::size_t bytes = 0;
        for_each_field<T>([&](const auto& each) { bytes += beside(x.*each.member); });
        return bytes;
    } else {
        return 0;
    }
}

}  // namespace

std::size_t held_bytes(const bus_message& message) {
    return sizeof(message) + std::visit([](const auto& each) { return beside(each); }, message);
}

}  // namespace fermata
