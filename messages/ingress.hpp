// Client side <-> Frontend: text in, text out. What HTTP routes, remote CAF actors, the terminal programs and embedding
// applications speak. JSON parts travel as the bytes the client sent, so member order is kept (H5).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "messages/field.hpp"
#include "messages/generation.hpp"
#include "messages/ids.hpp"
#include "messages/serving.hpp"

namespace fermata {

// An error a client sees: OpenAI's fields plus the HTTP status.
struct client_error {
    std::uint16_t status = 500;
    std::string type;     // invalid_request_error, ...
    std::string code;     // context_length_exceeded, ...; may be empty
    std::string param;    // field name; may be empty
    std::string message;
    std::uint32_t retry_after_s = 0;
    bool operator==(const client_error&) const = default;
    static constexpr std::string_view type_name = "client_error";
    static constexpr auto fields() {
        using t = client_error;
        return std::tuple{field("status", &t::status), field("type", &t::type), field("code", &t::code),
                          field("param", &t::param), field("message", &t::message),
                          field("retry_after_s", &t::retry_after_s)};
    }
};

enum class prompt_kind : std::uint8_t {
    chat,    // `messages_json`, rendered by the chat template
    text,    // `prompt_text`, verbatim, special tokens recognised, what the model adds at the start added
    tokens,  // `prompt_tokens`, verbatim
};

struct submit {
    request_id request{};   // chosen by the client side, unique within the node's life (node::next_request())
    prompt_kind kind = prompt_kind::chat;
    std::string messages_json;            // chat: the list, as sent
    std::string tools_json;               // chat: the list, as sent; may be empty
    std::string template_arguments_json;  // chat: object of further template variables; may be empty
    std::string prompt_text;
    token_run prompt_tokens;
    sampling_params sampling;
    bool seed_given = false;              // false: the node draws one
    std::uint32_t n = 1;
    std::optional<std::uint32_t> max_tokens;  // absent: what is left of the context
    std::vector<std::string> stop;
    std::vector<token_id> stop_tokens;
    bool ignore_eos = false;
    bool echo = false;                    // completions: the answer starts with the prompt's text
    report_spec report;
    std::string session;
    std::uint32_t deadline_ms = 0;
    static constexpr std::string_view type_name = "submit";
    static constexpr auto fields() {
        using t = submit;
        return std::tuple{field("request", &t::request),
                          field("kind", &t::kind),
                          field("messages_json", &t::messages_json),
                          field("tools_json", &t::tools_json),
                          field("template_arguments_json", &t::template_arguments_json),
                          field("prompt_text", &t::prompt_text),
                          field("prompt_tokens", &t::prompt_tokens),
                          field("sampling", &t::sampling),
                          field("seed_given", &t::seed_given),
                          field("n", &t::n),
                          field("max_tokens", &t::max_tokens),
                          field("stop", &t::stop),
                          field("stop_tokens", &t::stop_tokens),
                          field("ignore_eos", &t::ignore_eos),
                          field("echo", &t::echo),
                          field("report", &t::report),
                          field("session", &t::session),
                          field("deadline_ms", &t::deadline_ms)};
    }
};

// Answers, in order: `accepted` or `rejected`; then `text_delta`s; then `finished` or `failed`.
struct accepted {
    request_id request{};
    token_pos prompt_tokens{0};
    static constexpr std::string_view type_name = "accepted";
    static constexpr auto fields() {
        return std::tuple{field("request", &accepted::request), field("prompt_tokens", &accepted::prompt_tokens)};
    }
};

struct rejected {
    request_id request{};
    client_error error;
    static constexpr std::string_view type_name = "rejected";
    static constexpr auto fields() {
        return std::tuple{field("request", &rejected::request), field("error", &rejected::error)};
    }
};

// One token as reported to a client: its bytes may be part of a character.
struct token_report {
    token_id token = no_token;
    std::string bytes;
    float logprob = 0;
    std::vector<token_logprob> top;
    std::vector<std::string> top_bytes;  // as long as `top`
    static constexpr std::string_view type_name = "token_report";
    static constexpr auto fields() {
        using t = token_report;
        return std::tuple{field("token", &t::token), field("bytes", &t::bytes), field("logprob", &t::logprob),
                          field("top", &t::top), field("top_bytes", &t::top_bytes)};
    }
};

struct text_delta {
    request_id request{};
    std::uint32_t choice = 0;
    std::string text;                   // whole UTF-8 characters; never a part of a stop string
    std::vector<token_report> tokens;   // every committed token since the last delta (log-probabilities when asked for)
    std::vector<token_report> prompt;   // echo with log-probabilities: the prompt's tokens, in the first delta
    finish_reason finish = finish_reason::none;
    std::vector<float> logits;          // tools only
    static constexpr std::string_view type_name = "text_delta";
    static constexpr auto fields() {
        using t = text_delta;
        return std::tuple{field("request", &t::request), field("choice", &t::choice), field("text", &t::text),
                          field("tokens", &t::tokens), field("prompt", &t::prompt), field("finish", &t::finish),
                          field("logits", &t::logits)};
    }
};

struct request_usage {
    std::uint64_t prompt_tokens = 0;      // once, however many choices
    std::uint64_t cached_tokens = 0;      // of choice 0
    std::uint64_t completion_tokens = 0;  // all choices
    std::uint64_t replayed_tokens = 0;
    std::uint64_t restored_bytes = 0;
    std::string source = "root";          // root | device | host | disk | snapshot
    double queue_ms = 0;
    double ttft_ms = 0;
    static constexpr std::string_view type_name = "request_usage";
    static constexpr auto fields() {
        using t = request_usage;
        return std::tuple{field("prompt_tokens", &t::prompt_tokens),
                          field("cached_tokens", &t::cached_tokens),
                          field("completion_tokens", &t::completion_tokens),
                          field("replayed_tokens", &t::replayed_tokens),
                          field("restored_bytes", &t::restored_bytes),
                          field("source", &t::source),
                          field("queue_ms", &t::queue_ms),
                          field("ttft_ms", &t::ttft_ms)};
    }
};

struct finished {
    request_id request{};
    request_usage usage;
    static constexpr std::string_view type_name = "finished";
    static constexpr auto fields() {
        return std::tuple{field("request", &finished::request), field("usage", &finished::usage)};
    }
};

struct failed {
    request_id request{};
    client_error error;
    request_usage usage;
    static constexpr std::string_view type_name = "failed";
    static constexpr auto fields() {
        return std::tuple{field("request", &failed::request), field("error", &failed::error),
                          field("usage", &failed::usage)};
    }
};

// Frontend's preparers -> Frontend: what a submit became, rendered and tokenised away from the actor's own handler.
struct prepared {
    request_id request{};
    std::optional<client_error> error;  // then nothing else holds
    enqueue order;
    std::string echo_text;              // echo: the prompt's text
    static constexpr std::string_view type_name = "prepared";
    static constexpr auto fields() {
        using t = prepared;
        return std::tuple{field("request", &t::request), field("error", &t::error), field("order", &t::order),
                          field("echo_text", &t::echo_text)};
    }
};

// Text layer by itself.
struct tokenize_text {
    std::string text;
    std::string messages_json;  // instead of text: rendered by the chat template
    std::string tools_json;
    std::string template_arguments_json;
    bool special = true;        // recognise special tokens in text
    bool add_bos = false;       // add what the model adds
    static constexpr std::string_view type_name = "tokenize_text";
    static constexpr auto fields() {
        using t = tokenize_text;
        return std::tuple{field("text", &t::text), field("messages_json", &t::messages_json),
                          field("tools_json", &t::tools_json),
                          field("template_arguments_json", &t::template_arguments_json),
                          field("special", &t::special), field("add_bos", &t::add_bos)};
    }
};

struct tokenized {
    token_run tokens;
    std::optional<client_error> error;
    static constexpr std::string_view type_name = "tokenized";
    static constexpr auto fields() {
        return std::tuple{field("tokens", &tokenized::tokens), field("error", &tokenized::error)};
    }
};

struct detokenize_tokens {
    token_run tokens;
    static constexpr std::string_view type_name = "detokenize_tokens";
    static constexpr auto fields() { return std::tuple{field("tokens", &detokenize_tokens::tokens)}; }
};

struct detokenized {
    std::string bytes;
    std::optional<client_error> error;
    static constexpr std::string_view type_name = "detokenized";
    static constexpr auto fields() {
        return std::tuple{field("bytes", &detokenized::bytes), field("error", &detokenized::error)};
    }
};

}  // namespace fermata
