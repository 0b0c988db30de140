#include "frontend/tokenizer/tokenizer.hpp"

#include <algorithm>

#include "frontend/tokenizer/tokenizer_parts.hpp"

namespace fermata::text {

namespace {

// One call of encode: its buffers, and the way from a stretch of text to tokens.
class encoder {
public:
    encoder(const tokenizer::parts& parts, bool parse_special, bool traced, std::vector<token_span>& out)
        : parts_(parts), parse_special_(parse_special), traced_(traced), out_(out) {}

    void run(std::string_view text) {
        if (parts_.added.empty()) return plain(text, 0);
        std::vector<added_token_matcher::found> found;
        parts_.added.split(text, parse_special_, found);
        for (const auto& stretch : found) {
            if (stretch.id != no_token) {
                out_.push_back({stretch.id, stretch.begin, stretch.end});
            } else {
                plain(text.substr(stretch.begin, stretch.end - stretch.begin), stretch.begin);
            }
        }
    }

private:
    // Where the bytes of a text that is worked on came from: as it is, or changed on the way.
    struct origin {
        std::size_t base = 0;
        const traced_text* changed = nullptr;

        std::size_t begin(std::size_t at) const {
            if (changed == nullptr) return base + at;
            return !changed->traced || changed->begin.empty() ? base
                   : at < changed->begin.size()              ? base + changed->begin[at]
                                                             : base + changed->end.back();
        }
        std::size_t end(std::size_t at) const {  // of the byte before `at`
            if (changed == nullptr) return base + at;
            return !changed->traced || at == 0 ? base : base + changed->end[at - 1];
        }
    };

    void plain(std::string_view text, std::size_t base) {
        if (parts_.normal.empty()) return normalized(text, {base, nullptr});
        traced_text changed(text, traced_);
        parts_.normal.apply(changed);
        normalized(changed.bytes, {base, &changed});
    }

    void normalized(std::string_view text, const origin& from) {
        if (parts_.added_normalized.empty()) return split(text, from);
        std::vector<added_token_matcher::found> found;
        parts_.added_normalized.split(text, parse_special_, found);
        for (const auto& stretch : found) {
            if (stretch.id != no_token) {
                out_.push_back({stretch.id, from.begin(stretch.begin), from.end(stretch.end)});
            } else {
                stretch_of(text, stretch.begin, stretch.end, from);
            }
        }
    }

    void stretch_of(std::string_view text, std::size_t begin, std::size_t end, const origin& from) {
        if (from.changed == nullptr) return split(text.substr(begin, end - begin), {from.base + begin, nullptr});
        text_rewriter cut(*from.changed);
        cut.keep(begin, end);
        const traced_text part = cut.take();
        split(part.bytes, {from.base, &part});
    }

    void split(std::string_view text, const origin& from) {
        if (text.empty()) return;
        parts_.split.split(text, pieces_, scratch_);
        if (parts_.prefix_space) return prefixed(text, from);
        merge(text, pieces_, from);
    }

    // A space before every piece that has none, each then split by itself.
    void prefixed(std::string_view text, const origin& from) {
        traced_text whole = from.changed != nullptr ? *from.changed : traced_text(text, traced_);
        const std::vector<piece> pieces = pieces_;
        for (const piece& p : pieces) {
            text_rewriter cut(whole);
            if (text[p.begin] != ' ') cut.put(" ", p.begin, p.begin);
            cut.keep(p.begin, p.end);
            const traced_text part = cut.take();
            parts_.split_after_prefix.split(part.bytes, pieces_, scratch_);
            merge(part.bytes, pieces_, {from.base, &part});
        }
    }

    void merge(std::string_view text, const std::vector<piece>& pieces, const origin& from) {
        for (const piece& p : pieces) {
            tokens_.clear();
            parts_.model->encode(text.substr(p.begin, p.end - p.begin), space_, tokens_);
            std::size_t at = p.begin;
            for (const bpe_token& token : tokens_) {
                out_.push_back({token.id, from.begin(at), from.end(at + token.length)});
                at += token.length;
            }
        }
    }

