#include "frontend/openai/not_yet.hpp"

#include <array>

namespace fermata::openai {
namespace {

// Which values mean the same as absence. Null always does.
enum class neutral : std::uint8_t {
    nothing,      // only null
    empty,        // an empty list, object or string
    is_false,
    is_true,
    zero,
    one,
    auto_or_default,  // the strings "auto" and "default"
    medium,       // the string "medium"
};

struct entry {
    std::string_view name;
    neutral means;
    bool chat = true;
    bool completion = true;
};

constexpr entry table[] = {
    // OpenAI
    {"audio", neutral::nothing, true, false},
    {"function_call", neutral::auto_or_default, true, false},
    {"functions", neutral::empty, true, false},
    {"parallel_tool_calls", neutral::is_true, true, false},
    {"prediction", neutral::nothing, true, false},
    {"service_tier", neutral::auto_or_default},
    {"store", neutral::is_false, true, false},
    {"suffix", neutral::empty, false, true},
    {"verbosity", neutral::medium, true, false},
    {"web_search_options", neutral::nothing, true, false},
    // vLLM, SGLang
    {"allowed_token_ids", neutral::empty},
    {"bad_words", neutral::empty},
    {"chat_template", neutral::nothing, true, false},
    {"continue_final_message", neutral::is_false, true, false},
    {"ebnf", neutral::nothing},
    {"guided_choice", neutral::nothing},
    {"guided_grammar", neutral::nothing},
    {"guided_json", neutral::nothing},
    {"guided_regex", neutral::nothing},
    {"include_stop_str_in_output", neutral::is_false},
    {"logits_processors", neutral::empty},
    {"lora_path", neutral::nothing},
    {"min_tokens", neutral::zero},
    {"no_stop_trim", neutral::is_false},
    {"prompt_embeds", neutral::nothing, false, true},
    {"prompt_logprobs", neutral::nothing},
    {"regex", neutral::nothing},
    {"return_hidden_states", neutral::is_false},
    {"skip_special_tokens", neutral::is_true},
    {"structural_tag", neutral::nothing},
    {"structured_outputs", neutral::nothing},
    {"truncate_prompt_tokens", neutral::nothing},
    {"use_beam_search", neutral::is_false},
    // llama-server
    {"dry_multiplier", neutral::zero},
    {"dynatemp_range", neutral::zero},
    {"grammar", neutral::empty},
    {"json_schema", neutral::nothing},
    {"mirostat", neutral::zero},
    {"typical_p", neutral::one},
    {"xtc_probability", neutral::zero},
};

bool is_number(json_value value, double wanted) { return value.is(json_kind::number) && value.number() == wanted; }

bool is_neutral(json_value value, neutral means) {
    switch (means) {
        case neutral::nothing: return false;
        case neutral::empty:
            if (value.is(json_kind::string)) return value.equals("");
            return (value.is(json_kind::array) || value.is(json_kind::object)) && value.size() == 0;
        case neutral::is_false: return value.is(json_kind::boolean) && !value.boolean();
        case neutral::is_true: return value.is(json_kind::boolean) && value.boolean();
        case neutral::zero: return is_number(value, 0);
        case neutral::one: return is_number(value, 1);
        case neutral::auto_or_default:
            return value.equals("auto") || value.equals("default") || value.equals("none");
        case neutral::medium: return value.equals("medium");
    }
    return false;
}

[[noreturn]] void refuse_field(const std::string& name) {
    refuse(name, "'" + name + "' isn't supported by this server yet; leave it out", "unsupported_parameter");
}

void check_response_format(const fields& body) {
    const auto format = body.nested("response_format");
    if (!format) return;
    const auto type = format->text("type");
    if (!type) refuse("response_format.type", "'response_format.type' is missing");
    if (*type == "text") return;
    if (*type == "json_object" || *type == "json_schema")
        refuse("response_format", "'response_format' of type '" + *type + "' isn't supported by this server yet; use 'text'",
               "unsupported_parameter");
    refuse("response_format.type", "'response_format.type' must be text, json_object or json_schema", "invalid_value");
}

void check_modalities(const fields& body) {
    const auto modalities = body.list("modalities");
    if (!modalities) return;
    std::size_t index = 0;
    modalities->for_each_element([&](json_value modality) {
        const auto path = element_path("modalities", index++);
        if (!modality.is(json_kind::string)) refuse_type(path, "a string", modality);
        if (!modality.equals("text"))
            refuse("modalities", "'modalities': this server only answers in text", "unsupported_parameter");
    });
}

void check_tool_choice(const fields& body) {
    const auto choice = body.get("tool_choice");
    if (!choice || choice->equals("auto") || choice->equals("none")) return;
    if (choice->equals("required") || choice->is(json_kind::object))
        refuse("tool_choice", "'tool_choice' must be 'auto' or 'none': a required or named tool isn't supported by this server yet",
               "unsupported_parameter");
    refuse("tool_choice", "'tool_choice' must be 'auto' or 'none'", "invalid_value");
}

void check_best_of(const fields& body) {
    const auto best_of = body.integer("best_of", 1, 1'000'000);
    const auto n = body.integer("n");  // its range is checked where it is read
    if (best_of && *best_of != 1 && *best_of != n.value_or(1)) refuse_field("best_of");
}

}  // namespace

void refuse_not_yet(const fields& body, api_kind api) {
    for (const auto& each : table) {
        if (!(api == api_kind::chat ? each.chat : each.completion)) continue;
        const auto value = body.get(each.name);
        if (value && !is_neutral(*value, each.means)) refuse_field(std::string(each.name));
    }
    check_response_format(body);
    if (api == api_kind::chat) {
        check_modalities(body);
        check_tool_choice(body);
        if (body.boolean("echo").value_or(false)) refuse_field("echo");
        if (body.boolean("add_special_tokens").value_or(false)) refuse_field("add_special_tokens");
    } else {
        check_best_of(body);
        if (!body.boolean("add_special_tokens").value_or(true)) refuse_field("add_special_tokens");
    }
}

}  // namespace fermata::openai
