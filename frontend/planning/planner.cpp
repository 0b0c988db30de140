#include "frontend/planning/planner.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <variant>

#include "frontend/tokenizer/detokenizer.hpp"

namespace fermata {
namespace {

client_error bad_request(std::string param, std::string message, std::string code = {}) {
    client_error error;
    error.status = 400;
    error.type = "invalid_request_error";
    error.code = std::move(code);
    error.param = std::move(param);
    error.message = std::move(message);
    return error;
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

std::vector<token_id> chat_prompt(const submit& request, const text_model& model, const planning_limits& limits) {
    if (!model.has_chat_template())
        refuse("messages",
               "the model has no chat template; start the server with --chat-template FILE, or use /v1/completions");
    try {
        const std::string text = render_chat(model, request.messages_json, request.tools_json,
                                             request.template_arguments_json, limits.rendering);
        return model.words()->encode(text, {.parse_special = true, .add_special = false});
    } catch (const jinja::error& e) {
        refuse("messages", std::string("the chat template refused this conversation: ") + e.what());
    } catch (const std::invalid_argument& e) {
        refuse("messages", e.what());
    }
}

std::vector<token_id> token_prompt(const submit& request, const planning_limits& limits) {
    const auto tokens = request.prompt_tokens.span();
    for (std::size_t i = 0; i < tokens.size(); ++i)
        if (tokens[i] < 0 || (limits.vocabulary != 0 && static_cast<std::uint32_t>(tokens[i]) >= limits.vocabulary))
            refuse("prompt", "prompt[" + std::to_string(i) + "] is " + std::to_string(tokens[i]) +
                                 "; token ids of this model lie between 0 and " +
                                 std::to_string(limits.vocabulary - 1));
    return {tokens.begin(), tokens.end()};
}

std::vector<token_id> prompt_of(const submit& request, const text_model& model, const planning_limits& limits) {
    if (request.kind == prompt_kind::tokens) return token_prompt(request, limits);
    if (!model.has_text())
        refuse(request.kind == prompt_kind::chat ? "messages" : "prompt",
               "the model has no tokenizer: only prompts of token ids can be served");
    if (request.kind == prompt_kind::chat) return chat_prompt(request, model, limits);
    return model.words()->encode(request.prompt_text, {.parse_special = true, .add_special = true});
}

const char* prompt_field(prompt_kind kind) { return kind == prompt_kind::chat ? "messages" : "prompt"; }

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

void check_guard(const submit& request, const planning_limits& limits) {
    if (request.stop.size() > limits.stop_strings_max)
        refuse("stop", "stop has " + std::to_string(request.stop.size()) + " strings; at most " +
                           std::to_string(limits.stop_strings_max) + " are allowed");
    for (const std::string& stop : request.stop) {
        if (stop.empty()) refuse("stop", "a stop string is empty");
        if (stop.size() > limits.stop_bytes_max)
            refuse("stop", "a stop string has " + std::to_string(stop.size()) + " bytes; at most " +
                               std::to_string(limits.stop_bytes_max) + " are allowed");
    }
}

void check_choices(const submit& request, const planning_limits& limits) {
    if (request.n < 1 || request.n > limits.choices_max)
        refuse("n", "n is " + std::to_string(request.n) + "; it lies between 1 and " +
                        std::to_string(limits.choices_max));
}

void check_bias(const submit& request, const planning_limits& limits) {
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
        token_run prompt(prompt_of(request, model, limits));
        if (prompt.empty()) refuse(prompt_field(request.kind), "the prompt has no tokens");
        const std::uint32_t room = answer_room(request, prompt.size(), limits);
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
