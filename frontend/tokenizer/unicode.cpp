#include "frontend/tokenizer/unicode.hpp"

namespace fermata::text {

namespace {

bool continues(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// The least code of a sequence of 2, 3 or 4 bytes: anything below is an overlong form.
constexpr std::array<char32_t, 5> least_code{0, 0, 0x80, 0x800, 0x10000};

std::uint16_t classes_from_category(char32_t code) {
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
        case UTF8PROC_CATEGORY_LU:
        case UTF8PROC_CATEGORY_LL:
        case UTF8PROC_CATEGORY_LT:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_LO: return category::letter;
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_MC:
        case UTF8PROC_CATEGORY_ME: return category::mark;
        case UTF8PROC_CATEGORY_ND: return category::number | category::decimal;
        case UTF8PROC_CATEGORY_NL:
        case UTF8PROC_CATEGORY_NO: return category::number;
        case UTF8PROC_CATEGORY_PC: return category::punctuation | category::connector;
        case UTF8PROC_CATEGORY_PD:
        case UTF8PROC_CATEGORY_PS:
        case UTF8PROC_CATEGORY_PE:
        case UTF8PROC_CATEGORY_PI:
        case UTF8PROC_CATEGORY_PF:
        case UTF8PROC_CATEGORY_PO: return category::punctuation;
        case UTF8PROC_CATEGORY_SM:
        case UTF8PROC_CATEGORY_SC:
        case UTF8PROC_CATEGORY_SK:
        case UTF8PROC_CATEGORY_SO: return category::symbol;
        default: return category::other;
    }
}

// The property White_Space; it is not a general category (U+0085 is a control, U+200B is none of it).
bool has_white_space(char32_t code) {
    return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
           code == 0x205F || code == 0x3000;
}

}  // namespace

namespace detail {

character decode_multibyte(std::string_view text, std::size_t at) noexcept {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::uint32_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || text.size() - at < length) return {};
    char32_t code = lead & (0x7Fu >> length);
    for (std::uint32_t i = 1; i < length; ++i) {
        const auto byte = static_cast<unsigned char>(text[at + i]);
        if (!continues(byte)) return {};
        code = (code << 6) | (byte & 0x3Fu);
    }
    if (code < least_code[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
    return {code, length, true};
}

std::uint16_t classify_beyond_ascii(char32_t code) noexcept {
    const std::uint16_t classes = classes_from_category(code);
    return has_white_space(code) ? static_cast<std::uint16_t>(classes | category::space) : classes;
}

std::array<std::uint16_t, 128> make_ascii_classes() noexcept {
    std::array<std::uint16_t, 128> table{};
    for (char32_t code = 0; code < 128; ++code) table[code] = classify_beyond_ascii(code);
    return table;
}

}  // namespace detail

character character_before(std::string_view text, std::size_t at) noexcept {
    for (std::size_t length = 1; length <= 4 && length <= at; ++length) {
        if (continues(static_cast<unsigned char>(text[at - length]))) continue;
        const character c = character_at(text.substr(0, at), at - length);
        if (c.valid && c.length == length) return c;
        break;
    }
    return {};
}

bool is_word_character(char32_t code) noexcept {
    if (code < 0x80) {
        return (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z') ||
               code == '_';
    }
    if (code == 0x200C || code == 0x200D) return true;
    const bool circled_letter = (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
                                (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
    if (circled_letter) return true;
    if (utf8proc_category(static_cast<utf8proc_int32_t>(code)) == UTF8PROC_CATEGORY_NL) return true;
    const std::uint16_t wanted = category::letter | category::mark | category::decimal | category::connector;
    return (classes_of(code) & wanted) != 0;
}

}  // namespace fermata::text
