// Byte pair merging against the plain definition, and what a vocabulary must be to merge by.
#include <doctest/doctest.h>

#include <algorithm>

#include "frontend/tokenizer/tokenizer.hpp"
#include "tests/frontend/tokenizer_support.hpp"

using namespace fermata;
using namespace fermata::text;
using namespace tokenizer_support;

namespace {

// The definition: again and again the pair of the lowest rank, the leftmost of these, until there is none.
std::vector<token_id> merged_by_definition(const vocabulary_description& v, std::string_view piece) {
    std::vector<std::string> parts;
    for (const char byte : piece) parts.push_back(bytes_to_alphabet(std::string(1, byte)));
    for (;;) {
        std::size_t best = parts.size(), best_rank = v.merges.size();
        for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
            for (std::size_t rank = 0; rank < best_rank; ++rank) {
                if (v.merges[rank] != parts[i] + " " + parts[i + 1]) continue;
                best = i;
                best_rank = rank;
            }
        }
        if (best == parts.size()) break;
        parts[best] += parts[best + 1];
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    std::vector<token_id> ids;
    for (const auto& part : parts) {
        ids.push_back(static_cast<token_id>(std::find(v.tokens.begin(), v.tokens.end(), part) - v.tokens.begin()));
    }
    return ids;
}

using pairs = std::vector<std::pair<std::string, std::string>>;

}  // namespace

TEST_CASE("lowest rank first, leftmost among equals") {
    const auto words = tokenizer::from_vocabulary(small_vocabulary("gpt-2", {{"a", "a"}, {"a", "b"}, {"aa", "ab"}}));
    CHECK(words->encode("aaa") == std::vector<token_id>{256, 'a'});
    CHECK(words->encode("aab") == std::vector<token_id>{256, 'b'});    // "a a" before "a b"
    CHECK(words->encode("aaab") == std::vector<token_id>{258});        // aa, then ab, then both
    CHECK(words->encode("aaaa") == std::vector<token_id>{256, 256});
}

TEST_CASE("any text is merged as the definition says, short and long") {
    text_generator random(pool(), 3);
    for (int round = 0; round < 60; ++round) {
        // Merges over three letters, each joining tokens that are there already.
        pairs merges;
        std::vector<std::string> known{"a", "b", "c"};
        for (int i = 0; i < 12; ++i) {
            const std::string left = known[random.below(known.size())], right = known[random.below(known.size())];
            if (std::find(known.begin(), known.end(), left + right) != known.end()) continue;
            merges.emplace_back(left, right);
            known.push_back(left + right);
        }
        const auto v = small_vocabulary("gpt-2", merges);
        const auto words = tokenizer::from_vocabulary(v);
        for (const std::size_t most : {8u, 39u, 45u, 200u}) {
            std::string text;
            for (std::uint64_t n = 1 + random.below(most); n > 0; --n) text += static_cast<char>('a' + random.below(3));
            INFO(text);
            REQUIRE(words->encode(text) == merged_by_definition(v, text));
        }
    }
}

TEST_CASE("a whole piece is one token without merging in llama-bpe, and only there") {
    auto v = small_vocabulary("llama-bpe", {{"a", "b"}, {"b", "c"}});
    v.tokens.push_back("abc");  // no merge leads to it
    v.types.push_back(token_type::normal);
    CHECK(tokenizer::from_vocabulary(v)->encode("abc") == std::vector<token_id>{258});
    CHECK(tokenizer::from_vocabulary(v)->encode("abcabc") == std::vector<token_id>{256, 'c', 256, 'c'});
    v.pre_tokenizer = "qwen2";
    CHECK(tokenizer::from_vocabulary(v)->encode("abc") == std::vector<token_id>{256, 'c'});
}

TEST_CASE("every byte string comes back as it was, and offsets tile it") {
    const auto words = tokenizer::from_vocabulary(read_vocabulary(fixtures() + "gpt-2.vocabulary"));
    text_generator random(pool(), 11);
    for (int round = 0; round < 500; ++round) {
        std::string bytes = random.below(2) == 0 ? random.text() : std::string();
        for (std::uint64_t n = random.below(60); n > 0; --n) {
            bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(random.below(bytes.size() + 1)),
                         static_cast<char>(random.below(256)));
        }
        const auto ids = words->encode(bytes);
        REQUIRE(words->decode(ids) == bytes);
        std::size_t at = 0, i = 0;
        for (const token_span& span : words->encode_with_offsets(bytes)) {
            REQUIRE(span.id == ids[i++]);
            REQUIRE(span.begin == at);
            REQUIRE(words->token_bytes(span.id) == std::string_view(bytes).substr(at, span.end - at));
            at = span.end;
        }
        REQUIRE(at == bytes.size());
    }
}

