// A tokenizer from the vocabulary of a GGUF file. The description is untrusted: its lists may disagree with each
// other and its strings hold anything; every fault is named with the key and the index.
#include <algorithm>
#include <string>

#include "frontend/tokenizer/byte_alphabet.hpp"
#include "frontend/tokenizer/end_markers.hpp"
#include "frontend/tokenizer/kinds.hpp"
#include "frontend/tokenizer/reading.hpp"
#include "frontend/tokenizer/tokenizer_parts.hpp"

namespace fermata::text {

namespace {

std::string place(std::string_view list, std::size_t i) {
    return "tokenizer.ggml." + std::string(list) + "[" + std::to_string(i) + "]";
}

// Rows that only pad a vocabulary are written as tokens named "[PAD<id>]" by converters.
bool pads(std::string_view text, std::size_t id) { return text == "[PAD" + std::to_string(id) + "]"; }

class vocabulary_reader {
public:
    explicit vocabulary_reader(const vocabulary_description& v)
        : v_(v), parts_(std::make_unique<tokenizer::parts>()) {}

    std::unique_ptr<tokenizer::parts> read() {
        check_model();
        tokenizer_kind kind = kind_of_tokenizer(v_.pre_tokenizer);
        if (v_.tokens.empty()) throw tokenizer_error("tokenizer.ggml.tokens is empty");
        if (v_.tokens.size() > tokens_max) throw tokenizer_error(too_many("tokenizer.ggml.tokens", v_.tokens.size(), tokens_max));
        if (v_.merges.size() > merges_max) throw tokenizer_error(too_many("tokenizer.ggml.merges", v_.merges.size(), merges_max));
        if (!v_.types.empty() && v_.types.size() != v_.tokens.size()) {
            throw tokenizer_error("tokenizer.ggml.token_type has " + std::to_string(v_.types.size()) + " entries for " +
                                  std::to_string(v_.tokens.size()) + " tokens");
        }
        parts_->kind = v_.pre_tokenizer;
        parts_->split = std::move(kind.split);
        parts_->normal = std::move(kind.normal);
        read_tokens();
        read_merges(kind.ignore_merges);
        read_ids();
        parts_->index_by_bytes();
        if (!v_.chat_template.empty()) parts_->templates.push_back({"default", v_.chat_template});
        return std::move(parts_);
    }

private:
    // The other kinds of vocabulary that GGUF knows, by what people call them.
    void check_model() const {
        if (v_.model == "gpt2") return;
        const std::string called = v_.model == "llama"  ? " (SentencePiece)"
                                   : v_.model == "bert" ? " (WordPiece)"
                                   : v_.model == "t5"   ? " (Unigram)"
                                                        : "";
        if (v_.model.empty()) throw tokenizer_error("the file states no kind of tokenizer (tokenizer.ggml.model)");
        throw unsupported_tokenizer("tokenizer '" + v_.model + "'" + called +
                                    " is not supported; only byte-level BPE (tokenizer.ggml.model = gpt2) is");
    }

    token_type type_of(std::size_t i) const { return v_.types.empty() ? token_type::normal : v_.types[i]; }
    // A file without types doesn't say.
    bool may_be_added(std::size_t i) const {
        return v_.types.empty() || type_of(i) == token_type::control || type_of(i) == token_type::user_defined;
    }

    void read_tokens() {
        parts_->flags.assign(v_.tokens.size(), 0);
        in_alphabet_.assign(v_.tokens.size(), false);
        std::size_t bytes = 0;
        for (const auto& token : v_.tokens) bytes += token.size();
        if (bytes > token_bytes_max) throw tokenizer_error(too_many("bytes of tokenizer.ggml.tokens", bytes, token_bytes_max));
        for (std::size_t i = 0; i < v_.tokens.size(); ++i) read_token(i);
    }

    void read_token(std::size_t i) {
        const std::string& written = v_.tokens[i];
        const auto id = static_cast<token_id>(i);
        std::uint8_t& flags = parts_->flags[i];
        const token_type type = type_of(i);
        if (written.empty() || type == token_type::unused || (type != token_type::normal && pads(written, i))) {
            parts_->tokens->append("");
            return;
        }
        flags = tokenizer::parts::present;
        if (type == token_type::control || type == token_type::unknown || type == token_type::user_defined) {
            const bool special = type != token_type::user_defined;
            if (special) flags |= tokenizer::parts::special;
            parts_->tokens->append(written);
            parts_->added.add({id, written, special, false, false, false, false});
            return;
        }
        const auto bytes = bytes_from_alphabet(written);
        in_alphabet_[i] = bytes.has_value();
        parts_->tokens->append(bytes ? *bytes : written);
    }

