#include "words.hpp"

#include <algorithm>

#include "frontend/tokenizer/tokenizer.hpp"
#include "messages/vocabulary.hpp"

namespace fermata::simulation {

namespace {

// Two bytes of one character, e with an acute accent, in UTF-8.
constexpr char lead = '\xC3', trail = '\xA9';
constexpr const char* replacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr const char letters[] = {'a', 'b', 'c', 'd', 'e', 'f', lead, trail};

// Byte-level files write a byte above 0xA0 as the character of that number (0xAD aside).
std::string written(const std::string& bytes) {
    std::string out;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x80) out += c;
        else out += static_cast<char>(0xC0 | (byte >> 6)), out += static_cast<char>(0x80 | (byte & 0x3F));
    }
    return out;
}

constexpr const char* chat_template =
    "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}a{% endif %}";

}  // namespace

words draw_words(random_source& random, std::uint32_t vocabulary) {
    vocabulary_description v;
    v.model = "gpt2";
    v.pre_tokenizer = "smollm";
    for (std::uint32_t i = 0; i + 1 < vocabulary; ++i) {
        std::string bytes;
        if (i < std::size(letters)) bytes = letters[i];
        else
            for (std::uint32_t k = 2 + random.upto(1); k > 0; --k)
                bytes += random.chance(15) ? (random.chance(50) ? lead : trail) : static_cast<char>('a' + random.upto(5));
        v.tokens.push_back(written(bytes));
        v.types.push_back(token_type::normal);
    }
    v.tokens.emplace_back("<|end|>");
    v.types.push_back(token_type::control);
    v.eos = static_cast<token_id>(vocabulary - 1);
    v.end_of_generation = {v.eos};
    words out;
    const auto tokenizer = text::tokenizer::from_vocabulary(v);
    out.model = std::make_shared<const text_model>(tokenizer, chat_template);
    auto table = std::make_shared<token_table>();
    table->bytes = out.model->answer_bytes();
    const auto ends = tokenizer->end_of_generation();
    table->end_of_generation.assign(ends.begin(), ends.end());
    out.table = std::move(table);
    return out;
}

std::vector<token_id> encoded(std::string_view text) {
    std::vector<token_id> tokens;
    for (const char c : text) {
        const auto letter = std::find(std::begin(letters), std::end(letters), c);
        if (letter != std::end(letters)) tokens.push_back(static_cast<token_id>(letter - std::begin(letters)));
    }
    return tokens;
}

std::string expected_text(const words& of, const std::vector<token_id>& tokens, const std::vector<std::string>& stop) {
    std::string raw;
    for (const token_id token : tokens) raw += of.table->bytes[static_cast<std::size_t>(token)];
    std::string out;
    for (std::size_t i = 0; i < raw.size(); ++i) {
        if (raw[i] == lead && i + 1 == raw.size()) break;  // half a character at the end is withheld
        if (raw[i] == lead && raw[i + 1] == trail) out += lead, out += trail, ++i;
        else if (raw[i] == lead || raw[i] == trail) out += replacement;
        else out += raw[i];
    }
    std::size_t end = out.size();
    for (const std::string& each : stop) end = std::min(end, out.find(each));
    return out.substr(0, end);
}

}  // namespace fermata::simulation
