#include "frontend/openai/request.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "frontend/client_errors.hpp"
#include "frontend/openai/conversation.hpp"
#include "frontend/openai/not_yet.hpp"
#include "frontend/openai/text.hpp"

namespace fermata::openai {
namespace {

constexpr std::int64_t tokens_max = std::numeric_limits<std::int32_t>::max();

// Line and column (from 1) of a byte, so that a hand-written body can be mended.
std::string place(std::string_view body, std::size_t offset) {
    std::size_t line = 1, start = 0;
    for (std::size_t i = 0; i < offset && i < body.size(); ++i)
        if (body[i] == '\n') {
            ++line;
            start = i + 1;
        }
    return "byte " + std::to_string(offset) + " (line " + std::to_string(line) + ", column " +
           std::to_string(offset - start + 1) + ")";
}

// Runs `parse` on the body as an object; a body that isn't JSON is a 400 that says where.
template <class Parse>
auto with_body(std::string_view body, const request_limits& limits, Parse&& parse) {
    if (body.find_first_not_of(" \t\r\n") == body.npos) refuse("", "the body is empty; it must be a JSON object");
    try {
        const json_document document(body, limits.json);
        return parse(fields(document.root(), ""));
    } catch (const json_error& e) {
        refuse("", std::string("the body isn't valid JSON: ") + e.what() + " at " + place(body, e.offset()), "invalid_json");
    }
}

void check_model(const fields& body, const model_facts& model) {
    const auto name = body.text("model");
    if (!name || *name == model.id) return;
    constexpr std::size_t shown_bytes = 200;
    throw request_error(make_error(404, "model_not_found",
                                   "the model '" + name->substr(0, shown_bytes) + "' does not exist; this server has '" +
                                       model.id + "'",
                                   "model"));
}

token_id token_of(json_value value, std::string_view list, std::size_t index, const model_facts& model) {
    const auto id = value.is(json_kind::number) ? value.integer() : std::nullopt;
    const auto end = model.vocabulary != 0 ? std::int64_t{model.vocabulary} : tokens_max;
    if (id && *id >= 0 && *id < end) return static_cast<token_id>(*id);
    const auto path = element_path(std::string(list), index);  // made only where it is needed: a prompt has many tokens
    if (!id) refuse_type(path, "a token id", value);
    refuse(path, "'" + path + "' must be a token id between 0 and " + std::to_string(end - 1) + ", not " + std::to_string(*id),
           "invalid_value");
}

std::vector<token_bias> logit_bias(const fields& body, const model_facts& model, const request_limits& limits) {
    std::vector<token_bias> result;
    const auto map = body.nested("logit_bias");
    if (!map) return result;
    if (map->object().size() > limits.logit_bias_max)
        refuse("logit_bias", "'logit_bias' has " + std::to_string(map->object().size()) + " tokens; at most " +
                                 std::to_string(limits.logit_bias_max) + " are allowed", "invalid_value");
    map->object().for_each_member([&](json_value name, json_value value) {
        const auto key = name.string();
        const auto path = map->path_of(key.size() <= 32 ? key : "...");
        std::int64_t id = -1;
        const auto end = key.data() + key.size();
        const auto read = std::from_chars(key.data(), end, id);
        const auto ids_end = model.vocabulary != 0 ? std::int64_t{model.vocabulary} : tokens_max;
        if (read.ec != std::errc{} || read.ptr != end || id < 0 || id >= ids_end)
            refuse("logit_bias", "'" + path + "' must be named by a token id between 0 and " + std::to_string(ids_end - 1),
                   "invalid_value");
        if (!value.is(json_kind::number)) refuse_type(path, "a number", value);
        const double bias = value.number();
        if (!(bias >= -100 && bias <= 100))
            refuse(path, "'" + path + "' must be a number between -100 and 100", "invalid_value");
        result.push_back({static_cast<token_id>(id), static_cast<float>(bias)});
    });
    // One bias a token: the last one named, as for any repeated member.
    std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.token < b.token; });
    std::vector<token_bias> unique;
    for (const auto& each : result) {
        if (!unique.empty() && unique.back().token == each.token)
            unique.back() = each;
        else
            unique.push_back(each);
    }
    return unique;
}

// Any 64 bits: signed, or unsigned where that doesn't hold it.
std::uint64_t seed_of(const fields& body, json_value given) {
    if (given.is(json_kind::number) && !given.integer()) {
        const auto raw = given.raw();
        std::uint64_t large = 0;
        const auto read = std::from_chars(raw.data(), raw.data() + raw.size(), large);
        if (read.ec == std::errc{} && read.ptr == raw.data() + raw.size()) return large;
    }
    return static_cast<std::uint64_t>(*body.integer("seed"));
}

