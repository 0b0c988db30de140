#include "frontend/openai/answer.hpp"

#include <algorithm>
#include <utility>

#include "frontend/openai/text.hpp"
#include "messages/utf8.hpp"

namespace fermata::openai {
namespace {

std::string_view spelled(finish_reason finish) {
    switch (finish) {
        case finish_reason::none: return "";
        case finish_reason::stop: return "stop";
        case finish_reason::length: return "length";
        case finish_reason::cancelled: return "cancelled";
        case finish_reason::error: return "error";
    }
    return "";
}

void append_finish(std::string& out, finish_reason finish) {
    if (finish == finish_reason::none)
        out += "null";
    else
        append_json_string(out, spelled(finish));
}

void append_bytes(std::string& out, std::string_view bytes) {
    out += '[';
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (i != 0) out += ',';
        append_json_number(out, std::uint64_t{static_cast<unsigned char>(bytes[i])});
    }
    out += ']';
}

// {"token","logprob","bytes" without the closing brace
void open_token(std::string& out, std::string_view bytes, float logprob) {
    out += "{\"token\":";
    append_json_string(out, printable_token(bytes));
    out += ",\"logprob\":";
    append_json_number(out, logprob);
    out += ",\"bytes\":";
    append_bytes(out, bytes);
}

// The legacy form: text, or "bytes:\xNN..." for a part of a character.
std::string legacy_token(std::string_view bytes) {
    auto text = printable_token(bytes);
    return utf8::is_valid(bytes) ? text : "bytes:" + text;
}

std::size_t characters_begun(std::string_view bytes) {
    return static_cast<std::size_t>(
        std::count_if(bytes.begin(), bytes.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
}

void separate(std::string& list) {
    if (!list.empty()) list += ',';
}

}  // namespace

std::string error_json(const client_error& error) {
    std::string out = "{\"error\":{\"message\":";
    append_json_string(out, error.message);
    out += ",\"type\":";
    append_json_string(out, error.type.empty() ? (error.status < 500 ? "invalid_request_error" : "server_error") : error.type);
    out += ",\"param\":";
    if (error.param.empty())
        out += "null";
    else
        append_json_string(out, error.param);
    out += ",\"code\":";
    if (error.code.empty())
        out += "null";
    else
        append_json_string(out, error.code);
    out += "}}";
    return out;
}

void append_usage(std::string& out, const request_usage& usage) {
    out += "{\"prompt_tokens\":";
    append_json_number(out, usage.prompt_tokens);
    out += ",\"completion_tokens\":";
    append_json_number(out, usage.completion_tokens);
    out += ",\"total_tokens\":";
    append_json_number(out, usage.prompt_tokens + usage.completion_tokens);
    out += ",\"prompt_tokens_details\":{\"cached_tokens\":";
    append_json_number(out, usage.cached_tokens);
    out += "}}";
}

void append_fermata(std::string& out, std::string_view request, const request_usage& usage) {
    out += "{\"request\":";
    append_json_string(out, request);
    out += ",\"source\":";
    append_json_string(out, usage.source);
    out += ",\"reused_tokens\":";
    append_json_number(out, usage.cached_tokens);
    out += ",\"restored_bytes\":";
    append_json_number(out, usage.restored_bytes);
    out += ",\"replayed_tokens\":";
    append_json_number(out, usage.replayed_tokens);
    out += ",\"queue_ms\":";
    append_json_number(out, usage.queue_ms);
    out += ",\"ttft_ms\":";
    append_json_number(out, usage.ttft_ms);
    out += '}';
}

request_usage total_of(const std::vector<request_usage>& each) {
    request_usage total;
    if (!each.empty()) total.source = each.front().source;
    for (const auto& u : each) {
        total.prompt_tokens += u.prompt_tokens;
        total.cached_tokens += u.cached_tokens;
        total.completion_tokens += u.completion_tokens;
        total.replayed_tokens += u.replayed_tokens;
        total.restored_bytes += u.restored_bytes;
        total.queue_ms = std::max(total.queue_ms, u.queue_ms);
        total.ttft_ms = std::max(total.ttft_ms, u.ttft_ms);
    }
    return total;
}

answer::answer(answer_form form, answer_head head)
    : form_(form), head_(std::move(head)), choices_(std::size_t{form.n} * form.prompts) {
    if (!form_.stream) return;
    event_prefix_ = "data: {\"id\":";
    append_json_string(event_prefix_, head_.id);
    event_prefix_ += form_.api == api_kind::chat ? ",\"object\":\"chat.completion.chunk\",\"created\":"
                                                 : ",\"object\":\"text_completion\",\"created\":";
    append_json_number(event_prefix_, head_.created_s);
    event_prefix_ += ",\"model\":";
    append_json_string(event_prefix_, head_.model);
    event_prefix_ += ",\"choices\":[";
}

std::string_view answer::finish_of(std::size_t choice) const { return spelled(choices_[choice].finish); }

bool answer::all_finished() const {
    return std::all_of(choices_.begin(), choices_.end(), [](const auto& c) { return c.finish != finish_reason::none; });
}

// Chat: one list of objects.
void answer::append_chat_tokens(choice_state& state, const std::vector<token_report>& tokens) const {
    for (const auto& token : tokens) {
        separate(state.logprobs);
        open_token(state.logprobs, token.bytes, token.logprob);
        state.logprobs += ",\"top_logprobs\":[";
        for (std::size_t i = 0; i < token.top.size() && i < token.top_bytes.size(); ++i) {
            if (i != 0) state.logprobs += ',';
            open_token(state.logprobs, token.top_bytes[i], token.top[i].logprob);
            state.logprobs += '}';
        }
        state.logprobs += "]}";
    }
}

// Completions: four lists side by side.
void answer::append_completion_tokens(choice_state& state, const std::vector<token_report>& tokens, bool prompt) const {
    for (const auto& token : tokens) {
        separate(state.logprobs);
        separate(state.token_logprobs);
        separate(state.top_logprobs);
        separate(state.text_offset);
        append_json_string(state.logprobs, legacy_token(token.bytes));
        append_json_number(state.token_logprobs, token.logprob);
        append_json_number(state.text_offset, std::uint64_t{state.characters});
        state.characters += characters_begun(token.bytes);
        // The first prompt token follows nothing: it has no log-probability (NaN).
        if (prompt && token.logprob != token.logprob) {
            state.top_logprobs += "null";
            continue;
        }
        state.top_logprobs += '{';
        std::vector<std::string> names;  // two tokens may print the same: the likelier one, which comes first, stays
        for (std::size_t i = 0; i < token.top.size() && i < token.top_bytes.size(); ++i) {
            auto name = legacy_token(token.top_bytes[i]);
            if (std::find(names.begin(), names.end(), name) != names.end()) continue;
            if (!names.empty()) state.top_logprobs += ',';
            append_json_string(state.top_logprobs, name);
            state.top_logprobs += ':';
            append_json_number(state.top_logprobs, token.top[i].logprob);
            names.push_back(std::move(name));
        }
        state.top_logprobs += '}';
    }
}

void answer::append_logprobs(std::string& out, choice_state& state) const {
    if (!form_.logprobs) {
        out += "null";
        return;
    }
    if (form_.api == api_kind::chat) {
        out += "{\"content\":[";
        out += state.logprobs;
        out += "],\"refusal\":null}";
    } else {
        out += "{\"tokens\":[" + state.logprobs + "],\"token_logprobs\":[" + state.token_logprobs + "],\"top_logprobs\":[" +
               state.top_logprobs + "],\"text_offset\":[" + state.text_offset + "]}";
    }
    if (!form_.stream) return;
    state.logprobs.clear();
    state.token_logprobs.clear();
    state.top_logprobs.clear();
    state.text_offset.clear();
}

void answer::append_event(std::size_t index, choice_state& state, std::string_view text, std::string_view role,
                          finish_reason finish, std::string& out) const {
    out += event_prefix_;
    out += "{\"index\":";
    append_json_number(out, std::uint64_t{index});
    if (form_.api == api_kind::chat) {
        out += ",\"delta\":{";
        if (!role.empty()) {
            out += "\"role\":";
            append_json_string(out, role);
            out += ",\"content\":\"\",\"refusal\":null";
        } else if (!text.empty() || finish == finish_reason::none) {
            out += "\"content\":";
            append_json_string(out, text);
        }
        out += '}';
    } else {
        out += ",\"text\":";
        append_json_string(out, text);
    }
    out += ",\"logprobs\":";
    if (role.empty() && (!text.empty() || !state.logprobs.empty()))
        append_logprobs(out, state);
    else
        out += "null";
    if (form_.token_ids && role.empty()) {
        out += ",\"token_ids\":[" + state.token_ids + ']';
        state.token_ids.clear();
    }
    out += ",\"finish_reason\":";
    append_finish(out, finish);
    out += "}]";
    if (form_.include_usage) out += ",\"usage\":null";
    out += "}\n\n";
}

void answer::add(std::size_t part, const text_delta& delta, std::string& out) {
    const auto index = part * form_.n + delta.choice;
    if (delta.choice >= form_.n || index >= choices_.size()) return;
    auto& state = choices_[index];
    if (state.finish != finish_reason::none) return;
    const auto before = state.bytes();
    const bool chat = form_.api == api_kind::chat;
    if (form_.logprobs) {
        if (!chat) append_completion_tokens(state, delta.prompt, true);
        chat ? append_chat_tokens(state, delta.tokens) : append_completion_tokens(state, delta.tokens, false);
    }
    if (form_.token_ids) {
        for (const auto& token : delta.tokens) {
            separate(state.token_ids);
            append_json_number(state.token_ids, std::int64_t{token.token});
        }
    }
    state.finish = delta.finish;
    if (!form_.stream) {
        state.text += delta.text;
        kept_bytes_ += state.bytes() - before;
        return;
    }
    const bool something = !delta.text.empty() || !state.logprobs.empty() || !state.token_ids.empty();
    if (chat && !state.role_sent && (something || delta.finish != finish_reason::none)) {
        state.role_sent = true;
        append_event(index, state, {}, "assistant", finish_reason::none, out);
    }
    // Chat: text and finish in events of their own, as OpenAI sends them. Completions: together.
    if (something && (chat || delta.finish == finish_reason::none))
        append_event(index, state, delta.text, {}, finish_reason::none, out);
    if (delta.finish == finish_reason::none) return;
    std::string last;
    append_event(index, state, chat ? std::string_view{} : std::string_view(delta.text), {}, delta.finish, last);
    // The very last event also carries the numbers of the whole request, which come with `finished`.
    if (!form_.include_usage && all_finished())
        held_ = std::move(last);
    else
        out += last;
}

void answer::append_choice(std::size_t index, choice_state& state, std::string& out) const {
    out += "{\"index\":";
    append_json_number(out, std::uint64_t{index});
    if (form_.api == api_kind::chat) {
        out += ",\"message\":{\"role\":\"assistant\",\"content\":";
        append_json_string(out, state.text);
        out += ",\"refusal\":null}";
    } else {
        out += ",\"text\":";
        append_json_string(out, state.text);
    }
    out += ",\"logprobs\":";
    append_logprobs(out, state);
    if (form_.token_ids) out += ",\"token_ids\":[" + state.token_ids + ']';
    out += ",\"finish_reason\":";
    append_finish(out, state.finish);
    out += '}';
}

void answer::finish(const std::vector<request_usage>& usage, std::string& out) {
    const auto total = total_of(usage);
    if (form_.stream) {
        if (form_.include_usage) {
            out += event_prefix_;
            out += "],\"usage\":";
            append_usage(out, total);
            out += ",\"fermata\":";
            append_fermata(out, head_.request, total);
            out += "}\n\n";
        } else if (!held_.empty()) {
            held_.resize(held_.size() - 3);  // "}\n\n"
            out += held_;
            out += ",\"fermata\":";
            append_fermata(out, head_.request, total);
            out += "}\n\n";
        }
        out += "data: [DONE]\n\n";
        return;
    }
    out += "{\"id\":";
    append_json_string(out, head_.id);
    out += form_.api == api_kind::chat ? ",\"object\":\"chat.completion\",\"created\":" : ",\"object\":\"text_completion\",\"created\":";
    append_json_number(out, head_.created_s);
    out += ",\"model\":";
    append_json_string(out, head_.model);
    out += ",\"choices\":[";
    for (std::size_t i = 0; i < choices_.size(); ++i) {
        if (i != 0) out += ',';
        append_choice(i, choices_[i], out);
    }
    out += "],\"usage\":";
    append_usage(out, total);
    out += ",\"fermata\":";
    append_fermata(out, head_.request, total);
    out += "}";
}

void answer::fail(const client_error& error, std::string& out) {
    out += "data: ";
    out += error_json(error);
    out += "\n\n";
}

}  // namespace fermata::openai
