#include "frontend/planning/planner.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>
#include <variant>

#include "frontend/client_errors.hpp"
#include "frontend/jinja/fault.hpp"
#include "frontend/tokenizer/detokenizer.hpp"

namespace fermata {
namespace {

client_error bad_request(std::string param, std::string message, std::string code = {}) {
    return make_error(400, std::move(code), std::move(message), std::move(param));
}

// A step of preparation failed: carries the client's error to the one place that answers.
struct refused_request {
    client_error error;
};

[[noreturn]] void refuse(std::string param, std::string message, std::string code = {}) {
    throw refused_request{bad_request(std::move(param), std::move(message), std::move(code))};
}

// The same conversation with every developer message as a system one.
jinja::value developer_as_system(const jinja::value& messages) {
    std::vector<jinja::value> result;
    for (const jinja::value& message : messages.items()) {
        const jinja::value* role = message.is_dict() ? message.find("role") : nullptr;
        if (!role || !role->is_string() || role->text() != "developer") {
            result.push_back(message);
            continue;
        }
        std::vector<jinja::value::pair> entries = message.entries();
        for (auto& [key, value] : entries)
            if (key.is_string() && key.text() == "role") value = jinja::value("system");
        result.push_back(jinja::value::dict(std::move(entries)));
    }
    return jinja::value::list(std::move(result));
}

bool has_developer(const jinja::value& messages) {
    return std::any_of(messages.items().begin(), messages.items().end(), [](const jinja::value& message) {
        const jinja::value* role = message.is_dict() ? message.find("role") : nullptr;
        return role && role->is_string() && role->text() == "developer";
    });
}

jinja::value template_context(const text_model& model, jinja::value messages, const jinja::value& tools,
                              const jinja::value& arguments) {
    std::vector<jinja::value::pair> entries;
    entries.emplace_back("messages", std::move(messages));
    entries.emplace_back("tools", tools);
    entries.emplace_back("documents", jinja::value());
    entries.emplace_back("add_generation_prompt", true);
    if (!model.bos_text().empty()) entries.emplace_back("bos_token", model.bos_text());
    if (!model.eos_text().empty()) entries.emplace_back("eos_token", model.eos_text());
    // A later entry replaces an earlier one, so a client's argument wins over a default.
    if (arguments.is_dict())
        for (const auto& entry : arguments.entries()) entries.push_back(entry);
    return jinja::value::dict(std::move(entries));
}

jinja::value parse_json(std::string_view text, const char* what) {
    try {
        return jinja::value::parse_json(text);
    } catch (const std::exception& e) {
        throw std::invalid_argument(std::string(what) + ": " + e.what());
    }
}

const char* prompt_field(prompt_kind kind) { return kind == prompt_kind::chat ? "messages" : "prompt"; }

// Tokenising takes time and memory that grow with the text: what can't fit is refused before.
std::vector<token_id> tokens_of(const std::string& text, const submit& request, const text_model& model,
                                const planning_limits& limits, text::encode_options how) {
    const std::uint64_t bytes_max = model.bytes_of_tokens_max(limits.max_context_tokens);
    if (text.size() > bytes_max)
        refuse(prompt_field(request.kind),
               "the prompt has " + std::to_string(text.size()) + " bytes; this server's context is " +
                   std::to_string(limits.max_context_tokens) + " tokens, which stand for at most " +
                   std::to_string(bytes_max) + " bytes",
               "context_length_exceeded");
    return model.words()->encode(text, how);
}

std::vector<token_id> chat_prompt(const submit& request, const text_model& model, const planning_limits& limits) {
    if (!model.has_chat_template())
        refuse("messages",
               "the model has no chat template; start the server with --chat-template FILE, or use /v1/completions");
    try {
        const std::string text = render_chat(model, request.messages_json, request.tools_json,
                                             request.template_arguments_json, limits.rendering);
        return tokens_of(text, request, model, limits, {.parse_special = true, .add_special = false});
    } catch (const jinja::error& e) {
        refuse("messages", std::string("the chat template refused this conversation: ") + e.what());
    } catch (const jinja::fault& e) {  // outside a template: values that nest too deep to be handed to one
        refuse("messages", e.what());
    } catch (const std::invalid_argument& e) {
        refuse("messages", e.what());
    }
}

// The ids as they came, shared.
token_run token_prompt(const submit& request, const planning_limits& limits) {
    const auto tokens = request.prompt_tokens.span();
    if (tokens.size() > limits.max_context_tokens) return request.prompt_tokens;  // will be refused by its length
    for (std::size_t i = 0; i < tokens.size(); ++i)
        if (tokens[i] < 0 || (limits.vocabulary != 0 && static_cast<std::uint32_t>(tokens[i]) >= limits.vocabulary))
            refuse("prompt", "prompt[" + std::to_string(i) + "] is " + std::to_string(tokens[i]) +
                                 "; token ids of this model lie between 0 and " +
                                 std::to_string(limits.vocabulary - 1));
    return request.prompt_tokens;
}

token_run prompt_of(const submit& request, const text_model& model, const planning_limits& limits) {
    if (request.kind == prompt_kind::tokens) return token_prompt(request, limits);
    if (!model.has_text())
        refuse(request.kind == prompt_kind::chat ? "messages" : "prompt",
               "the model has no tokenizer: only prompts of token ids can be served");
    if (request.kind == prompt_kind::chat) return token_run(chat_prompt(request, model, limits));
    return token_run(
        tokens_of(request.prompt_text, request, model, limits, {.parse_special = true, .add_special = true}));
}

// How many tokens may be sampled; refuses what can't fit (one formula for prompt and answer).
std::uint32_t answer_room(const submit& request, std::size_t prompt_tokens, const planning_limits& limits) {
    const std::string context = std::to_string(limits.max_context_tokens);
    const bool scoring = request.max_tokens == 0U;
    if (prompt_tokens > limits.max_context_tokens ||
        (!scoring && prompt_tokens == limits.max_context_tokens))
        refuse(prompt_field(request.kind),
               "the prompt has " + std::to_string(prompt_tokens) + " tokens; this server's context is " + context +
                   " tokens for prompt and answer together",
               "context_length_exceeded");
    const auto room = static_cast<std::uint32_t>(limits.max_context_tokens - prompt_tokens);
    if (!request.max_tokens) return room;
    if (*request.max_tokens > room)
        refuse("max_tokens",
               "the prompt has " + std::to_string(prompt_tokens) + " tokens and max_tokens is " +
                   std::to_string(*request.max_tokens) + "; together they exceed the context of " + context +
                   " tokens (at most " + std::to_string(room) + " are left)",
               "context_length_exceeded");
    return *request.max_tokens;
}

std::string too_many(const char* what, std::size_t found, const char* of_what, std::size_t most) {
    return std::string(what) + " has " + std::to_string(found) + " " + of_what + "; at most " + std::to_string(most) +
           " are allowed";
}

void check_guard(const submit& request, const planning_limits& limits) {
    if (request.stop.size() > limits.stop_strings_max)
        refuse("stop", too_many("stop", request.stop.size(), "strings", limits.stop_strings_max));
    if (request.stop_tokens.size() > limits.stop_tokens_max)
        refuse("stop_token_ids", too_many("stop_token_ids", request.stop_tokens.size(), "ids", limits.stop_tokens_max));
    if (request.session.size() > limits.session_bytes_max)
        refuse("fermata.session", too_many("the session", request.session.size(), "bytes", limits.session_bytes_max));
    for (const std::string& stop : request.stop) {
        if (stop.empty()) refuse("stop", "a stop string is empty");
        if (stop.size() > limits.stop_bytes_max)
            refuse("stop", "a stop string has " + std::to_string(stop.size()) + " bytes; at most " +
                               std::to_string(limits.stop_bytes_max) + " are allowed");
    }
}

constexpr float least = std::numeric_limits<float>::min();  // "above 0"

void check_range(const char* name, float value, float lowest, int highest) {
    if (value >= lowest && value <= static_cast<float>(highest)) return;  // false for NaN
    const std::string range = lowest == least ? " must be above 0 and at most "
                                              : " lies between " + std::to_string(static_cast<int>(lowest)) + " and ";
    refuse(name, name + range + std::to_string(highest));
}

// The ranges of the HTTP interface.
void check_sampling(const sampling_params& how) {
    check_range("temperature", how.temperature, 0, 2);
    check_range("top_p", how.top_p, least, 1);
    check_range("min_p", how.min_p, 0, 1);
    check_range("repetition_penalty", how.repetition_penalty, least, 100);
    check_range("frequency_penalty", how.frequency_penalty, -2, 2);
    check_range("presence_penalty", how.presence_penalty, -2, 2);
    for (const token_bias& entry : how.logit_bias) check_range("logit_bias", entry.bias, -100, 100);
}

// What is reported costs memory with every token.
void check_report(const submit& request, std::size_t prompt_tokens, std::uint32_t room, const planning_limits& limits) {
    if (request.report.top_logprobs > limits.top_logprobs_max)
        refuse("top_logprobs", "top_logprobs is " + std::to_string(request.report.top_logprobs) + "; at most " +
                                   std::to_string(limits.top_logprobs_max) + " are allowed");
    const std::uint64_t positions =
        (request.report.logits ? room : 0) + (request.report.prompt_logits ? prompt_tokens : 0);
    const std::uint64_t bytes = positions * limits.vocabulary * sizeof(float) * request.n;
    if (bytes > limits.logits_bytes_max)
        refuse("logits", "the raw logits of " + std::to_string(positions * request.n) + " positions have " +
                             std::to_string(bytes) + " bytes; at most " + std::to_string(limits.logits_bytes_max) +
                             " are allowed");
}

void check_choices(const submit& request, const planning_limits& limits) {
    if (request.n < 1 || request.n > limits.choices_max)
        refuse("n", "n is " + std::to_string(request.n) + "; it lies between 1 and " +
                        std::to_string(limits.choices_max));
}

void check_bias(const submit& request, const planning_limits& limits) {
    if (request.sampling.logit_bias.size() > limits.logit_bias_max)
        refuse("logit_bias", too_many("logit_bias", request.sampling.logit_bias.size(), "tokens", limits.logit_bias_max));
    for (const token_bias& entry : request.sampling.logit_bias)
        if (entry.token < 0 ||
            (limits.vocabulary != 0 && static_cast<std::uint32_t>(entry.token) >= limits.vocabulary))
            refuse("logit_bias", "logit_bias names token " + std::to_string(entry.token) +
                                     "; token ids of this model lie between 0 and " +
                                     std::to_string(limits.vocabulary - 1));
}

}  // namespace

std::string render_chat(const text_model& model, std::string_view messages_json, std::string_view tools_json,
                        std::string_view arguments_json, const jinja::render_options& options) {
    const jinja::value messages = parse_json(messages_json, "messages");
    if (!messages.is_sequence() || messages.items().empty())
        throw std::invalid_argument("messages must be a list with at least one message");
    const jinja::value tools = tools_json.empty() ? jinja::value() : parse_json(tools_json, "tools");
    const jinja::value arguments =
        arguments_json.empty() ? jinja::value() : parse_json(arguments_json, "chat_template_kwargs");
    try {
        return model.chat_template().render(template_context(model, messages, tools, arguments), options);
    } catch (const jinja::error&) {
        // Many templates know no developer role; those that do render it themselves.
        if (!has_developer(messages)) throw;
    }
    return model.chat_template().render(template_context(model, developer_as_system(messages), tools, arguments),
                                        options);
}

prepared prepare(const submit& request, const text_model& model, const planning_limits& limits,
                 std::uint64_t drawn_seed, time_ns now) {
    prepared result;
    result.request = request.request;
    result.order.request = request.request;
    try {
        check_choices(request, limits);
        check_guard(request, limits);
        check_bias(request, limits);
        check_sampling(request.sampling);
        const token_run prompt = prompt_of(request, model, limits);
        if (prompt.empty()) refuse(prompt_field(request.kind), "the prompt has no tokens");
        const std::uint32_t room = answer_room(request, prompt.size(), limits);
        check_report(request, prompt.size(), room, limits);
        // Tokens may hold half characters: what is echoed is text like any other.
        if (request.echo && model.has_text())
            result.echo_text = request.kind == prompt_kind::text
                                   ? request.prompt_text
                                   : text::incremental_detokenizer(model.words()).push(prompt.span());
        for (std::uint32_t choice = 0; choice < request.n; ++choice) {
            auto spec = std::make_shared<sequence_spec>();
            spec->request = request.request;
            spec->choice = choice;
            spec->prompt = prompt;
            spec->sampling = request.sampling;
            if (!request.seed_given) spec->sampling.seed = drawn_seed;
            spec->guard = {.stop = request.stop,
                           .stop_tokens = request.stop_tokens,
                           .ignore_eos = request.ignore_eos,
                           .max_new_tokens = token_pos(room)};
            spec->report = request.report;
            spec->session = request.session;
            result.order.choices.push_back(std::move(spec));
        }
        if (request.deadline_ms != 0) result.order.deadline = now + time_ns{request.deadline_ms} * 1'000'000;
    } catch (const refused_request& r) {
        result.error = r.error;
    } catch (const text::tokenizer_error& e) {
        result.error = bad_request(prompt_field(request.kind), e.what());
    }
    return result;
}

tokenized tokenize(const tokenize_text& request, const text_model& model, const planning_limits& limits) {
    tokenized result;
    const bool chat = !request.messages_json.empty();
    try {
        if (!model.has_text()) refuse(chat ? "messages" : "prompt", "the model has no tokenizer");
        if (chat && !model.has_chat_template())
            refuse("messages", "the model has no chat template; start the server with --chat-template FILE");
        const std::string text = chat ? render_chat(model, request.messages_json, request.tools_json,
                                                    request.template_arguments_json, limits.rendering)
                                      : request.text;
        result.tokens = token_run(
            model.words()->encode(text, {.parse_special = request.special, .add_special = request.add_bos}));
    } catch (const refused_request& r) {
        result.error = r.error;
    } catch (const std::exception& e) {
        result.error = bad_request(chat ? "messages" : "prompt", e.what());
    }
    return result;
}

detokenized detokenize(const detokenize_tokens& request, const text_model& model) {
    detokenized result;
    try {
        if (!model.has_text()) refuse("tokens", "the model has no tokenizer");
        result.bytes = model.words()->decode(request.tokens.span(), true);
    } catch (const refused_request& r) {
        result.error = r.error;
    } catch (const text::tokenizer_error& e) {
        result.error = bad_request("tokens", e.what());
    }
    return result;
}

}  // namespace fermata
