#include "frontend/tokenizer/byte_alphabet.hpp"

#include <array>
#include <cstdint>

#include "frontend/tokenizer/unicode.hpp"

namespace fermata::text {

namespace {

constexpr std::size_t alphabet_end = 0x100 + 68;  // 68 bytes are not printable

struct alphabet_tables {
    std::array<char32_t, 256> character_of_byte{};
    std::array<std::int16_t, alphabet_end> byte_of_character{};
};

constexpr alphabet_tables make_tables() {
    alphabet_tables tables;
    for (auto& byte : tables.byte_of_character) byte = -1;
    char32_t next = 0x100;
    for (std::size_t byte = 0; byte < 256; ++byte) {
        const bool printable =
            (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
        const char32_t code = printable ? static_cast<char32_t>(byte) : next++;
        tables.character_of_byte[byte] = code;
        tables.byte_of_character[code] = static_cast<std::int16_t>(byte);
    }
    return tables;
}

constexpr alphabet_tables tables = make_tables();

}  // namespace

std::optional<std::string> bytes_from_alphabet(std::string_view written) {
    std::string bytes;
    bytes.reserve(written.size());
    for (std::size_t at = 0; at < written.size();) {
        const character c = character_at(written, at);
        if (!c.valid || c.code >= alphabet_end || tables.byte_of_character[c.code] < 0) return std::nullopt;
        bytes.push_back(static_cast<char>(tables.byte_of_character[c.code]));
        at += c.length;
    }
    return bytes;
}

std::string bytes_to_alphabet(std::string_view bytes) {
    std::string written;
    written.reserve(bytes.size());
    for (const char byte : bytes) {
        append_utf8(written, tables.character_of_byte[static_cast<unsigned char>(byte)]);
    }
    return written;
}

}  // namespace fermata::text