sampling_params sampling(const fields& body, const model_facts& model, const request_limits& limits, submit& out) {
    constexpr double positive = std::numeric_limits<float>::min();
    sampling_params result;
    result.temperature = static_cast<float>(body.number("temperature", 0, 2).value_or(1));
    // 0 keeps the most likely token alone, as the smallest positive value does.
    result.top_p = static_cast<float>(std::max(positive, body.number("top_p", 0, 1).value_or(1)));
    const auto top_k = body.integer("top_k", -1, tokens_max).value_or(0);
    result.top_k = static_cast<std::uint32_t>(std::max<std::int64_t>(top_k, 0));
    result.min_p = static_cast<float>(body.number("min_p", 0, 1).value_or(0));
    result.frequency_penalty = static_cast<float>(body.number("frequency_penalty", -2, 2).value_or(0));
    result.presence_penalty = static_cast<float>(body.number("presence_penalty", -2, 2).value_or(0));
    const auto repetition = body.number("repetition_penalty", 0, 100).value_or(1);
    if (repetition <= 0) refuse("repetition_penalty", "'repetition_penalty' must be greater than 0", "invalid_value");
    result.repetition_penalty = static_cast<float>(std::max(positive, repetition));
    result.logit_bias = logit_bias(body, model, limits);
    if (const auto given = body.get("seed")) {
        result.seed = seed_of(body, *given);
        out.seed_given = true;
    }
    return result;
}

std::vector<std::string> stop_strings(const fields& body, const request_limits& limits) {
    std::vector<std::string> result;
    const auto stop = body.get("stop");
    if (!stop) return result;
    const auto add = [&](json_value value, const std::string& path) {
        if (!value.is(json_kind::string)) refuse_type(path, "a string", value);
        auto text = value.string();
        if (text.empty()) refuse(path, "'" + path + "' must not be an empty string", "invalid_value");
        if (text.size() > limits.stop_bytes_max)
            refuse(path, "'" + path + "' has " + std::to_string(text.size()) + " bytes; at most " +
                             std::to_string(limits.stop_bytes_max) + " are allowed", "invalid_value");
        result.push_back(std::move(text));
    };
    if (stop->is(json_kind::string)) {
        add(*stop, "stop");
    } else if (stop->is(json_kind::array)) {
        if (stop->size() > limits.stop_strings_max)
            refuse("stop", "'stop' has " + std::to_string(stop->size()) + " strings; at most " +
                               std::to_string(limits.stop_strings_max) + " are allowed", "invalid_value");
        std::size_t index = 0;
        stop->for_each_element([&](json_value each) { add(each, element_path("stop", index++)); });
    } else {
        refuse_type("stop", "a string or a list of strings", *stop);
    }
    return result;
}

std::vector<token_id> stop_tokens(const fields& body, const model_facts& model, const request_limits& limits) {
    std::vector<token_id> result;
    const auto list = body.list("stop_token_ids");
    if (!list) return result;
    if (list->size() > limits.stop_tokens_max)
        refuse("stop_token_ids", "'stop_token_ids' has " + std::to_string(list->size()) + " ids; at most " +
                                     std::to_string(limits.stop_tokens_max) + " are allowed", "invalid_value");
    std::size_t index = 0;
    list->for_each_element(
        [&](json_value each) { result.push_back(token_of(each, "stop_token_ids", index++, model)); });
    return result;
}

// The project's own extension object.
void fermata_object(const fields& body, submit& out, const request_limits& limits) {
    const auto own = body.nested("fermata");
    if (!own) return;
    out.session = own->text("session").value_or("");
    if (out.session.size() > limits.session_bytes_max)
        refuse("fermata.session", "'fermata.session' has " + std::to_string(out.session.size()) + " bytes; at most " +
                                      std::to_string(limits.session_bytes_max) + " are allowed", "invalid_value");
    if (!own->text("fork_of").value_or("").empty())
        refuse("fermata.fork_of", "'fermata.fork_of' isn't supported by this server yet; leave it out", "unsupported_parameter");
    if (own->integer("priority").value_or(0) != 0)
        refuse("fermata.priority", "'fermata.priority' isn't supported by this server yet; leave it out or 0", "unsupported_parameter");
    own->number("expected_wait_s", 0, 1e9);  // a hint; nothing makes use of it yet
    out.deadline_ms = static_cast<std::uint32_t>(own->integer("deadline_ms", 0, tokens_max).value_or(0));
}

void stream_fields(const fields& body, answer_form& form) {
    form.stream = body.boolean("stream").value_or(false);
    const auto options = body.nested("stream_options");
    if (!options) return;
    if (!form.stream) refuse("stream_options", "'stream_options' is only allowed when 'stream' is true", "invalid_value");
    form.include_usage = options->boolean("include_usage").value_or(false);
}

