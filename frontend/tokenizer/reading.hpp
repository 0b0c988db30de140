// Limits and wording shared by the readers of tokenizer files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fermata::text {

// Far above any model (the largest vocabularies have 262,144 tokens and 514,906 merges).
inline constexpr std::size_t tokens_max = std::size_t{1} << 22;
inline constexpr std::size_t merges_max = std::size_t{1} << 23;
inline constexpr std::size_t token_bytes_max = std::size_t{1} << 28;  // all tokens together

std::string too_many(std::string_view what, std::size_t count, std::size_t most);

// A piece of the file for a message: one line, printable, of at most 40 characters.
std::string shown(std::string_view text);

}  // namespace fermata::text
