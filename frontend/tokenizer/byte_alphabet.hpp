// The byte-level alphabet: one printable character for each of the 256 bytes, so that a vocabulary of byte strings
// can be written as text. The 188 printable bytes of Latin-1 stand for themselves, the others for U+0100 and on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fermata::text {

// The bytes that `written` stands for; nothing if a character of it is not of the alphabet.
std::optional<std::string> bytes_from_alphabet(std::string_view written);
std::string bytes_to_alphabet(std::string_view bytes);

}  // namespace fermata::text