// What both generation routes share: everything but the prompt, the log-probabilities and the token limit.
submit common(const fields& body, answer_form& form, const model_facts& model, const request_limits& limits) {
    check_model(body, model);
    refuse_not_yet(body, form.api);
    stream_fields(body, form);
    form.token_ids = body.boolean("return_token_ids").value_or(false);
    submit result;
    const auto n = body.integer("n", 1, static_cast<std::int64_t>(limits.choices_max)).value_or(1);
    form.n = result.n = static_cast<std::uint32_t>(n);
    result.sampling = sampling(body, model, limits, result);
    result.stop = stop_strings(body, limits);
    result.stop_tokens = stop_tokens(body, model, limits);
    result.ignore_eos = body.boolean("ignore_eos").value_or(false);
    body.text("user");
    fermata_object(body, result, limits);
    return result;
}

// Variables that the client hands to the chat template.
std::string template_arguments(const fields& body, const request_limits& limits, bool generation_prompt) {
    std::string out;
    const auto add = [&](std::string_view raw_name, std::string_view raw_value) {
        out += out.empty() ? '{' : ',';
        out.append(raw_name);
        out += ':';
        out.append(raw_value);
    };
    if (!generation_prompt) add("\"add_generation_prompt\"", "false");
    if (const auto effort = body.text("reasoning_effort")) add("\"reasoning_effort\"", body.get("reasoning_effort")->raw());
    if (const auto documents = body.list("documents")) {
        check_members(*documents, "documents", limits);
        add("\"documents\"", documents->raw());
    }
    if (const auto more = body.nested("chat_template_kwargs")) {
        check_members(more->object(), "chat_template_kwargs", limits);
        more->object().for_each_member([&](json_value name, json_value value) {
            if (name.equals("messages") || name.equals("tools") || name.equals("chat_template"))
                refuse(more->path_of(name.string()),
                       "'" + more->path_of(name.string()) + "': messages, tools and the template have fields of their own",
                       "invalid_value");
            add(name.raw(), value.raw());
        });
    }
    if (!out.empty()) out += '}';
    return out;
}

void chat_logprobs(const fields& body, submit& request, answer_form& form, const request_limits& limits) {
    form.logprobs = request.report.logprobs = body.boolean("logprobs").value_or(false);
    const auto top = body.integer("top_logprobs", 0, limits.top_logprobs_max).value_or(0);
    if (top > 0 && !form.logprobs)
        refuse("top_logprobs", "'top_logprobs' needs 'logprobs' to be true", "invalid_value");
    request.report.top_logprobs = static_cast<std::uint32_t>(top);
}

void completion_logprobs(const fields& body, submit& request, answer_form& form, const request_limits& limits) {
    const auto value = body.get("logprobs");
    if (!value || (value->is(json_kind::boolean) && !value->boolean())) return;
    const auto top = *body.integer("logprobs", 0, limits.top_logprobs_max);
    form.logprobs = request.report.logprobs = true;
    request.report.top_logprobs = static_cast<std::uint32_t>(top);
}

std::optional<std::uint32_t> token_limit(const fields& body, std::string_view name, std::int64_t lowest) {
    const auto value = body.integer(name, lowest, tokens_max);
    if (!value) return std::nullopt;
    return static_cast<std::uint32_t>(*value);
}

submit token_prompt(submit base, json_value list, const std::string& path, const model_facts& model) {
    std::vector<token_id> tokens;
    tokens.reserve(list.size());
    list.for_each_element([&](json_value each) { tokens.push_back(token_of(each, path, tokens.size(), model)); });
    if (tokens.empty()) refuse(path, "'" + path + "' must not be empty", "invalid_value");
    base.kind = prompt_kind::tokens;
    base.prompt_tokens = token_run(std::move(tokens));
    return base;
}

submit text_prompt(submit base, json_value text) {
    base.kind = prompt_kind::text;
    base.prompt_text = text.string();
    return base;
}

