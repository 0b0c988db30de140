// Where each kind cuts text, by hand from its regular expression. "|" stands between pieces.
#include <doctest/doctest.h>

#include "frontend/tokenizer/kinds.hpp"
#include "frontend/tokenizer/splitting.hpp"
#include "frontend/tokenizer/tokenizer.hpp"

using namespace fermata::text;

namespace {

std::string joined(std::string_view text, const splitter& rules) {
    std::vector<piece> pieces, scratch;
    rules.split(text, pieces, scratch);
    std::string out;
    for (const piece& p : pieces) {
        if (!out.empty()) out += "|";
        out += text.substr(p.begin, p.end - p.begin);
    }
    return out;
}

std::string cut(std::string_view kind, std::string_view text) { return joined(text, kind_of_tokenizer(kind).split); }

std::string cut(split_step_pointer step, std::string_view text) { return joined(text, splitter({std::move(step)})); }

}  // namespace

TEST_CASE("gpt-2: contractions in lower case, one space before words, the last space with what follows") {
    CHECK(cut("gpt-2", "Hello world") == "Hello| world");
    CHECK(cut("gpt-2", "don't DON'T we'll've") == "don|'t| DON|'|T| we|'ll|'ve");
    CHECK(cut("gpt-2", "a  b   c") == "a| | b|  | c");
    CHECK(cut("gpt-2", "a \n b\n\n") == "a| \n| b|\n\n");
    CHECK(cut("gpt-2", "x \t") == "x| \t");
    CHECK(cut("gpt-2", "12345 ½ Ⅷ") == "12345| ½| Ⅷ");
    CHECK(cut("gpt-2", "f(x)!!") == "f|(|x|)!!");
    CHECK(cut("gpt-2", " !? ?") == " !?| ?");
    CHECK(cut("gpt-2", "a\u00a0b") == "a|\u00a0|b");  // a space, but not U+0020
    CHECK(cut("gpt-2", "e\u0301x") == "e|\u0301|x");  // a mark is no letter
    CHECK(cut("gpt-2", "'") == "'");
    CHECK(cut("gpt-2", "'r 're") == "'|r| '|re");  // a space before takes the apostrophe as punctuation
    CHECK(cut("gpt-2", "") == "");
}

TEST_CASE("smollm, starcoder, refact and command-r: every digit by itself, then as gpt-2") {
    for (const char* kind : {"smollm", "starcoder", "refact", "command-r"}) {
        CHECK(cut(kind, "in 2024: a1b") == "in| |2|0|2|4|:| a|1|b");
        CHECK(cut(kind, "½Ⅷ٣") == "½|Ⅷ|٣");
    }
}

TEST_CASE("llama-bpe: contractions in any case, a leading character, three digits, newlines kept") {
    CHECK(cut("llama-bpe", "DON'T she'Ll") == "DON|'T| she|'Ll");
    CHECK(cut("llama-bpe", "it'\u017f") == "it|'\u017f");  // whose capital is S
    CHECK(cut("llama-bpe", "1234567") == "123|456|7");
    CHECK(cut("llama-bpe", "(word)_x\t y") == "(word|)_|x|\t| y");
    CHECK(cut("llama-bpe", "end.\n\nNew") == "end|.\n\n|New");
    CHECK(cut("llama-bpe", "a  \n  b") == "a|  \n| | b");
    CHECK(cut("llama-bpe", "a\n\n\n") == "a|\n\n\n");
    CHECK(cut("llama-bpe", "a   ") == "a|   ");
    CHECK(cut("llama-bpe", " 12") == " |12");
    CHECK(cut("llama-bpe", " ...\r\n") == " ...\r\n");
    CHECK(cut("llama-bpe", "e\u0301x") == "e|\u0301x");  // the mark leads the letters after it
}

TEST_CASE("qwen2: as llama-bpe with single digits; qwen35: marks are letters") {
    CHECK(cut("qwen2", "x 123") == "x| |1|2|3");
    CHECK(cut("qwen2", "नमस्ते") == "नमस|्त|े");
    CHECK(cut("qwen35", "नमस्ते 12") == "नमस्ते| |1|2");
    CHECK(cut("qwen35", "!\u0301a") == "!\u0301a");
    CHECK(cut("qwen35", "\u0301\u0301") == "\u0301\u0301");
}

TEST_CASE("deepseek-llm and deepseek-coder: newlines, words, punctuation, ideographs, digits apart") {
    CHECK(cut("deepseek-coder", "if (x1):\n\n  y") == "if| (|x|1|):|\n|\n| | y");
    CHECK(cut("deepseek-coder", "a$b 中文字 12") == "a|$|b| |中文字| |1|2");
    CHECK(cut("deepseek-llm", "Hello, мир! 中文") == "Hello|,| мир|!| |中文");
    CHECK(cut("deepseek-llm", "a   ") == "a|   ");
    CHECK(cut("deepseek-llm", "a   b") == "a|  | b");
    CHECK(cut("deepseek-llm", "日本語 テスト") == "日本語| |テスト");
}

