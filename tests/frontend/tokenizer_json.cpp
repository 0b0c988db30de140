// tokenizer.json and the files beside it: the pipeline's parts, and hostile files. The expected ids of pipelines are
// by hand from the documented behaviour of `tokenizers`.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "frontend/tokenizer/tokenizer.hpp"
#include "tests/frontend/tokenizer_support.hpp"

using namespace fermata;
using namespace fermata::text;
using namespace tokenizer_support;
using nlohmann::json;

namespace {

// The 256 bytes (id = byte), then "ab" (256) and "abc" (257), made by two merges.
json small_file() {
    json vocab = json::object();
    for (int byte = 0; byte < 256; ++byte) vocab[bytes_to_alphabet(std::string(1, static_cast<char>(byte)))] = byte;
    vocab["ab"] = 256;
    vocab["abc"] = 257;
    return {{"version", "1.0"},
            {"added_tokens", json::array()},
            {"normalizer", nullptr},
            {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
            {"post_processor", nullptr},
            {"decoder", {{"type", "ByteLevel"}}},
            {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", json::array({"a b", json::array({"ab", "c"})})}}}};
}

std::shared_ptr<const tokenizer> made(const json& file) { return tokenizer::from_tokenizer_json(file.dump()); }

using ids = std::vector<token_id>;

ids bytes_of(std::string_view text) {
    ids out;
    for (const char byte : text) out.push_back(static_cast<unsigned char>(byte));
    return out;
}

json added(int id, const std::string& content, json flags = json::object()) {
    json token{{"id", id}, {"content", content}, {"special", false}, {"normalized", false}};
    token.update(flags);
    return token;
}

void refuses(const json& file, const char* message) {
    CHECK_THROWS_WITH_AS(made(file), message, tokenizer_error);
}

}  // namespace

TEST_CASE("merges as strings and as pairs") {
    const auto words = made(small_file());
    CHECK(words->encode("abcab") == ids{257, 256});
    CHECK(words->kind() == "tokenizer.json");
    CHECK(words->vocabulary_size() == 258);
    CHECK(words->decode(ids{257, 256}) == "abcab");
}

TEST_CASE("normalizers, one after the other") {
    json file = small_file();
    const auto normalized = [&](json normalizer, std::string_view text) {
        file["normalizer"] = std::move(normalizer);
        const auto words = made(file);
        return words->decode(words->encode(text));
    };
    const auto of_type = [](const char* type) { return json{{"type", type}}; };
    CHECK(normalized(of_type("NFC"), "e\u0301") == "\u00e9");
    CHECK(normalized(of_type("NFD"), "\u00e9") == "e\u0301");
    CHECK(normalized(of_type("NFKC"), "\ufb01\u2460") == "fi1");
    CHECK(normalized(of_type("NFKD"), "\u00e9\ufb01") == "e\u0301fi");
    CHECK(normalized(of_type("Lowercase"), "ÀB\u0130") == "àbi\u0307");
    CHECK(normalized(of_type("StripAccents"), "e\u0301x") == "ex");
    CHECK(normalized({{"type", "Prepend"}, {"prepend", "> "}}, "x") == "> x");
    CHECK(normalized({{"type", "Strip"}, {"strip_left", true}, {"strip_right", false}}, "\u3000 x ") == "x ");
    CHECK(normalized({{"type", "Replace"}, {"pattern", {{"String", "aa"}}}, {"content", "b"}}, "aaa") == "ba");
    CHECK(normalized({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}}, "x   y") == "x y");
    CHECK(normalized({{"type", "Sequence"}, {"normalizers", {of_type("NFD"), of_type("StripAccents")}}}, "\u00e9") == "e");
    CHECK(normalized(of_type("NFC"), "a\xff" "e\u0301\xcc") == "a\xff\u00e9\xcc");  // stray bytes stay
    CHECK(normalized(of_type("NFC"), "\u1100\u1161\u11a8") == "\uac01");            // Hangul
    CHECK(normalized(of_type("NFC"), "a\u0301\u0316") == "\u00e1\u0316");           // reordered, then composed
    file["normalizer"] = of_type("Precompiled");
    refuses(file, "tokenizer.json: normalizer: normalizer 'Precompiled' is not supported");
}

TEST_CASE("offsets are those of the text before normalizing") {
    json file = small_file();
    file["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", "--"}}}, {"content", "abc"}};
    const auto spans = made(file)->encode_with_offsets("x--y");
    REQUIRE(spans.size() == 3);
    CHECK(spans[1].id == 257);
    CHECK(spans[1].begin == 1);
    CHECK(spans[1].end == 3);
    CHECK(spans[2].begin == 3);
}

