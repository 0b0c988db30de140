#include "frontend/tokenizer/end_markers.hpp"

#include <algorithm>

namespace fermata::text {
namespace {

constexpr std::string_view end_markers[] = {
    "<|im_end|>",      "<|eot_id|>",       "<|eom_id|>",        "<|end_of_text|>",        "<|endoftext|>",
    "<|end|>",         "<|return|>",       "<|call|>",          "<end_of_turn>",          "<|END_OF_TURN_TOKEN|>",
    "<|end_of_turn|>", "<end_of_utterance>", "<EOT>",           "_<EOT>",                 "[EOT]",
    "<\xEF\xBD\x9C" "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",  // DeepSeek's, with full-width bars
};

bool is_among(token_id id, const std::vector<token_id>& ids) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

}  // namespace

bool is_end_marker(std::string_view text) noexcept {
    return std::find(std::begin(end_markers), std::end(end_markers), text) != std::end(end_markers);
}

std::vector<token_id> ends_of_answer(std::vector<token_id> stated, const std::vector<added_name>& added) {
    const auto named = [&](std::string_view text) {
        return std::any_of(added.begin(), added.end(), [&](const added_name& each) { return each.text == text; });
    };
    // Where answers end with <|return|> or <|call|>, <|end|> only closes one of several messages.
    const bool many_messages = named("<|return|>") && named("<|call|>");
    std::erase(stated, no_token);
    std::vector<token_id> ends = stated;
    for (const added_name& each : added) {
        if (!is_end_marker(each.text)) continue;
        if (many_messages && each.text == "<|end|>" && !is_among(each.id, stated)) continue;
        ends.push_back(each.id);
    }
    return ends;
}

}  // namespace fermata::text
