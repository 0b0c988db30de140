#include "frontend/tokenizer/json_pipeline.hpp"

#include <array>
#include <utility>
#include <vector>

namespace fermata::text {

namespace {

struct named_behaviour {
    std::string_view name;
    delimiter what;
};

constexpr std::array<named_behaviour, 5> behaviours{{
    {"Removed", delimiter::removed},
    {"Isolated", delimiter::isolated},
    {"MergedWithPrevious", delimiter::merged_with_previous},
    {"MergedWithNext", delimiter::merged_with_next},
    {"Contiguous", delimiter::contiguous},
}};

delimiter behaviour_of(const json_place& from) {
    const std::string name = from.text_or("Isolated");
    for (const auto& b : behaviours) {
        if (b.name == name) return b.what;
    }
    from.refuse("behavior '" + shown(name) + "' is not supported");
}

// A pattern is {"String": "..."} or {"Regex": "..."}.
template <class Literal, class Expression>
auto with_pattern(const json_place& from, const Literal& literal, const Expression& expression) {
    try {
        const json_place as_text = from["String"], as_regex = from["Regex"];
        if (!as_text.is_null()) return literal(as_text.text());
        if (!as_regex.is_null()) return expression(as_regex.text());
    } catch (const unsupported_tokenizer& error) {
        from.refuse(error.what());
    } catch (const tokenizer_error& error) {
        from.fail(error.what());
    }
    from.fail("a pattern is {\"String\": ...} or {\"Regex\": ...}");
}

// The step Whitespace is \w+|[^\w\s]+, but with the \w of another library: that one counts the two joiners.
constexpr std::string_view whitespace_words =
    R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}\s]+)";

class normalizer_reader {
public:
    void read(const json_place& from) {
        const std::string type = from.type();
        if (type == "Sequence") {
            const json_place list = from["normalizers"];
            for (std::size_t i = 0; i < list.items(); ++i) read(list.at(i));
        } else {
            steps.push_back(one(from, type));
        }
    }

    std::vector<normalizing_step_pointer> steps;

private:
    static normalizing_step_pointer one(const json_place& from, const std::string& type) {
        if (type == "NFC") return normalize_to(normal_form::nfc);
        if (type == "NFD") return normalize_to(normal_form::nfd);
        if (type == "NFKC") return normalize_to(normal_form::nfkc);
        if (type == "NFKD") return normalize_to(normal_form::nfkd);
        if (type == "Lowercase") return normalize_lowercase();
        if (type == "StripAccents") return normalize_strip_accents();
        if (type == "Prepend") return normalize_prepend(from["prepend"].text());
        if (type == "Strip") return normalize_strip(from["strip_left"].flag_or(true), from["strip_right"].flag_or(true));
        if (type == "Replace") {
            const std::string with = from["content"].text();
            return with_pattern(
                from["pattern"], [&](const std::string& literal) { return normalize_replace(literal, with); },
                [&](const std::string& expression) { return normalize_replace_regex(expression, with); });
        }
        from.refuse("normalizer '" + shown(type) + "' is not supported");
    }
};

class pre_tokenizer_reader {
public:
    explicit pre_tokenizer_reader(tokenizer::parts& parts) : parts_(parts) {}

    void read(const json_place& from) {
        const std::string type = from.type();
        if (type == "Sequence") {
            const json_place list = from["pretokenizers"];
            for (std::size_t i = 0; i < list.items(); ++i) read(list.at(i));
            return;
        }
        if (type == "ByteLevel") {
            if (byte_level_) from.refuse("ByteLevel twice is not supported");
            byte_level(from);
        } else if (!byte_level_) {
            steps_.push_back(one(from, type));
        } else {
            after_.push_back(split_in_alphabet(one(from, type)));
        }
    }

    void finish(const json_place& from) {
        if (!byte_level_) from.refuse("there is no ByteLevel step; only byte-level BPE is supported");
        // With a space put before each piece, what comes after sees that space too.
        auto& last = parts_.prefix_space ? after_space_ : steps_;
        last.insert(last.end(), after_.begin(), after_.end());
        parts_.split = splitter(std::move(steps_));
        parts_.split_after_prefix = splitter(std::move(after_space_));
    }

private:
    void byte_level(const json_place& from) {
        byte_level_ = true;
        const bool splits = from["use_regex"].flag_or(true);
        parts_.prefix_space = from["add_prefix_space"].flag_or(true);
        if (splits) (parts_.prefix_space ? after_space_ : steps_).push_back(split_gpt2());
    }