TEST_CASE("pre_tokenizers in a row; a space before each piece if asked") {
    json file = small_file();
    file["pre_tokenizer"] = {{"type", "Sequence"},
                             {"pretokenizers",
                              {{{"type", "Split"}, {"pattern", {{"String", "b"}}}, {"behavior", "MergedWithNext"}, {"invert", false}},
                               {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", false}}}}};
    CHECK(made(file)->encode("abc") == bytes_of(" a bc"));
    CHECK(made(file)->encode(" ab") == bytes_of(" a b"));
    const auto spans = made(file)->encode_with_offsets("ab");
    REQUIRE(spans.size() == 4);
    CHECK(spans[0].begin == 0);
    CHECK(spans[0].end == 0);  // the space that was put there stands for nothing
    CHECK(spans[3].begin == 1);
    CHECK(spans[3].end == 2);
    file["pre_tokenizer"]["pretokenizers"][0] = {{"type", "Digits"}, {"individual_digits", false}};
    CHECK(made(file)->encode("ab12") == ids{' ', 256, ' ', '1', '2'});
    file["pre_tokenizer"]["pretokenizers"][0] = {{"type", "WhitespaceSplit"}};
    CHECK(made(file)->encode("ab  c") == ids{' ', 256, ' ', 'c'});
}

TEST_CASE("added tokens: flags as `tokenizers` reads them") {
    json file = small_file();
    file["added_tokens"] = {added(258, "<x>", {{"special", true}}), added(259, "<l>", {{"lstrip", true}}),
                            added(260, "<r>", {{"rstrip", true}}), added(261, "ca", {{"single_word", true}})};
    const auto words = made(file);
    CHECK(words->encode("a<x>", {.parse_special = true}) == ids{'a', 258});
    CHECK(words->encode("<x>") == bytes_of("<x>"));
    CHECK(words->encode("a \t<l>b") == ids{'a', 259, 'b'});
    CHECK(words->encode("a<r> \nb") == ids{'a', 260, 'b'});
    CHECK(words->encode("ca scary ca.") == ids{261, ' ', 's', 'c', 'a', 'r', 'y', ' ', 261, '.'});
    CHECK(words->is_special(258));
    CHECK(!words->is_special(259));
    const auto spans = words->encode_with_offsets("a \t<l>b");
    CHECK(spans[1].begin == 1);
    CHECK(spans[1].end == 6);
}

TEST_CASE("normalized added tokens are looked for in normalized text, others before") {
    json file = small_file();
    file["normalizer"] = {{"type", "Lowercase"}};
    file["added_tokens"] = {added(258, "Abc", {{"normalized", true}}), added(259, "ABC")};
    const auto words = made(file);
    CHECK(words->encode("aBC") == ids{258});
    CHECK(words->encode("ABC") == ids{259});
    CHECK(words->decode(ids{258}) == "Abc");
}

TEST_CASE("what is put around a text") {
    json file = small_file();
    file["added_tokens"] = {added(258, "<s>", {{"special", true}}), added(259, "</s>", {{"special", true}})};
    file["post_processor"] = {{"type", "Sequence"},
                              {"processors",
                               {{{"type", "ByteLevel"}},
                                {{"type", "TemplateProcessing"},
                                 {"single", {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
                                 {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {258}}, {"tokens", {"<s>"}}}}}}}}}};
    CHECK(made(file)->encode("a", {.add_special = true}) == ids{258, 'a'});
    CHECK(made(file)->encode("a") == ids{'a'});
    // The configuration decides if it says anything.
    tokenizer_files files;
    const std::string text = file.dump();
    files.tokenizer_json = text;
    files.tokenizer_config_json = R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "add_bos_token": false, "add_eos_token": true})";
    const auto words = tokenizer::from_files(files);
    CHECK(words->encode("a", {.add_special = true}) == ids{'a', 259});
    CHECK(words->bos() == 258);
    CHECK(words->eos() == 259);
    file["post_processor"]["processors"][1]["special_tokens"]["<s>"]["ids"] = {999};
    refuses(file, "tokenizer.json: post_processor.processors[1].special_tokens.<s>.ids[0]: 999 is too large; less than 260 is expected");
}

