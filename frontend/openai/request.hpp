// Bodies of the OpenAI routes, parsed into what the node is asked (messages/ingress.hpp). Pure: a body and the facts of
// the resident model in, a request or a `request_error` out; no I/O, no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/openai/fields.hpp"
#include "messages/ingress.hpp"

namespace fermata::openai {

// Limits of one request. Each has a name in the documentation.
struct request_limits {
    json_limits json;
    std::size_t choices_max = 128;         // prompts times n
    std::size_t stop_strings_max = 16;
    std::size_t stop_bytes_max = 1024;     // of one stop string
    std::size_t stop_tokens_max = 256;
    std::size_t logit_bias_max = 1024;     // tokens with a bias
    std::size_t members_max = 1024;        // of one object inside messages and tools
    std::size_t session_bytes_max = 256;
    std::int64_t top_logprobs_max = 20;
};

// What parsing needs to know of the resident model.
struct model_facts {
    std::string id;
    std::uint32_t vocabulary = 0;  // 0: unknown, ids aren't checked
};

enum class api_kind : std::uint8_t { chat, completion };

// What is asked of the answer's form, beside the work itself.
struct answer_form {
    api_kind api = api_kind::chat;
    bool stream = false;
    bool include_usage = false;
    bool logprobs = false;
    bool token_ids = false;      // vLLM's return_token_ids
    std::uint32_t n = 1;         // choices of each prompt
    std::uint32_t prompts = 1;
};

struct generation_request {
    answer_form form;
    std::vector<submit> parts;  // one a prompt; `request` isn't set yet
};

// /v1/chat/completions, /v1/completions. Throw request_error.
generation_request parse_chat(std::string_view body, const model_facts& model, const request_limits& limits);
generation_request parse_completion(std::string_view body, const model_facts& model, const request_limits& limits);

// /tokenize, /detokenize: as vLLM.
struct tokenize_request {
    tokenize_text text;
    bool token_strings = false;  // return_token_strs
};
tokenize_request parse_tokenize(std::string_view body, const model_facts& model, const request_limits& limits);
detokenize_tokens parse_detokenize(std::string_view body, const model_facts& model, const request_limits& limits);

}  // namespace fermata::openai
