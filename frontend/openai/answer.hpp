// What a client gets back for a generation: the events of a stream, or one body. Pure: events of the node in, text out.
//
// Invariants
// - Choices are numbered over all prompts: choice c of prompt p is p * n + c.
// - A stream sends a role event before a choice's first text (chat), each choice's finish event once, and the totals
//   before `[DONE]`. After a failure nothing follows, not even `[DONE]`.
// - The text of a token is written once, straight into its event: no tree of JSON values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/openai/request.hpp"
#include "messages/ingress.hpp"

namespace fermata::openai {

// {"error":{"message","type","param","code"}}
std::string error_json(const client_error& error);

struct answer_head {
    std::string id;          // chatcmpl-..., cmpl-...
    std::string request;     // name of the request at this node, for /fermata/explain
    std::string model;
    std::int64_t created_s = 0;
};

class answer {
public:
    answer(answer_form form, answer_head head);

    // Adds what a text_delta of prompt `part` brings. In a stream the events are appended to `out`; otherwise the parts of
    // the body are kept and `out` stays as it is.
    void add(std::size_t part, const text_delta& delta, std::string& out);

    // All prompts are done. A stream's last events with `[DONE]`, or the whole body.
    void finish(const std::vector<request_usage>& usage, std::string& out);

    // A stream's last event after its headers are sent.
    static void fail(const client_error& error, std::string& out);

    std::size_t kept_bytes() const noexcept { return kept_bytes_; }
    std::string_view finish_of(std::size_t choice) const;  // "stop", "length", "" while it runs

private:
    struct choice_state {
        std::string text;       // without a stream
        std::string logprobs;   // JSON pieces, see answer.cpp
        std::string token_logprobs, top_logprobs, text_offset;  // completions: four lists that grow together
        std::string token_ids;
        std::size_t characters = 0;  // begun so far, for text_offset
        bool role_sent = false;
        finish_reason finish = finish_reason::none;
        std::size_t bytes() const noexcept {
            return text.size() + logprobs.size() + token_logprobs.size() + top_logprobs.size() + text_offset.size() +
                   token_ids.size();
        }
    };

    void append_chat_tokens(choice_state& state, const std::vector<token_report>& tokens) const;
    void append_completion_tokens(choice_state& state, const std::vector<token_report>& tokens, bool prompt) const;
    void append_logprobs(std::string& out, choice_state& state) const;
    void append_event(std::size_t index, choice_state& state, std::string_view text, std::string_view delta_role,
                      finish_reason finish, std::string& out) const;
    void append_choice(std::size_t index, choice_state& state, std::string& out) const;
    bool all_finished() const;

    answer_form form_;
    answer_head head_;
    std::vector<choice_state> choices_;
    std::string event_prefix_;  // up to and including the number of the choice
    std::string held_;          // the last finish event, until the totals are known
    std::size_t kept_bytes_ = 0;
};

// {"prompt_tokens",...}
void append_usage(std::string& out, const request_usage& usage);
// {"request","source",...}
void append_fermata(std::string& out, std::string_view request, const request_usage& usage);
// Of several prompts: counts are summed, times are the longest, the source is the first prompt's.
request_usage total_of(const std::vector<request_usage>& each);

}  // namespace fermata::openai
