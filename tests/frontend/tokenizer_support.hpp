// For the tests of tokenizers: vocabularies from tests/frontend/fixtures/tokenizer (written by
// tools/fixtures/tokenizer_fixtures.py, which describes the format), and the generator of texts that the same
// script has, so that ten thousand texts need no file.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/tokenizer/byte_alphabet.hpp"
#include "frontend/tokenizer/tokenizer.hpp"
#include "frontend/tokenizer/unicode.hpp"
#include "messages/vocabulary.hpp"

namespace tokenizer_support {

inline std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + path);
    return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string fixtures() {
    return std::string(FERMATA_SOURCE_DIR) + "/tests/frontend/fixtures/tokenizer/";
}

class byte_reader {
public:
    explicit byte_reader(std::string data) : data_(std::move(data)) {}
    std::string_view take(std::size_t n) {
        if (data_.size() - at_ < n) throw std::runtime_error("the fixture ends early");
        at_ += n;
        return std::string_view(data_).substr(at_ - n, n);
    }
    std::uint8_t byte() { return static_cast<std::uint8_t>(take(1)[0]); }
    std::int32_t int32() {
        std::uint32_t n = 0;
        for (int shift = 0; shift < 32; shift += 8) n |= std::uint32_t{byte()} << shift;
        return static_cast<std::int32_t>(n);
    }
    std::size_t varint() {
        std::size_t n = 0;
        for (int shift = 0;; shift += 7) {
            const std::uint8_t b = byte();
            n |= std::size_t{b & 0x7Fu} << shift;
            if (b < 0x80) return n;
        }
    }

private:
    std::string data_;
    std::size_t at_ = 0;
};

inline fermata::vocabulary_description read_vocabulary(const std::string& path) {
    byte_reader in(read_file(path));
    if (in.take(21) != "fermata vocabulary 1\n") throw std::runtime_error(path + " is no vocabulary");
    fermata::vocabulary_description v;
    v.model = "gpt2";
    v.bos = in.int32();
    v.eos = in.int32();
    v.eot = in.int32();
    v.unknown = in.int32();
    v.padding = in.int32();
    v.add_bos = in.byte() != 0;
    v.add_eos = in.byte() != 0;
    v.pre_tokenizer = in.take(in.varint());
    v.tokens.resize(in.varint());
    v.types.assign(v.tokens.size(), fermata::token_type::normal);
    std::vector<bool> written(v.tokens.size(), false);
    std::size_t id = 0;
    for (std::size_t left = in.varint(); left > 0; --left, ++id) {
        id += in.varint();
        v.types.at(id) = static_cast<fermata::token_type>(in.byte());
        v.tokens.at(id) = in.take(in.varint());
        written.at(id) = true;
    }
    std::size_t next = 0;
    for (std::size_t left = in.varint(); left > 0; --left) {
        const std::size_t a = in.varint(), b = in.varint();
        const std::string& first = v.tokens.at(a / 2);
        const std::string& second = v.tokens.at(b);
        v.merges.push_back(first + " " + second);
        if ((a & 1) != 0) {
            in.varint();
            continue;
        }
        while (written.at(next)) ++next;
        v.tokens[next] = first + second;
        written[next] = true;
    }
    return v;
}

// A vocabulary of the 256 bytes (id = byte) and the given merges of byte strings, in order.
inline fermata::vocabulary_description small_vocabulary(
    const std::string& kind, const std::vector<std::pair<std::string, std::string>>& merges = {}) {
    fermata::vocabulary_description v;
    v.model = "gpt2";
    v.pre_tokenizer = kind;
    for (int byte = 0; byte < 256; ++byte) {
        v.tokens.push_back(fermata::text::bytes_to_alphabet(std::string(1, static_cast<char>(byte))));
    }
    for (const auto& [left, right] : merges) {
        const std::string a = fermata::text::bytes_to_alphabet(left),
                          b = fermata::text::bytes_to_alphabet(right);
        v.merges.push_back(a + " " + b);
        v.tokens.push_back(a + b);
    }
    v.types.assign(v.tokens.size(), fermata::token_type::normal);
    return v;
}

inline fermata::token_id add_token(fermata::vocabulary_description& v, const std::string& text,
                                   fermata::token_type type) {
    v.tokens.push_back(text);
    v.types.push_back(type);
    return static_cast<fermata::token_id>(v.tokens.size() - 1);
}

// What texts are made of; pool.json, laid out for drawing from it.
struct text_pool {
    struct group {
        struct range {
            std::uint64_t first, count;
        };
        std::vector<range> ranges;
        std::uint64_t total = 0;
    };
    std::vector<std::string> words, spaces, marks;
    std::vector<group> code_points;