    const tokenizer::parts& parts_;
    bool parse_special_, traced_;
    std::vector<token_span>& out_;
    std::vector<piece> pieces_, scratch_;
    std::vector<bpe_token> tokens_;
    bpe_workspace space_;
};

std::vector<token_span> encode_spans(const tokenizer::parts& parts, std::string_view text, encode_options options,
                                     bool traced) {
    if (text.size() > tokenizer::text_bytes_max) {
        throw tokenizer_error("a text of " + std::to_string(text.size()) + " bytes is more than the " +
                              std::to_string(tokenizer::text_bytes_max) + " that can be tokenised at once");
    }
    std::vector<token_span> out;
    out.reserve(text.size() / 3 + 8);
    if (options.add_special) {
        for (const token_id id : parts.prefix) out.push_back({id, 0, 0});
    }
    encoder(parts, options.parse_special, traced, out).run(text);
    if (options.add_special) {
        for (const token_id id : parts.suffix) out.push_back({id, text.size(), text.size()});
    }
    return out;
}

}  // namespace

void tokenizer::parts::index_by_bytes() {
    by_bytes.emplace(*tokens, flags.size());
    for (std::size_t i = 0; i < flags.size(); ++i) {
        const auto id = static_cast<token_id>(i);
        if (!has(id, present)) continue;
        if (has(id, special)) {
            by_bytes->replace(id);
        } else {
            by_bytes->insert(id);
        }
    }
}

void tokenizer::parts::set_end_of_generation(std::vector<token_id> ids) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    std::erase_if(ids, [this](token_id id) { return !is_id(id); });
    for (const token_id id : ids) flags[static_cast<std::size_t>(id)] |= ends_answer;
    end_of_generation = std::move(ids);
}

tokenizer::tokenizer(std::unique_ptr<const parts> p) : parts_(std::move(p)) {}
tokenizer::~tokenizer() = default;

std::vector<token_id> tokenizer::encode(std::string_view text, encode_options options) const {
    const auto spans = encode_spans(*parts_, text, options, false);
    std::vector<token_id> ids(spans.size());
    std::transform(spans.begin(), spans.end(), ids.begin(), [](const token_span& span) { return span.id; });
    return ids;
}

std::vector<token_span> tokenizer::encode_with_offsets(std::string_view text, encode_options options) const {
    return encode_spans(*parts_, text, options, true);
}

std::string tokenizer::decode(std::span<const token_id> tokens, bool with_special) const {
    std::string bytes;
    for (const token_id id : tokens) {
        const std::string_view token = token_bytes(id);
        if (with_special || !is_special(id)) bytes.append(token);
    }
    return bytes;
}

std::string_view tokenizer::token_bytes(token_id id) const {
    if (!parts_->is_id(id)) {
        throw tokenizer_error("token id " + std::to_string(id) + " is outside the vocabulary of " +
                              std::to_string(vocabulary_size()) + " tokens");
    }
    return (*parts_->tokens)[static_cast<std::size_t>(id)];
}

bool tokenizer::has_token(token_id id) const noexcept { return parts_->has(id, parts::present); }
bool tokenizer::is_special(token_id id) const noexcept { return parts_->has(id, parts::special); }

token_id tokenizer::find(std::string_view bytes) const noexcept { return parts_->find(bytes); }

std::size_t tokenizer::vocabulary_size() const noexcept { return parts_->flags.size(); }
token_id tokenizer::bos() const noexcept { return parts_->bos; }
token_id tokenizer::eos() const noexcept { return parts_->eos; }
token_id tokenizer::unknown() const noexcept { return parts_->unknown; }
bool tokenizer::normalizes() const noexcept { return !parts_->normal.empty(); }
std::span<const token_id> tokenizer::end_of_generation() const noexcept { return parts_->end_of_generation; }
std::span<const token_id> tokenizer::added_prefix() const noexcept { return parts_->prefix; }
std::string_view tokenizer::kind() const noexcept { return parts_->kind; }
std::string_view tokenizer::chat_template() const noexcept {
    return parts_->templates.empty() ? std::string_view() : parts_->templates.front().text;
}
std::span<const named_template> tokenizer::chat_templates() const noexcept { return parts_->templates; }

}  // namespace fermata::text
