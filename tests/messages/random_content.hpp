// Random content for any message, from its field list; and equality to the bit of any two. Shared by the round trips.
#pragma once

#include <bit>
#include <limits>
#include <random>
#include <string>

#include "messages/wire/reflect.hpp"

namespace fermata::test {

using rng = std::mt19937_64;

inline std::size_t below(rng& random, std::size_t n) { return static_cast<std::size_t>(random() % n); }

template <class T>
void fill(rng& random, T& x) {
    using namespace wire;
    if constexpr (std::same_as<T, bool>) {
        x = random() & 1;
    } else if constexpr (std::floating_point<T>) {
        using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
        using limits = std::numeric_limits<T>;
        // Any bit pattern is a legal value; those that adapters tend to lose come often.
        const T special[] = {T(0), T(-0.0), T(1), T(-3), limits::infinity(), -limits::infinity(), limits::denorm_min(),
                             limits::max(), std::bit_cast<T>(static_cast<bits>(std::bit_cast<bits>(limits::quiet_NaN()) | 0x155)),
                             std::bit_cast<T>(static_cast<bits>(std::bit_cast<bits>(limits::infinity()) | 0x2a))};
        const auto pick = below(random, 20);
        x = pick < 10 ? special[pick] : std::bit_cast<T>(static_cast<bits>(random()));
    } else if constexpr (std::integral<T>) {
        const T special[] = {T(0), T(1), std::numeric_limits<T>::max(), std::numeric_limits<T>::min()};
        const auto pick = below(random, 8);
        x = pick < 4 ? special[pick] : static_cast<T>(random() >> below(random, 64));
    } else if constexpr (std::same_as<T, std::string>) {
        x.clear();
        for (auto n = below(random, 40); n > 0; --n) x += static_cast<char>(random());
        if (random() & 1)
            for (char& c : x) c = static_cast<char>(c & 0x7f);
    } else if constexpr (std::same_as<T, token_run>) {
        std::vector<token_id> tokens(below(random, 50) + 2);
        for (auto& each : tokens) fill(random, each);
        // A part of a longer run: only the part may travel.
        x = token_run(std::move(tokens)).part(1, below(random, 50));
    } else if constexpr (strong<T>) {
        fill(random, x.value);
    } else if constexpr (enumeration<T>) {
        x = static_cast<T>(below(random, enum_size<T>));
    } else if constexpr (vector_of<T>) {
        x.resize(below(random, 4) == 0 ? 0 : below(random, 20));
        for (auto& each : x) fill(random, each);
    } else if constexpr (optional_of<T>) {
        x.reset();
        if (random() & 1) fill(random, x.emplace());
    } else if constexpr (shared_const<T>) {
        x.reset();
        if (random() % 3 == 0) return;
        auto fresh = std::make_shared<typename is_shared<T>::element>();
        fill(random, *fresh);
        x = std::move(fresh);
    } else {
        for_each_field<T>([&](const auto& each) { fill(random, x.*each.member); });
    }
}

template <class T>
bool same(const T& a, const T& b) {
    using namespace wire;
    if constexpr (std::same_as<T, float>) {
        return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
    } else if constexpr (std::same_as<T, double>) {
        return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
    } else if constexpr (vector_of<T>) {
        if (a.size() != b.size()) return false;
        for (std::size_t i = 0; i < a.size(); ++i)
            if (!same(a[i], b[i])) return false;
        return true;
    } else if constexpr (optional_of<T> || shared_const<T>) {
        return a ? b && same(*a, *b) : !b;
    } else if constexpr (message<T>) {
        bool all = true;
        for_each_field<T>([&](const auto& each) { all = all && same(a.*each.member, b.*each.member); });
        return all;
    } else {
        return a == b;
    }
}

}  // namespace fermata::test
