// A tiny byte-level vocabulary for tests: one token a byte (id = byte value), then special tokens. Text written with
// it is as long in tokens as in bytes, so expectations can be counted by hand.
#pragma once

#include <string>
#include <vector>

#include "messages/vocabulary.hpp"

namespace fermata::tests {

// The printable stand-in that byte-level BPE files use for a byte, as UTF-8.
inline std::string stand_in(unsigned byte) {
    const auto itself = [](unsigned b) {
        return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);
    };
    unsigned code = byte;
    if (!itself(byte)) {
        code = 256;
        for (unsigned b = 0; b < byte; ++b) code += itself(b) ? 0 : 1;
    }
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

inline constexpr token_id im_start = 256, im_end = 257;

inline vocabulary_description byte_vocabulary(std::string chat_template = {}) {
    vocabulary_description v;
    v.model = "gpt2";
    v.pre_tokenizer = "smollm";
    for (unsigned byte = 0; byte < 256; ++byte) {
        v.tokens.push_back(stand_in(byte));
        v.types.push_back(token_type::normal);
    }
    for (const char* special : {"<|im_start|>", "<|im_end|>"}) {
        v.tokens.emplace_back(special);
        v.types.push_back(token_type::control);
    }
    v.bos = im_start;
    v.eos = im_end;
    v.end_of_generation = {im_end};
    v.chat_template = std::move(chat_template);
    return v;
}

}  // namespace fermata::tests