    static split_step_pointer one(const json_place& from, const std::string& type) {
        if (type == "Split") {
            const delimiter what = behaviour_of(from["behavior"]);
            const bool invert = from["invert"].flag_or(false);
            return with_pattern(
                from["pattern"], [&](const std::string& literal) { return split_literal(literal, what, invert); },
                [&](const std::string& expression) { return split_regex(expression, what, invert); });
        }
        if (type == "Digits") {
            const bool individual = from["individual_digits"].flag_or(false);
            return split_characters(character_set::number, individual ? delimiter::isolated : delimiter::contiguous);
        }
        if (type == "Punctuation") return split_characters(character_set::punctuation, behaviour_of(from["behavior"]));
        if (type == "WhitespaceSplit") return split_characters(character_set::space, delimiter::removed);
        if (type == "Whitespace") return split_regex(whitespace_words, delimiter::removed, true);
        if (type == "CharDelimiterSplit") return split_literal(from["delimiter"].text(), delimiter::removed, false);
        from.refuse("pre_tokenizer '" + shown(type) + "' is not supported");
    }

    tokenizer::parts& parts_;
    std::vector<split_step_pointer> steps_, after_space_, after_;
    bool byte_level_ = false;
};

class post_processor_reader {
public:
    post_processor_reader(const std::function<token_id(const std::string&)>& find, tokenizer::parts& parts)
        : find_(find), parts_(parts) {}

    void read(const json_place& from) {
        const std::string type = from.type();
        if (type == "Sequence") {
            const json_place list = from["processors"];
            for (std::size_t i = 0; i < list.items(); ++i) read(list.at(i));
        } else if (type == "TemplateProcessing") {
            around(from["single"], from["special_tokens"]);
        } else if (type == "RobertaProcessing" || type == "BertProcessing") {
            // Each is ["text", id].
            parts_.prefix.insert(parts_.prefix.begin(), named(first_of_two(from["cls"])));
            parts_.suffix.push_back(named(first_of_two(from["sep"])));
        } else if (type != "ByteLevel") {
            from.refuse("post_processor '" + shown(type) + "' is not supported");
        }
    }

private:
    static json_place first_of_two(const json_place& pair) {
        if (pair.items() != 2) pair.fail("a token and its id are expected");
        return pair.at(0);
    }

    token_id named(const json_place& text) const {
        const token_id id = find_(text.text());
        if (id == no_token) text.fail("'" + shown(text.text()) + "' is no token");
        return id;
    }

    // The template of one text: a list of {"SpecialToken": {"id": ...}} and one {"Sequence": ...}.
    void around(const json_place& list, const json_place& special_tokens) {
        std::vector<token_id> before, after;
        bool behind_text = false;
        for (std::size_t i = 0; i < list.items(); ++i) {
            const json_place item = list.at(i);
            const json_place special = item["SpecialToken"];
            if (special.is_null()) {
                if (item["Sequence"].is_null()) item.fail("a SpecialToken or a Sequence is expected");
                if (std::exchange(behind_text, true)) item.refuse("a template with the text twice is not supported");
                continue;
            }
            auto& side = behind_text ? after : before;
            for (const token_id id : ids_of(special["id"], special_tokens)) side.push_back(id);
        }
        parts_.prefix.insert(parts_.prefix.begin(), before.begin(), before.end());
        parts_.suffix.insert(parts_.suffix.end(), after.begin(), after.end());
    }

    // special_tokens maps a name to {"ids": [...]}.
    std::vector<token_id> ids_of(const json_place& name, const json_place& special_tokens) const {
        if (special_tokens.is_null()) return {named(name)};
        const json_place entry = special_tokens[name.text().c_str()];
        if (entry.is_null()) name.fail("'" + shown(name.text()) + "' is not among special_tokens");
        const json_place ids = entry["ids"];
        std::vector<token_id> out;
        for (std::size_t i = 0; i < ids.items(); ++i) {
            const auto id = static_cast<token_id>(ids.at(i).number_below(parts_.flags.size()));
            if (!parts_.has(id, tokenizer::parts::present)) ids.at(i).fail("no token has this id");
            out.push_back(id);
        }
        return out;
    }

    const std::function<token_id(const std::string&)>& find_;
    tokenizer::parts& parts_;
};

}  // namespace

void read_normalizer(const json_place& from, tokenizer::parts& parts) {
    if (from.is_null()) return;
    normalizer_reader reader;
    reader.read(from);
    parts.normal = normalizer(std::move(reader.steps));
}

void read_pre_tokenizer(const json_place& from, tokenizer::parts& parts) {
    if (from.is_null()) from.refuse("there is none; only byte-level BPE is supported");
    pre_tokenizer_reader reader(parts);
    reader.read(from);
    reader.finish(from);
}

void read_post_processor(const json_place& from, const std::function<token_id(const std::string&)>& find,
                         tokenizer::parts& parts) {
    if (!from.is_null()) post_processor_reader(find, parts).read(from);
}

}  // namespace fermata::text
