// Detokenising as tokens arrive: whole characters only, and no part of a stop string.
#include <doctest/doctest.h>

#include "frontend/tokenizer/detokenizer.hpp"
#include "tests/frontend/tokenizer_support.hpp"

using namespace fermata;
using namespace fermata::text;
using namespace tokenizer_support;

namespace {

std::shared_ptr<const tokenizer> byte_tokens() {
    static const auto words = [] {
        auto v = small_vocabulary("gpt-2");
        add_token(v, "<|im_end|>", token_type::control);
        add_token(v, "<tool>", token_type::user_defined);
        return tokenizer::from_vocabulary(v);
    }();
    return words;
}

std::vector<std::string> pushed(std::string_view bytes) {
    incremental_detokenizer out(byte_tokens());
    std::vector<std::string> parts;
    for (const char byte : bytes) parts.push_back(out.push(static_cast<unsigned char>(byte)));
    return parts;
}

// Everything given out when the text is pushed in parts of `step` bytes.
std::string filtered(stop_text_filter filter, std::string_view text, std::size_t step) {
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += step) out += filter.push(text.substr(at, step));
    return out + filter.finish();
}

}  // namespace

TEST_CASE("a character is given out with its last byte") {
    using parts = std::vector<std::string>;
    CHECK(pushed("aé") == parts{"a", "", "é"});
    CHECK(pushed("€😀") == parts{"", "", "€", "", "", "", "😀"});
    incremental_detokenizer out(byte_tokens());
    CHECK(out.push(0xF0) == "");
    CHECK(out.push(0x9F) == "");
    CHECK(out.push(0x98) == "");  // withheld for good if the answer ends here
    CHECK(out.push(0x80) == "😀");
}

TEST_CASE("bytes that can be part of no character come out as U+FFFD, as Python decodes them") {
    const auto all = [](std::string_view bytes) {
        std::string text;
        for (const auto& part : pushed(bytes)) text += part;
        return text;
    };
    CHECK(all("\xff") == "\ufffd");
    CHECK(all("\x80" "a") == "\ufffda");
    CHECK(all("\xe2\x82" "a") == "\ufffda");          // a maximal part is one
    CHECK(all("\xe0\x80\x80") == "\ufffd\ufffd\ufffd");  // overlong
    CHECK(all("\xed\xa0\x80") == "\ufffd\ufffd\ufffd");  // a surrogate
    CHECK(all("\xf4\x90\x80\x80") == "\ufffd\ufffd\ufffd\ufffd");
    CHECK(all("\xc0\xaf") == "\ufffd\ufffd");
    CHECK(all("\xf0\x9f\xe2\x82\xac") == "\ufffd€");
    CHECK(all("\xe2\x82\xe2\x82") == "\ufffd");  // the second one may still become a character
}

TEST_CASE("special tokens give no text unless asked, and leave a character open") {
    incremental_detokenizer plain(byte_tokens());
    CHECK(plain.push(256) == "");
    CHECK(plain.push(257) == "<tool>");
    CHECK(plain.push(0xC3) == "");
    CHECK(plain.push(256) == "");
    CHECK(plain.push(0xA9) == "é");
    incremental_detokenizer all(byte_tokens(), true);
    CHECK(all.push(std::vector<token_id>{'a', 256, 'b'}) == "a<|im_end|>b");
    CHECK(all.push(258) == "");  // a row that only pads the model's output
    CHECK(all.push(-1) == "");
    CHECK(all.push('c') == "c");
}

TEST_CASE("whatever the tokens, the text is a prefix of the exact bytes and valid UTF-8") {
    const auto words = tokenizer::from_vocabulary(read_vocabulary(fixtures() + "gpt-2.vocabulary"));
    text_generator texts(pool(), 5);
    for (int i = 0; i < 300; ++i) {
        const std::string text = texts.text();
        incremental_detokenizer out(words);
        std::string so_far;
        for (const token_id id : words->encode(text)) {
            so_far += out.push(id);
            REQUIRE(is_valid_utf8(so_far));
            REQUIRE(text.substr(0, so_far.size()) == so_far);
        }
        REQUIRE(so_far == text);
    }
}

TEST_CASE("text that may begin a stop string is held back, no more") {
    stop_text_filter filter({"STOP"});
    CHECK(filter.push("a S") == "a ");
    CHECK(filter.push("T") == "");
    CHECK(filter.push("x") == "STx");
    CHECK(filter.push("yST") == "y");
    CHECK(filter.push("OP and more") == "");
    CHECK(filter.stopped());
    CHECK(filter.stop() == "STOP");
    CHECK(filter.push("more") == "");
    CHECK(filter.finish() == "");
}

TEST_CASE("an answer that ends without a stop string gives what was held back") {
    stop_text_filter filter({"\n\n"});
    CHECK(filter.push("end\n") == "end");
    CHECK(filter.finish() == "\n");
    CHECK(!filter.stopped());
}

TEST_CASE("overlapping beginnings, several stop strings, the stop string kept") {
    CHECK(filtered(stop_text_filter({"aab"}), "aaab!", 1) == "a");
    CHECK(filtered(stop_text_filter({"abab"}), "abaabab!", 1) == "aba");
    CHECK(filtered(stop_text_filter({"bc", "abcd"}), "xabcd", 1) == "xa");     // "bc" is complete first
    CHECK(filtered(stop_text_filter({"bc", "abcd"}), "xabcd", 5) == "x");      // both: the one that begins first
    CHECK(filtered(stop_text_filter({"ab", "abc"}), "xabcd", 5) == "x");
    CHECK(filtered(stop_text_filter({"ab"}, true), "xabcd", 1) == "xab");
    CHECK(filtered(stop_text_filter({"", "é"}), "caf\xc3\xa9!", 1) == "caf");  // "" stops nothing
    CHECK(filtered(stop_text_filter({}), "all", 1) == "all");
}

TEST_CASE("however the text is cut, what comes before the stop string is given out, and nothing of it") {
    text_generator random(pool(), 9);
    for (int round = 0; round < 3000; ++round) {
        std::string text, stop;
        for (std::uint64_t n = random.below(20); n > 0; --n) text += static_cast<char>('a' + random.below(2));
        for (std::uint64_t n = 1 + random.below(4); n > 0; --n) stop += static_cast<char>('a' + random.below(2));
        const auto at = text.find(stop);
        CHECK(filtered(stop_text_filter({stop}), text, 1 + random.below(5)) == text.substr(0, at));
    }
}