TEST_CASE("the other files: special tokens, ends, templates") {
    json file = small_file();
    const std::string text = file.dump();
    tokenizer_files files;
    files.tokenizer_json = text;
    files.tokenizer_config_json =
        R"({"eos_token": "<end>", "added_tokens_decoder": {"300": {"content": "<tool>", "special": false}},
            "chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]})";
    files.generation_config_json = R"({"eos_token_id": [97, 300]})";
    auto words = tokenizer::from_files(files);
    CHECK(words->eos() == 301);  // added behind the others
    CHECK(words->encode("<tool>") == ids{300});
    CHECK(!words->has_token(299));
    CHECK(std::vector<token_id>(words->end_of_generation().begin(), words->end_of_generation().end()) == ids{97, 300, 301});
    CHECK(words->chat_template() == "D");
    CHECK(words->chat_templates().size() == 2);
    files.chat_template_jinja = "from the file";
    CHECK(tokenizer::from_files(files)->chat_template() == "from the file");
    files.tokenizer_config_json = "{";
    CHECK_THROWS_WITH_AS(tokenizer::from_files(files), "tokenizer_config.json: line 1, column 2: this is not valid JSON", tokenizer_error);
    files.tokenizer_config_json = R"({"eos_token": 5})";
    CHECK_THROWS_WITH_AS(tokenizer::from_files(files), "tokenizer_config.json: eos_token: a string is expected", tokenizer_error);
    files.tokenizer_config_json = {};
    files.generation_config_json = R"({"eos_token_id": -1})";
    CHECK_THROWS_WITH_AS(tokenizer::from_files(files),
                         "generation_config.json: eos_token_id: a whole number of at least 0 is expected", tokenizer_error);
}

TEST_CASE("ignore_merges, affixes, the unknown token") {
    json file = small_file();
    file["model"]["vocab"]["zz"] = 258;
    CHECK(made(file)->encode("zz") == bytes_of("zz"));
    file["model"]["ignore_merges"] = true;
    CHECK(made(file)->encode("zz") == ids{258});
    file = small_file();
    file["model"]["vocab"].erase("q");
    CHECK(made(file)->encode("aqqb") == ids{256});  // left out: the neighbours meet
    file["model"]["unk_token"] = "z";
    CHECK(made(file)->encode("bqqb") == ids{'b', 'z', 'z', 'b'});
    file["model"]["fuse_unk"] = true;
    CHECK(made(file)->encode("bqqb") == ids{'b', 'z', 'b'});
    file = small_file();
    file["model"]["end_of_word_suffix"] = "</w>";
    file["model"]["vocab"]["c</w>"] = 258;
    file["model"]["vocab"]["abc</w>"] = 259;
    file["model"]["merges"].push_back("ab c</w>");
    CHECK(made(file)->encode("abc") == ids{259});
    CHECK(made(file)->encode("abcc") == ids{257, 258});
}

TEST_CASE("tokenizers that are no byte-level BPE are refused by name") {
    const auto refuses_kind = [](const json& file, const char* message) {
        CHECK_THROWS_WITH_AS(made(file), message, unsupported_tokenizer);
    };
    json file = small_file();
    file["model"]["type"] = "Unigram";
    refuses_kind(file, "tokenizer.json: model.type: tokenizer 'Unigram' is not supported; only byte-level BPE is");
    file = small_file();
    file["model"]["byte_fallback"] = true;
    refuses_kind(file, "tokenizer.json: model.byte_fallback: tokenizer 'BPE with byte fallback' (SentencePiece) is not supported");
    file = small_file();
    file["pre_tokenizer"] = {{"type", "Metaspace"}};
    refuses_kind(file, "tokenizer.json: pre_tokenizer: pre_tokenizer 'Metaspace' is not supported");
    file["pre_tokenizer"] = nullptr;
    refuses_kind(file, "tokenizer.json: pre_tokenizer: there is none; only byte-level BPE is supported");
    file = small_file();
    file["decoder"] = {{"type", "WordPiece"}};
    refuses_kind(file, "tokenizer.json: decoder: decoder 'WordPiece' is not supported; only ByteLevel is");
}

