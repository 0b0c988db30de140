// tokenizer.json from anywhere, and texts from anywhere through what it made. The input is the file, then, behind a
// byte 0, the text; a file may be refused with one line, and nothing else may go wrong. What was made must give back
// tokens that are its own, and the same ones a second time.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "frontend/tokenizer/detokenizer.hpp"
#include "frontend/tokenizer/tokenizer.hpp"

namespace {

using namespace fermata;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "%s\n", what);
    std::abort();
}

std::shared_ptr<const text::tokenizer> read(std::string_view file) {
    try {
        return text::tokenizer::from_tokenizer_json(file);
    } catch (const text::tokenizer_error& error) {
        require(std::string_view(error.what()).find('\n') == std::string_view::npos, "an error of more than one line");
        return nullptr;
    }
}

// A vocabulary of bytes alone under every kind: texts, not files, are what is tried here.
std::shared_ptr<const text::tokenizer> byte_tokenizer(std::size_t which) {
    static constexpr const char* kinds[] = {"gpt-2", "smollm", "llama-bpe", "qwen2", "qwen35", "deepseek-llm", "deepseek-coder"};
    static std::shared_ptr<const text::tokenizer> made[std::size(kinds)];
    auto& words = made[which % std::size(kinds)];
    if (words) return words;
    vocabulary_description v;
    v.model = "gpt2";
    v.pre_tokenizer = kinds[which % std::size(kinds)];
    char32_t other = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
        const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
        const char32_t code = printable ? byte : other++;
        std::string token;
        if (code < 0x80) {
            token.push_back(static_cast<char>(code));
        } else {
            token.push_back(static_cast<char>(0xC0 | (code >> 6)));
            token.push_back(static_cast<char>(0x80 | (code & 0x3F)));
        }
        v.tokens.push_back(token);
    }
    v.merges = {"Ġ Ġ", "a b", "ab ab"};
    for (const char* merged : {"ĠĠ", "ab", "abab"}) v.tokens.push_back(merged);
    return words = text::tokenizer::from_vocabulary(v);
}

void try_text(const std::shared_ptr<const text::tokenizer>& words, std::string_view bytes, bool exact) {
    std::vector<token_id> ids;
    try {
        ids = words->encode(bytes, {.parse_special = true, .add_special = true});
    } catch (const text::tokenizer_error&) {
        return;  // an expression that gives up
    }
    text::incremental_detokenizer out(words);
    for (const token_id id : ids) out.push(id);
    const auto spans = words->encode_with_offsets(bytes, {.parse_special = true, .add_special = true});
    require(spans.size() == ids.size(), "offsets for other tokens");
    for (std::size_t i = 0; i < ids.size(); ++i) {
        require(words->has_token(ids[i]) && spans[i].id == ids[i], "an id that is none");
        require(spans[i].begin <= spans[i].end && spans[i].end <= bytes.size(), "an offset outside the text");
    }
    const std::string back = words->decode(ids, true);
    const bool composes = words->kind().substr(0, 4) == "qwen";
    require(!exact || composes || back == bytes, "bytes that don't come back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const auto zero = input.find('\0');
    const std::string_view file = input.substr(0, zero);
    const std::string_view bytes = zero == input.npos ? input : input.substr(zero + 1);
    if (const auto words = read(file)) try_text(words, bytes, false);
    try_text(byte_tokenizer(size), bytes, true);
    return 0;
}