    void read_merges(bool ignore_merges) {
        token_index by_bytes(*parts_->tokens, v_.tokens.size());
        token_store written_tokens;
        for (const auto& token : v_.tokens) written_tokens.append(token);
        token_index by_text(written_tokens, v_.tokens.size());
        // Of two tokens written alike merges mean the one that text can become, then the later one.
        for (const bool wanted : {false, true}) {
            for (std::size_t i = 0; i < v_.tokens.size(); ++i) {
                if (in_alphabet_[i] != wanted || v_.tokens[i].empty()) continue;
                by_text.replace(static_cast<token_id>(i));
                if (wanted) by_bytes.replace(static_cast<token_id>(i));
            }
        }
        merge_table merges(v_.merges.size());
        std::string joined;
        for (std::size_t i = 0; i < v_.merges.size(); ++i) {
            const std::string_view line = v_.merges[i];
            const auto space = line.find(' ', 1);  // a token may begin with a space, written out
            if (space == line.npos || space + 1 == line.size()) {
                throw tokenizer_error(place("merges", i) + " is '" + shown(line) + "', not two tokens with a space between");
            }
            const std::string_view left = line.substr(0, space), right = line.substr(space + 1);
            joined.assign(left).append(right);
            const token_id l = by_text.find(left), r = by_text.find(right), result = by_text.find(joined);
            const auto check = [i](token_id id, std::string_view text) {
                if (id != no_token) return;
                throw tokenizer_error(place("merges", i) + " speaks of '" + shown(text) + "', which is no token");
            };
            check(l, left);
            check(r, right);
            check(result, joined);
            merges.insert(l, r, {static_cast<std::uint32_t>(i), result});
        }
        bpe_model::options options;
        options.ignore_merges = ignore_merges;
        parts_->model.emplace(parts_->tokens, std::move(by_bytes), std::move(merges), std::move(options));
    }

    token_id checked(token_id id, std::string_view key) const {
        if (id == no_token || parts_->is_id(id)) return id;
        throw tokenizer_error("tokenizer.ggml." + std::string(key) + " is " + std::to_string(id) + ", but there are " +
                              std::to_string(v_.tokens.size()) + " tokens");
    }

    void read_ids() {
        parts_->bos = checked(v_.bos, "bos_token_id");
        parts_->eos = checked(v_.eos, "eos_token_id");
        parts_->unknown = checked(v_.unknown, "unknown_token_id");
        checked(v_.padding, "padding_token_id");
        if (v_.add_bos) {
            if (parts_->bos == no_token) throw tokenizer_error("tokenizer.ggml.add_bos_token is set without bos_token_id");
            parts_->prefix.push_back(parts_->bos);
        }
        if (v_.add_eos) {
            if (parts_->eos == no_token) throw tokenizer_error("tokenizer.ggml.add_eos_token is set without eos_token_id");
            parts_->suffix.push_back(parts_->eos);
        }
        std::vector<token_id> ends = v_.end_of_generation;
        for (std::size_t i = 0; i < ends.size(); ++i) ends[i] = checked(ends[i], "eot_token_id");
        ends.push_back(parts_->eos);
        ends.push_back(checked(v_.eot, "eot_token_id"));
        std::vector<added_name> added;
        for (std::size_t i = 0; i < v_.tokens.size(); ++i)
            if (may_be_added(i) && is_end_marker(v_.tokens[i])) added.push_back({static_cast<token_id>(i), v_.tokens[i]});
        parts_->set_end_of_generation(ends_of_answer(std::move(ends), added));
    }

    const vocabulary_description& v_;
    std::unique_ptr<tokenizer::parts> parts_;
    std::vector<bool> in_alphabet_;  // tokens that text can become by merging
};

}  // namespace

std::shared_ptr<const tokenizer> tokenizer::from_vocabulary(const vocabulary_description& vocabulary) {
    return std::make_shared<const tokenizer>(vocabulary_reader(vocabulary).read());
}

}  // namespace fermata::text