TEST_CASE("names that mean another kind, and names that mean none") {
    CHECK(kind_of_tokenizer("lfm2").family == "llama-bpe");
    CHECK(kind_of_tokenizer("llama3").ignore_merges);
    CHECK(kind_of_tokenizer("deepseek-r1-qwen").family == "qwen2");
    CHECK(kind_of_tokenizer("megrez").family == "qwen2");
    CHECK(kind_of_tokenizer("phi-2").family == "gpt-2");
    CHECK_THROWS_WITH_AS(
        kind_of_tokenizer("tekken"),
        "tokenizer kind 'tekken' is not supported; supported: llama-bpe gpt-2 smollm starcoder refact command-r qwen2 "
        "qwen35 deepseek-llm deepseek-coder",
        unsupported_tokenizer);
    CHECK_THROWS_AS(kind_of_tokenizer(""), unsupported_tokenizer);
}

TEST_CASE("bytes that are no UTF-8 are cut as U+FFFD is, each by itself") {
    CHECK(cut("gpt-2", "a\xff\xfe b\xe4\xb8") == "a|\xff\xfe| b|\xe4\xb8");
    CHECK(cut("gpt-2", "a\ufffdb") == "a|\ufffd|b");
    CHECK(cut("llama-bpe", "\xffword") == "\xffword");
    CHECK(cut(split_regex("[a\ufffd]+", delimiter::isolated, false), "b\xff\xe4x") == "b|\xff\xe4|x");
}

TEST_CASE("what becomes of a delimiter, as in the library's documentation") {
    const auto on_dash = [](delimiter what) { return cut(split_literal("-", what, false), "the-final--countdown"); };
    CHECK(on_dash(delimiter::removed) == "the|final|countdown");
    CHECK(on_dash(delimiter::isolated) == "the|-|final|-|-|countdown");
    CHECK(on_dash(delimiter::merged_with_previous) == "the-|final-|-|countdown");
    CHECK(on_dash(delimiter::merged_with_next) == "the|-final|-|-countdown");
    CHECK(on_dash(delimiter::contiguous) == "the|-|final|--|countdown");
    CHECK(cut(split_literal("-", delimiter::removed, true), "the-final") == "-");
}

TEST_CASE("regular expressions other than the known ones") {
    const auto isolated = [](std::string_view expression, std::string_view text) {
        return cut(split_regex(expression, delimiter::isolated, false), text);
    };
    CHECK(isolated(R"(\d+)", "ab12cd3") == "ab|12|cd|3");
    CHECK(isolated(R"((?i:K))", "k\u212aK") == "k|\u212a|K");
    CHECK(isolated(R"(\s)", "a\u180eb\u0085c") == "a\u180eb|\u0085|c");  // U+180E is no space
    CHECK(isolated(R"([^\S\n]+)", "a \n\tb") == "a| |\n|\t|b");
    CHECK(isolated(R"(\p{Han}+)", "a漢字b") == "a|漢字|b");
    CHECK(isolated(R"(x$)", "x\nx") == "x|\n|x");
    CHECK(isolated(R"(\w+)", "e\u0301_1!") == "e\u0301_1|!");
    CHECK(isolated(R"(\b)", "ab cd") == "ab| |cd");
    CHECK(isolated(R"(\s+$)", "a \n b  ") == "a| |\n b|  ");
    CHECK_THROWS_AS(split_regex("[a&&b]", delimiter::isolated, false), unsupported_tokenizer);
    CHECK_THROWS_AS(split_regex("[a[bc]]", delimiter::isolated, false), unsupported_tokenizer);
    CHECK_THROWS_AS(split_regex("(?m:.)", delimiter::isolated, false), unsupported_tokenizer);
    CHECK_THROWS_AS(split_regex("(", delimiter::isolated, false), tokenizer_error);
}

TEST_CASE("a megabyte of one character is no hard text for PCRE2 either") {
    const std::string expression = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}]*[\p{Ll}\p{Lm}]+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    const splitter rules({split_regex(expression, delimiter::isolated, false)});
    std::vector<piece> pieces, scratch;
    for (const char c : {'a', ' ', '1', '!', '\n'}) {
        rules.split(std::string(1'000'000, c), pieces, scratch);
        CHECK(pieces.back().end == 1'000'000);
    }
    // Groups that are repeated need memory for every round: the interpreter takes over from the JIT.
    const splitter groups({split_regex(R"((?:a|b)+)", delimiter::isolated, false)});
    groups.split(std::string(1'000'000, 'a'), pieces, scratch);
    CHECK(pieces.size() == 1);
}
