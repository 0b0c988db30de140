// Names of the members of a split GGUF: PREFIX-00002-of-00005.gguf, counted from 1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fermata::weights {

struct split_name {
    std::string prefix;  // with its folder
    std::uint32_t number = 0, count = 0;
};

// Nothing when the path isn't of this form.
std::optional<split_name> parse_split_name(std::string_view path);
std::string member_path(const split_name& set, std::uint32_t number);

}  // namespace fermata::weights