    explicit text_pool(const nlohmann::json& file)
        : words(file.at("words").get<std::vector<std::string>>()),
          spaces(file.at("spaces").get<std::vector<std::string>>()),
          marks(file.at("marks").get<std::vector<std::string>>()) {
        for (const auto& ranges : file.at("code_points")) {
            group& g = code_points.emplace_back();
            for (const auto& range : ranges) {
                const auto first = range.at(0).get<std::uint64_t>(), last = range.at(1).get<std::uint64_t>();
                g.ranges.push_back({first, last - first + 1});
                g.total += last - first + 1;
            }
        }
    }
};

class text_generator {
public:
    text_generator(const text_pool& pool, std::uint64_t seed) : pool_(pool), state_(seed) {}

    std::uint64_t next() {
        state_ += 0x9E3779B97F4A7C15u;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
    std::uint64_t below(std::uint64_t n) { return next() % n; }

    // The order of draws is that of the script, part by part.
    std::string text() {
        std::string out;
        const std::uint64_t mode = below(7);
        for (std::uint64_t parts = 1 + below(30); parts > 0; --parts) part(mode < 6 ? mode : below(6), out);
        return out;
    }

private:
    const std::string& pick(const std::vector<std::string>& items) { return items[below(items.size())]; }
    const text_pool::group& pick_group() { return pool_.code_points[below(pool_.code_points.size())]; }
    void code_point(const text_pool::group& group, std::string& out) {
        std::uint64_t n = below(group.total);
        for (const auto& range : group.ranges) {
            if (n < range.count)
                return fermata::text::append_utf8(out, static_cast<char32_t>(range.first + n));
            n -= range.count;
        }
    }
    static std::string times(const std::string& s, std::uint64_t n) {
        std::string out;
        for (; n > 0; --n) out += s;
        return out;
    }

    void part(std::uint64_t how, std::string& out) {
        if (how == 0) {
            out += pick(pool_.words);
            out += pick(pool_.spaces);
        } else if (how == 1) {
            code_point(pick_group(), out);
        } else if (how == 2) {
            out += pick(pool_.spaces);
            const std::string mark = pick(pool_.marks);
            out += times(mark, 1 + below(4));
            out += pick(pool_.words);
        } else if (how == 3) {
            out += pick(pool_.spaces);
            std::uint64_t limit = 1;
            for (std::uint64_t digits = 1 + below(9); digits > 0; --digits) limit *= 10;
            out += std::to_string(below(limit));
        } else if (how == 4) {
            const auto& group = pick_group();
            for (std::uint64_t n = 1 + below(6); n > 0; --n) code_point(group, out);
        } else {
            const std::string space = pick(pool_.spaces);
            out += times(space, 1 + below(5));
            out += pick(pool_.words);
        }
    }

    const text_pool& pool_;
    std::uint64_t state_;
};

inline const text_pool& pool() {
    static const text_pool value(nlohmann::json::parse(read_file(fixtures() + "pool.json")));
    return value;
}

// The script's digest of rows of ids.
class row_digest {
public:
    void add(const std::vector<fermata::token_id>& ids) {
        mix(ids.size());
        for (const auto id : ids) mix(static_cast<std::uint64_t>(id));
    }
    std::string hex() const {
        static constexpr char digits[] = "0123456789abcdef";
        std::string out;
        for (int shift = 60; shift >= 0; shift -= 4) out.push_back(digits[(value_ >> shift) & 15]);
        return out;
    }

private:
    void mix(std::uint64_t n) { value_ = (value_ ^ n) * 0x100000001B3u; }
    std::uint64_t value_ = 0xCBF29CE484222325u;
};

// One round of a kind's expectations: `strings` generated texts, whose ids are compared through digests of
// `block` texts.
inline void check_round(const fermata::text::tokenizer& words, const nlohmann::json& round,
                        std::size_t strings, std::size_t block, bool special) {
    text_generator texts(pool(), round.at("seed").get<std::uint64_t>());
    const auto& samples = round.at("samples");
    const auto& blocks = round.at("blocks");
    REQUIRE(blocks.size() * block == strings);
    row_digest digest;
    for (std::size_t i = 0; i < strings; ++i) {
        const std::string text = texts.text();
        const auto ids = words.encode(text, {special, false});
        if (i < samples.size()) {
            INFO("text " << i << ": " << text);
            REQUIRE(ids == samples[i].get<std::vector<fermata::token_id>>());
        }
        digest.add(ids);
        if ((i + 1) % block != 0) continue;
        INFO("texts " << i + 1 - block << " to " << i << (special ? " with special tokens" : ""));
        CHECK(digest.hex() == blocks[i / block].get<std::string>());
        digest = {};
    }
}

}  // namespace tokenizer_support
