#include "native/weights/split_name.hpp"

#include <cstdio>

namespace fermata::weights {
namespace {

// Five digits, or nothing.
std::optional<std::uint32_t> five_digits(std::string_view text) {
    std::uint32_t value = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return std::nullopt;
        value = value * 10 + static_cast<std::uint32_t>(c - '0');
    }
    return value;
}

}  // namespace

std::optional<split_name> parse_split_name(std::string_view path) {
    // "-00002-of-00005.gguf" counted from the end: 20 characters.
    constexpr std::size_t tail_size = 20;
    if (path.size() <= tail_size) return std::nullopt;
    const std::string_view tail = path.substr(path.size() - tail_size);
    if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf") return std::nullopt;
    const auto number = five_digits(tail.substr(1, 5));
    const auto count = five_digits(tail.substr(10, 5));
    if (!number || !count || *number < 1 || *number > *count) return std::nullopt;
    return split_name{std::string(path.substr(0, path.size() - tail_size)), *number, *count};
}

std::string member_path(const split_name& set, std::uint32_t number) {
    char tail[32];
    std::snprintf(tail, sizeof tail, "-%05u-of-%05u.gguf", number, set.count);
    return set.prefix + tail;
}

}  // namespace fermata::weights