TEST_CASE("a byte without a token is left out, as the reference does, and the offsets say so") {
    auto v = small_vocabulary("gpt-2");
    v.tokens['b'] = "bbbbb";
    const auto words = tokenizer::from_vocabulary(v);
    CHECK(words->encode("abc") == std::vector<token_id>{'a', 'c'});
    const auto spans = words->encode_with_offsets("babcb");
    REQUIRE(spans.size() == 2);
    CHECK(spans[0].begin == 0);  // "ba" gave the a
    CHECK(spans[0].end == 3);
    CHECK(spans[1].begin == 3);
    CHECK(spans[1].end == 5);
    CHECK(words->encode("bb").empty());
}

TEST_CASE("control tokens only on demand, user-defined ones always, the longest first") {
    auto v = small_vocabulary("gpt-2");
    const token_id end = add_token(v, "<|im_end|>", token_type::control);
    const token_id tool = add_token(v, "<tool>", token_type::user_defined);
    const token_id longer = add_token(v, "<tool>!", token_type::user_defined);
    v.bos = end;
    v.add_bos = true;
    const auto words = tokenizer::from_vocabulary(v);
    CHECK(words->encode("a<|im_end|>").size() == 11);
    CHECK(words->encode("a<|im_end|>", {.parse_special = true}) == std::vector<token_id>{'a', end});
    CHECK(words->encode("<tool><tool>!") == std::vector<token_id>{tool, longer});
    CHECK(words->encode("a", {.add_special = true}) == std::vector<token_id>{end, 'a'});
    CHECK(words->encode("a") == std::vector<token_id>{'a'});
    CHECK(words->is_special(end));
    CHECK(!words->is_special(tool));
    CHECK(std::ranges::count(words->end_of_generation(), end) == 1);  // by its name
    CHECK(words->decode(std::vector<token_id>{end, 'a', tool}) == "a<tool>");
    CHECK(words->decode(std::vector<token_id>{end, 'a'}, true) == "<|im_end|>a");
    CHECK(words->find("<|im_end|>") == end);
    CHECK(words->find("a") == 'a');
    CHECK(words->find("no such") == no_token);
}

TEST_CASE("user-defined tokens are literal, whatever letters of the byte alphabet they have") {
    auto v = small_vocabulary("deepseek-coder");
    const token_id accent = add_token(v, "õ", token_type::user_defined);  // also the alphabet's letter for byte F5
    const auto words = tokenizer::from_vocabulary(v);
    CHECK(words->encode("õ") == std::vector<token_id>{accent});
    CHECK(words->token_bytes(accent) == "õ");
    CHECK(words->decode(words->encode("\xf5õ")) == "\xf5õ");
}

TEST_CASE("rows that only pad a vocabulary are no tokens") {
    auto v = small_vocabulary("qwen2");
    const token_id pad = add_token(v, "[PAD256]", token_type::user_defined);
    const token_id unused = add_token(v, "gone", token_type::unused);
    const auto words = tokenizer::from_vocabulary(v);
    CHECK(words->vocabulary_size() == 258);
    CHECK(words->encode("[PAD256]").size() == 8);
    for (const token_id id : {pad, unused}) {
        CHECK(!words->has_token(id));
        CHECK(words->token_bytes(id).empty());
    }
    CHECK(words->has_token('a'));
    CHECK(!words->has_token(258));
    CHECK_THROWS_WITH_AS(words->token_bytes(258), "token id 258 is outside the vocabulary of 258 tokens", tokenizer_error);
}

TEST_CASE("qwen2 and command-r compose characters first; offsets are those of the text as given") {
    const auto words = tokenizer::from_vocabulary(small_vocabulary("qwen2"));
    const std::string given = "xe\u0301y";
    CHECK(words->decode(words->encode(given)) == "x\u00e9y");
    const auto spans = words->encode_with_offsets(given);
    REQUIRE(spans.size() == 4);
    CHECK(spans[1].begin == 1);
    CHECK(spans[2].end == 4);
    CHECK(spans[3].begin == 4);
    CHECK(spans[3].end == 5);
}

