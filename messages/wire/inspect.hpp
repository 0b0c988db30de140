// The CAF adapters: `inspect` for every message, for CAF 0.17 (a call with references) and CAF 1.x (objects with
// named fields). No CAF header is needed here: which of the two is meant shows in what the inspector can do.
//
// Both versions see a member in a form each of them can carry: ids as integers, floats as their bits (so that NaNs
// keep their payload), enumerators as range-checked integers, an optional or shared part as a list of none or one,
// a token run as a list. The conversion copies, and runs only where bytes are made (remote peers, never in process).
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "messages/wire/reflect.hpp"

namespace fermata::wire {

// form<T>::type: what CAF carries; to(member): copy out; from(carried, member): false if it is no legal value.
template <class T>
struct form {  // bool, integers, strings, messages
    using type = T;
    static T to(const T& x) { return x; }
    static bool from(T&& y, T& x) { return x = std::move(y), true; }
};

template <>
struct form<float> {
    using type = std::uint32_t;
    static type to(float x) { return std::bit_cast<type>(x); }
    static bool from(type y, float& x) { return x = std::bit_cast<float>(y), true; }
};

template <>
struct form<double> {
    using type = std::uint64_t;
    static type to(double x) { return std::bit_cast<type>(x); }
    static bool from(type y, double& x) { return x = std::bit_cast<double>(y), true; }
};

template <strong T>
struct form<T> {
    using type = typename T::rep;
    static type to(T x) { return x.value; }
    static bool from(type y, T& x) { return x = T(y), true; }
};

template <enumeration T>
struct form<T> {
    using type = std::uint8_t;
    static_assert(sizeof(T) == 1);
    static type to(T x) { return static_cast<type>(x); }
    static bool from(type y, T& x) { return x = static_cast<T>(y), y < enum_size<T>; }
};

template <class E>
struct form<std::vector<E>> {
    using type = std::vector<typename form<E>::type>;
    static type to(const std::vector<E>& x) {
        type y;
        y.reserve(x.size());
        for (const auto& each : x) y.push_back(form<E>::to(each));
        return y;
    }
    static bool from(type&& y, std::vector<E>& x) {
        x.resize(y.size());
        for (std::size_t i = 0; i < y.size(); ++i)
            if (!form<E>::from(std::move(y[i]), x[i])) return false;
        return true;
    }
};

template <class E>
struct form<std::optional<E>> {
    using type = std::vector<typename form<E>::type>;
    static type to(const std::optional<E>& x) {
        type y;
        if (x) y.push_back(form<E>::to(*x));
        return y;
    }
    static bool from(type&& y, std::optional<E>& x) {
        x.reset();
        return y.empty() || (y.size() == 1 && form<E>::from(std::move(y[0]), x.emplace()));
    }
};

template <class E>
struct form<std::shared_ptr<const E>> {
    using type = std::vector<typename form<E>::type>;
    static type to(const std::shared_ptr<const E>& x) {
        type y;
        if (x) y.push_back(form<E>::to(*x));
        return y;
    }
    static bool from(type&& y, std::shared_ptr<const E>& x) {
        x.reset();
        if (y.empty()) return true;
        auto fresh = std::make_shared<E>();
        if (y.size() != 1 || !form<E>::from(std::move(y[0]), *fresh)) return false;
        x = std::move(fresh);
        return true;
    }
};

template <>
struct form<token_run> {
    using type = std::vector<token_id>;
    static type to(const token_run& x) { return {x.span().begin(), x.span().end()}; }
    static bool from(type&& y, token_run& x) { return x = token_run(std::move(y)), true; }
};

// Makes the "this is no legal value" result of an inspector of CAF 0.17; specialised where CAF is included.
template <class Result>
struct inspect_failure;

template <class Inspector, class T>
concept names_fields = requires(Inspector& f, T& x) { f.object(x); };

namespace detail {

template <class T>
struct forms;
template <class... Descriptor>
struct forms<std::tuple<Descriptor...>> {
    template <class S, class M>
    static typename form<M>::type one(const field_descriptor<S, M>&);
    using type = std::tuple<decltype(one(std::declval<Descriptor>()))...>;
};

template <class T>
using forms_of = typename forms<decltype(T::fields())>::type;

template <class T>
forms_of<T> to_forms(const T& x) {
    return std::apply(
        [&]<class... S, class... M>(const field_descriptor<S, M>&... each) {
            return forms_of<T>{form<M>::to(x.*each.member)...};
        },
        T::fields());
}

template <class T>
bool from_forms(forms_of<T>&& carried, T& x) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        constexpr auto list = T::fields();
        auto one = [&]<class S, class M, class F>(const field_descriptor<S, M>& each, F&& value) {
            return form<M>::from(std::move(value), x.*each.member);
        };
        return (one(std::get<I>(list), std::move(std::get<I>(carried))) && ...);
    }(std::make_index_sequence<field_count<T>>{});
}

// CAF 1.x. The field's getter copies only when it is called: when saving.
template <class Inspector, class T, class M>
auto named_field(Inspector& f, T& x, const field_descriptor<T, M>& each) {
    auto get = [&x, member = each.member] { return form<M>::to(x.*member); };
    auto set = [&x, member = each.member](typename form<M>::type&& y) { return form<M>::from(std::move(y), x.*member); };
    return f.field({each.name.data(), each.name.size()}, get, set);
}

}  // namespace detail
}  // namespace fermata::wire

namespace fermata {

// CAF 1.x: found by argument-dependent lookup.
template <class Inspector, message T>
    requires wire::names_fields<Inspector, T>
bool inspect(Inspector& f, T& x) {
    return std::apply(
        [&](const auto&... each) {
            return f.object(x)
                .pretty_name({T::type_name.data(), T::type_name.size()})
                .fields(wire::detail::named_field(f, x, each)...);
        },
        T::fields());
}

// CAF 0.17.
template <class Inspector, message T>
    requires(!wire::names_fields<Inspector, T>)
typename Inspector::result_type inspect(Inspector& f, T& x) {
    if constexpr (Inspector::reads_state) {
        auto carried = wire::detail::to_forms(x);
        return std::apply([&](auto&... each) { return f(each...); }, carried);
    } else {
        wire::detail::forms_of<T> carried{};
        if (auto error = std::apply([&](auto&... each) { return f(each...); }, carried)) return error;
        if (!wire::detail::from_forms<T>(std::move(carried), x))
            return wire::inspect_failure<typename Inspector::result_type>::make();
        return {};
    }
}

}  // namespace fermata
