#include "frontend/tokenizer/detokenizer.hpp"

#include <algorithm>
#include <utility>

namespace fermata::text {

namespace {

unsigned char byte_at(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

// What follows a lead byte in a well-formed character: how many bytes, and the range of the first of them (narrower
// than 80..BF where shorter forms, surrogates or codes past 10FFFF would be).
struct lead_rule {
    std::size_t length = 0;  // 0: no character begins so
    unsigned char second_low = 0x80, second_high = 0xBF;
};

lead_rule rule_of(unsigned char lead) {
    if (lead < 0x80) return {1};
    if (lead < 0xC2 || lead > 0xF4) return {};
    if (lead < 0xE0) return {2};
    if (lead < 0xF0) {
        return {3, static_cast<unsigned char>(lead == 0xE0 ? 0xA0 : 0x80),
                static_cast<unsigned char>(lead == 0xED ? 0x9F : 0xBF)};
    }
    return {4, static_cast<unsigned char>(lead == 0xF0 ? 0x90 : 0x80),
            static_cast<unsigned char>(lead == 0xF4 ? 0x8F : 0xBF)};
}

// The bytes from `at` that are, or may become, one character: at least 1. `wanted` is what the whole one has.
std::size_t well_formed_part(std::string_view text, std::size_t at, std::size_t& wanted) {
    const lead_rule rule = rule_of(byte_at(text, at));
    wanted = rule.length;
    std::size_t length = 1;
    while (length < rule.length && at + length < text.size()) {
        const unsigned char byte = byte_at(text, at + length);
        const unsigned char low = length == 1 ? rule.second_low : 0x80, high = length == 1 ? rule.second_high : 0xBF;
        if (byte < low || byte > high) break;
        ++length;
    }
    return length;
}

}  // namespace

incremental_detokenizer::incremental_detokenizer(std::shared_ptr<const tokenizer> words, bool with_special)
    : words_(std::move(words)), with_special_(with_special) {}

std::string incremental_detokenizer::push(token_id token) {
    if (!words_->has_token(token) || (!with_special_ && words_->is_special(token))) return {};
    held_.append(words_->token_bytes(token));
    std::string out;
    std::size_t at = 0;
    while (at < held_.size()) {
        std::size_t wanted = 0;
        const std::size_t length = well_formed_part(held_, at, wanted);
        if (wanted == length) {
            out.append(held_, at, length);
        } else if (wanted > 0 && at + length == held_.size()) {
            break;  // the rest may come with the next token
        } else {
            out.append("\uFFFD");
        }
        at += length;
    }
    held_.erase(0, at);
    return out;
}

std::string incremental_detokenizer::push(std::span<const token_id> tokens) {
    std::string out;
    for (const token_id token : tokens) out.append(push(token));
    return out;
}

stop_text_filter::stop_text_filter(std::vector<std::string> stops, bool include_stop)
    : stops_(std::move(stops)), include_stop_(include_stop) {
    std::erase_if(stops_, [](const std::string& s) { return s.empty(); });
}

std::string stop_text_filter::push(std::string_view text) {
    if (stop_) return {};
    if (stops_.empty()) return std::string(text);
    held_.append(text);
    std::size_t first = held_.npos;
    for (std::size_t i = 0; i < stops_.size(); ++i) {
        const std::size_t at = held_.find(stops_[i]);
        const bool better = at < first || (at == first && at != held_.npos && stops_[i].size() > stops_[*stop_].size());
        if (better) {
            first = at;
            stop_ = i;
        }
    }
    if (stop_) {
        std::string out = held_.substr(0, first + (include_stop_ ? stops_[*stop_].size() : 0));
        held_.clear();
        return out;
    }
    // The earliest place from which all that is held could still grow into a stop string.
    std::size_t keep_from = held_.size();
    for (const std::string& stop : stops_) {
        const std::size_t longest = std::min(held_.size(), stop.size() - 1);
        for (std::size_t length = longest; length > 0; --length) {
            if (std::string_view(held_).substr(held_.size() - length) != std::string_view(stop).substr(0, length)) continue;
            keep_from = std::min(keep_from, held_.size() - length);
            break;
        }
    }
    std::string out = held_.substr(0, keep_from);
    held_.erase(0, keep_from);
    return out;
}

std::string stop_text_filter::finish() { return std::exchange(held_, {}); }

}  // namespace fermata::text
