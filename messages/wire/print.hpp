// The debug printer: `cycle_plan{cycle: 7, cancels: [], ...}`. Lists are shortened after eight elements, strings after
// 80 bytes, so that a line about a message stays a line. Floats print so that they read back as the same value; a NaN
// prints its bits.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>

#include "messages/wire/reflect.hpp"

namespace fermata::wire {

struct print_limits {
    std::size_t elements_max = 8;
    std::size_t string_bytes_max = 80;
    static constexpr print_limits none() {
        return {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max()};
    }
};

namespace detail {

class printer {
public:
    explicit printer(print_limits limits) : limits_(limits) {}

    std::string take() { return std::move(out_); }

    template <class T>
    void put(const T& x) {
        if constexpr (std::same_as<T, bool>) {
            out_ += x ? "true" : "false";
        } else if constexpr (std::floating_point<T>) {
            put_float(x);
        } else if constexpr (std::integral<T>) {
            put_number(x);
        } else if constexpr (std::same_as<T, std::string>) {
            put_string(x);
        } else if constexpr (std::same_as<T, token_run>) {
            put_list(x.span());
        } else if constexpr (strong<T>) {
            put_number(x.value);
        } else if constexpr (enumeration<T>) {
            out_ += enum_name(x);
        } else if constexpr (vector_of<T>) {
            put_list(x);
        } else if constexpr (optional_of<T> || shared_const<T>) {
            if (x) put(*x);
            else out_ += "none";
        } else {
            put_fields(x);
        }
    }

private:
    template <message T>
    void put_fields(const T& x) {
        out_.append(T::type_name).append("{");
        bool first = true;
        for_each_field<T>([&](const auto& each) {
            if (!first) out_ += ", ";
            first = false;
            out_.append(each.name).append(": ");
            put(x.*each.member);
        });
        out_ += '}';
    }

    template <class Range>
    void put_list(const Range& range) {
        out_ += '[';
        std::size_t i = 0;
        for (const auto& each : range) {
            if (i == limits_.elements_max) {
                put_number((out_ += ", ... ", range.size() - i));
                out_ += " more";
                break;
            }
            if (i++ != 0) out_ += ", ";
            put(each);
        }
        out_ += ']';
    }

    template <class Number>
    void put_number(Number value) {
        char digits[40];
        out_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    }

    template <class Float>
    void put_float(Float x) {
        if (!std::isnan(x)) return put_number(x);
        std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t> bits;
        std::memcpy(&bits, &x, sizeof bits);
        char digits[20];
        out_.append("nan(0x").append(digits, std::to_chars(digits, digits + sizeof digits, bits, 16).ptr).append(")");
    }

    void put_string(std::string_view text) {
        static constexpr char hex[] = "0123456789abcdef";
        const std::size_t size = std::min(text.size(), limits_.string_bytes_max);
        out_ += '"';
        for (char each : text.substr(0, size)) {
            const auto c = static_cast<unsigned char>(each);
            if (c == '"' || c == '\\') out_.append({'\\', each});
            else if (c == '\n') out_ += "\\n";
            else if (c < 0x20 || c == 0x7f) out_.append({'\\', 'x', hex[c >> 4], hex[c & 15]});
            else out_ += each;
        }
        out_ += '"';
        if (size == text.size()) return;
        out_ += " ... ";
        put_number(text.size() - size);
        out_ += " more bytes";
    }

    std::string out_;
    print_limits limits_;
};

}  // namespace detail

template <message T>
std::string print(const T& x, print_limits limits = {}) {
    detail::printer to(limits);
    to.put(x);
    return to.take();
}

inline std::string print(const bus_message& x, print_limits limits = {}) {
    return std::visit([&](const auto& each) { return print(each, limits); }, x);
}

}  // namespace fermata::wire