TEST_CASE("broken vocabularies are refused with the place") {
    const auto refuses = [](const vocabulary_description& v, const char* message) {
        CHECK_THROWS_WITH_AS(tokenizer::from_vocabulary(v), message, tokenizer_error);
    };
    auto v = small_vocabulary("gpt-2", {{"a", "b"}});
    v.merges.push_back("ab zz");
    refuses(v, "tokenizer.ggml.merges[1] speaks of 'zz', which is no token");
    v.merges[1] = "a c";
    refuses(v, "tokenizer.ggml.merges[1] speaks of 'ac', which is no token");
    v.merges[1] = "word";
    refuses(v, "tokenizer.ggml.merges[1] is 'word', not two tokens with a space between");
    v.merges[1] = "";
    refuses(v, "tokenizer.ggml.merges[1] is '', not two tokens with a space between");
    v.merges.pop_back();
    v.types.pop_back();
    refuses(v, "tokenizer.ggml.token_type has 256 entries for 257 tokens");
    v = small_vocabulary("gpt-2");
    v.eos = 256;
    refuses(v, "tokenizer.ggml.eos_token_id is 256, but there are 256 tokens");
    v.eos = no_token;
    v.add_eos = true;
    refuses(v, "tokenizer.ggml.add_eos_token is set without eos_token_id");
    v = {};
    v.model = "gpt2";
    v.pre_tokenizer = "gpt-2";
    refuses(v, "tokenizer.ggml.tokens is empty");
    v.model = "";
    refuses(v, "the file states no kind of tokenizer (tokenizer.ggml.model)");
}

TEST_CASE("vocabularies that are no byte-level BPE are refused by name") {
    auto v = small_vocabulary("default");
    CHECK_THROWS_AS(tokenizer::from_vocabulary(v), unsupported_tokenizer);
    v.model = "llama";
    CHECK_THROWS_WITH_AS(tokenizer::from_vocabulary(v),
                         "tokenizer 'llama' (SentencePiece) is not supported; only byte-level BPE (tokenizer.ggml.model = "
                         "gpt2) is",
                         unsupported_tokenizer);
    v.model = "t5";
    CHECK_THROWS_AS(tokenizer::from_vocabulary(v), unsupported_tokenizer);
    v.model = "bert";
    CHECK_THROWS_AS(tokenizer::from_vocabulary(v), unsupported_tokenizer);
}

TEST_CASE("an answer ends with what the file states and with added tokens of a known name") {
    const auto ends_of = [](const vocabulary_description& v) {
        const auto words = tokenizer::from_vocabulary(v);
        const auto ends = words->end_of_generation();
        return std::vector<token_id>(ends.begin(), ends.end());
    };
    auto v = small_vocabulary("gpt-2");
    const token_id stated = v.eos = 'e';
    const token_id plain = add_token(v, "<EOT>", token_type::normal);  // plain text of the model
    const token_id control = add_token(v, "<|eot_id|>", token_type::control);
    const token_id user = add_token(v, "<end_of_turn>", token_type::user_defined);
    CHECK(ends_of(v) == std::vector<token_id>{stated, control, user});
    v.eot = plain;
    CHECK(ends_of(v) == std::vector<token_id>{stated, plain, control, user});

    // One answer of several messages: <|end|> closes one of them only - unless the file says otherwise.
    auto many = small_vocabulary("gpt-2");
    many.eos = 'e';
    const token_id end = add_token(many, "<|end|>", token_type::control);
    CHECK(ends_of(many) == std::vector<token_id>{many.eos, end});
    const token_id returns = add_token(many, "<|return|>", token_type::control);
    CHECK(ends_of(many) == std::vector<token_id>{many.eos, end, returns});
    const token_id calls = add_token(many, "<|call|>", token_type::control);
    CHECK(ends_of(many) == std::vector<token_id>{many.eos, returns, calls});
    many.end_of_generation = {end};
    CHECK(ends_of(many) == std::vector<token_id>{many.eos, end, returns, calls});
}