// `prompt`: a string, a list of strings, a list of token ids, or a list of such lists.
std::vector<submit> prompts(const fields& body, const submit& base, const model_facts& model, const request_limits& limits) {
    const auto prompt = body.get("prompt");
    if (!prompt) refuse("prompt", "'prompt' is missing");
    std::vector<submit> result;
    if (prompt->is(json_kind::string)) {
        result.push_back(text_prompt(base, *prompt));
        return result;
    }
    if (!prompt->is(json_kind::array)) refuse_type("prompt", "a string, a list of strings or a list of token ids", *prompt);
    if (prompt->size() == 0) refuse("prompt", "'prompt' must not be empty", "invalid_value");
    std::optional<json_value> first;
    prompt->for_each_element([&](json_value each) {
        if (!first) first = each;
    });
    if (first->is(json_kind::number)) {
        result.push_back(token_prompt(base, *prompt, "prompt", model));
        return result;
    }
    if (prompt->size() * base.n > limits.choices_max)
        refuse("prompt", "'prompt' has " + std::to_string(prompt->size()) + " prompts with n = " + std::to_string(base.n) +
                             "; at most " + std::to_string(limits.choices_max) + " answers are allowed", "invalid_value");
    prompt->for_each_element([&](json_value each) {
        const auto path = element_path("prompt", result.size());
        if (each.is(json_kind::string) && first->is(json_kind::string))
            result.push_back(text_prompt(base, each));
        else if (each.is(json_kind::array) && first->is(json_kind::array))
            result.push_back(token_prompt(base, each, path, model));
        else
            refuse_type(path, first->is(json_kind::string) ? "a string, like the first" : first->is(json_kind::array) ? "a list of token ids" : "a string or a list of token ids", each);
    });
    return result;
}

}  // namespace

generation_request parse_chat(std::string_view body, const model_facts& model, const request_limits& limits) {
    return with_body(body, limits, [&](const fields& f) {
        generation_request result;
        result.form.api = api_kind::chat;
        auto request = common(f, result.form, model, limits);
        request.kind = prompt_kind::chat;
        const auto messages = f.get("messages");
        if (!messages) refuse("messages", "'messages' is missing");
        request.messages_json = conversation_json(*messages, limits);
        if (const auto tools = f.get("tools")) request.tools_json = tools_json(*tools, limits);
        request.template_arguments_json = template_arguments(f, limits, f.boolean("add_generation_prompt").value_or(true));
        chat_logprobs(f, request, result.form, limits);
        request.max_tokens = token_limit(f, "max_tokens", 1);
        if (const auto newer = token_limit(f, "max_completion_tokens", 1)) request.max_tokens = newer;
        result.parts.push_back(std::move(request));
        return result;
    });
}

generation_request parse_completion(std::string_view body, const model_facts& model, const request_limits& limits) {
    return with_body(body, limits, [&](const fields& f) {
        generation_request result;
        result.form.api = api_kind::completion;
        auto base = common(f, result.form, model, limits);
        completion_logprobs(f, base, result.form, limits);
        base.echo = f.boolean("echo").value_or(false);
        base.report.prompt_logprobs = base.echo && result.form.logprobs;
        base.max_tokens = token_limit(f, "max_tokens", 0);
        if (const auto newer = token_limit(f, "max_completion_tokens", 0)) base.max_tokens = newer;
        result.parts = prompts(f, base, model, limits);
        result.form.prompts = static_cast<std::uint32_t>(result.parts.size());
        return result;
    });
}

tokenize_request parse_tokenize(std::string_view body, const model_facts& model, const request_limits& limits) {
    return with_body(body, limits, [&](const fields& f) {
        tokenize_request result;
        check_model(f, model);
        result.token_strings = f.boolean("return_token_strs").value_or(false);
        if (const auto messages = f.get("messages")) {
            if (f.get("prompt")) refuse("prompt", "give 'prompt' or 'messages', not both", "invalid_value");
            if (f.boolean("continue_final_message").value_or(false) || f.get("chat_template"))
                refuse_not_yet(f, api_kind::chat);
            result.text.messages_json = conversation_json(*messages, limits);
            if (const auto tools = f.get("tools")) result.text.tools_json = tools_json(*tools, limits);
            const auto generation_prompt = f.boolean("add_generation_prompt").value_or(true);
            result.text.template_arguments_json = template_arguments(f, limits, generation_prompt);
            result.text.add_bos = f.boolean("add_special_tokens").value_or(false);
            return result;
        }
        auto text = f.text("prompt");
        if (!text) refuse("prompt", "'prompt' or 'messages' is missing");
        result.text.text = *std::move(text);
        result.text.add_bos = f.boolean("add_special_tokens").value_or(true);
        return result;
    });
}

detokenize_tokens parse_detokenize(std::string_view body, const model_facts& model, const request_limits& limits) {
    return with_body(body, limits, [&](const fields& f) {
        check_model(f, model);
        const auto list = f.list("tokens");
        if (!list) refuse("tokens", "'tokens' is missing");
        std::vector<token_id> tokens;
        tokens.reserve(list->size());
        list->for_each_element([&](json_value each) { tokens.push_back(token_of(each, "tokens", tokens.size(), model)); });
        return detokenize_tokens{token_run(std::move(tokens))};
    });
}

}  // namespace fermata::openai