TEST_CASE("hostile files are refused with the place") {
    CHECK_THROWS_WITH_AS(tokenizer::from_tokenizer_json("{\n\"a\": tru}"), "tokenizer.json: line 2, column 9: this is not valid JSON", tokenizer_error);
    CHECK_THROWS_AS(tokenizer::from_tokenizer_json(""), tokenizer_error);
    CHECK_THROWS_AS(tokenizer::from_tokenizer_json("[]"), tokenizer_error);
    CHECK_THROWS_AS(tokenizer::from_tokenizer_json("\"\xff\""), tokenizer_error);
    CHECK_THROWS_WITH_AS(tokenizer::from_tokenizer_json(std::string(1'000'000, '[')), "tokenizer.json: more than 64 levels deep", tokenizer_error);
    json file = small_file();
    file["model"]["vocab"]["far"] = 2'000'000'000;
    refuses(file, "tokenizer.json: model.vocab['far']: 2000000000 is too large; less than 66572 is expected");
    file["model"]["vocab"]["far"] = 257;
    refuses(file, "tokenizer.json: model.vocab['far']: the id 257 belongs to 'abc' too");
    file["model"]["vocab"]["far"] = -1;
    refuses(file, "tokenizer.json: model.vocab['far']: a whole number of at least 0 is expected, not a negative number");
    file["model"]["vocab"]["far"] = "x";
    refuses(file, "tokenizer.json: model.vocab['far']: a whole number of at least 0 is expected, not a string");
    file["model"]["vocab"] = json::array();
    refuses(file, "tokenizer.json: model.vocab: an object of tokens and their ids is expected");
    file = small_file();
    file["model"]["merges"].push_back("abc zz");
    refuses(file, "tokenizer.json: model.merges[2]: 'zz' is no token");
    file["model"]["merges"][2] = "a b c";
    refuses(file, "tokenizer.json: model.merges[2]: two tokens are expected, as a list or with a space between");
    file["model"]["merges"][2] = {"a"};
    refuses(file, "tokenizer.json: model.merges[2]: two tokens are expected, as a list or with a space between");
    file["model"]["merges"][2] = {"a", "b", "c"};
    refuses(file, "tokenizer.json: model.merges[2]: two tokens are expected, as a list or with a space between");
    file["model"]["merges"][2] = {{"a", json::object()}};
    CHECK_THROWS_AS(made(file), tokenizer_error);
    file = small_file();
    file["added_tokens"] = json::array({added(97, "<x>")});
    refuses(file, "tokenizer.json: added_tokens[0]: the id 97 belongs to 'a' too");
    file["added_tokens"] = json::array({added(258, "ab")});
    refuses(file, "tokenizer.json: added_tokens[0]: 'ab' has the id 256 too");
    file["added_tokens"] = json::array({added(1 << 30, "<x>")});
    CHECK_THROWS_AS(made(file), tokenizer_error);
    file = small_file();
    file["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}};
    refuses(file, "tokenizer.json: pre_tokenizer.pattern: broken regular expression, byte 1: missing closing parenthesis");
    file["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"String", "x"}}}, {"behavior", "Sideways"}};
    refuses(file, "tokenizer.json: pre_tokenizer.behavior: behavior 'Sideways' is not supported");
}

TEST_CASE("a real vocabulary gives the same ids from tokenizer.json as from GGUF") {
    const auto vocabulary = read_vocabulary(fixtures() + "qwen2.vocabulary");
    json vocab = json::object(), merges = json::array(), added_list = json::array();
    for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
        if (vocabulary.types[i] == token_type::normal) vocab[vocabulary.tokens[i]] = i;
        if (vocabulary.types[i] == token_type::control) added_list.push_back(added(static_cast<int>(i), vocabulary.tokens[i], {{"special", true}}));
    }
    for (const auto& merge : vocabulary.merges) merges.push_back(merge);
    json file = small_file();
    file["model"] = {{"type", "BPE"}, {"vocab", std::move(vocab)}, {"merges", std::move(merges)}};
    file["added_tokens"] = added_list;
    file["normalizer"] = {{"type", "NFC"}};
    file["pre_tokenizer"] = {
        {"type", "Sequence"},
        {"pretokenizers",
         {{{"type", "Split"},
           {"pattern", {{"Regex", R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}}},
           {"behavior", "Isolated"},
           {"invert", false}},
          {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
    const auto from_json = made(file);
    // The same expression, written so that it is not known: then PCRE2 does the cutting.
    file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] =
        R"((?:(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+))";
    const auto by_pcre2 = made(file);
    const auto from_gguf = tokenizer::from_vocabulary(vocabulary);
    text_generator texts(pool(), 21);
    for (int i = 0; i < 2000; ++i) {
        const std::string text = texts.text();
        INFO(text);
        REQUIRE(from_json->encode(text, {.parse_special = true}) == from_gguf->encode(text, {.parse_special = true}));
        REQUIRE(by_pcre2->encode(text, {.parse_special = true}) == from_gguf->encode(text, {.parse_special = true}));
    }
}
