#include "frontend/openai/conversation.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "frontend/openai/text.hpp"

namespace fermata::openai {
namespace {

constexpr std::array<std::string_view, 6> roles = {"system", "developer", "user", "assistant", "tool", "function"};

// A member list under construction.
class object_writer {
public:
    explicit object_writer(std::string& out) : out_(out) { out_ += '{'; }
    std::string& member(std::string_view raw_name) {
        if (!first_) out_ += ',';
        first_ = false;
        out_.append(raw_name);
        out_ += ':';
        return out_;
    }
    void end() { out_ += '}'; }

private:
    std::string& out_;
    bool first_ = true;
};

std::string part_text(json_value part, const std::string& path) {
    const fields f(part, path);
    const auto type = f.text("type");
    if (!type) refuse(f.path_of("type"), "'" + f.path_of("type") + "' is missing");
    if (*type == "text" || *type == "input_text" || *type == "output_text") {
        auto text = f.text("text");
        if (!text) refuse(f.path_of("text"), "'" + f.path_of("text") + "' is missing");
        return *std::move(text);
    }
    if (*type == "refusal") {
        auto text = f.text("refusal");
        if (!text) refuse(f.path_of("refusal"), "'" + f.path_of("refusal") + "' is missing");
        return *std::move(text);
    }
    const bool media = *type == "image_url" || *type == "input_image" || *type == "input_audio" || *type == "video_url" ||
                       *type == "audio_url" || *type == "file" || *type == "input_file";
    if (media)
        refuse(f.path_of("type"), "content parts of type '" + *type + "' aren't supported by this server yet; send text parts",
               "unsupported_content");
    refuse(f.path_of("type"), "'" + f.path_of("type") + "' must be 'text'", "invalid_value");
}

std::string joined_parts(json_value parts, const std::string& path) {
    std::string text;
    std::size_t index = 0;
    parts.for_each_element([&](json_value part) {
        if (index != 0) text += '\n';
        text += part_text(part, element_path(path, index++));
    });
    return text;
}

void append_content(std::string& out, const fields& message, const std::string& role) {
    const auto path = message.path_of("content");
    const auto content = message.get("content");
    if (!content) {
        if (role != "assistant")
            refuse(path, "'" + path + "' is missing: a message of the role '" + role + "' needs a string or a list of text parts");
        out += "\"\"";
    } else if (content->is(json_kind::string)) {
        out.append(content->raw());
    } else if (content->is(json_kind::array)) {
        append_json_string(out, joined_parts(*content, path));
    } else {
        refuse_type(path, "a string or a list of text parts", *content);
    }
}

// `arguments` as an object: a string must spell one; an object is taken as it is.
void append_arguments(std::string& out, json_value arguments, const std::string& path, const request_limits& limits) {
    if (arguments.is(json_kind::object)) {
        out.append(arguments.raw());
        return;
    }
    if (!arguments.is(json_kind::string)) refuse_type(path, "a string that holds a JSON object", arguments);
    const auto text = arguments.string();
    if (text.find_first_not_of(" \t\r\n") == text.npos) {
        out += "{}";
        return;
    }
    try {
        const json_document parsed(text, limits.json);
        if (!parsed.root().is(json_kind::object))
            refuse(path, "'" + path + "' must spell a JSON object, not " + std::string(name_of(parsed.root().kind())),
                   "invalid_value");
        check_members(parsed.root(), path, limits);
        out.append(parsed.root().raw());
    } catch (const json_error& e) {
        refuse(path, "'" + path + "' must spell a JSON object: " + e.what() + " at byte " + std::to_string(e.offset()),
               "invalid_value");
    }
}

void append_function(std::string& out, json_value function, const std::string& path, const request_limits& limits) {
    const fields f(function, path);
    if (!f.text("name")) refuse(f.path_of("name"), "'" + f.path_of("name") + "' is missing");
    object_writer writer(out);
    bool arguments_seen = false;
    function.for_each_member([&](json_value name, json_value) {
        const auto key = name.string();
        if (key == "arguments") {
            if (arguments_seen) return;
            arguments_seen = true;
            const auto value = f.get("arguments");
            writer.member(name.raw());
            if (value)
                append_arguments(out, *value, f.path_of("arguments"), limits);
            else
                out += "{}";
            return;
        }
        writer.member(name.raw()).append(f.object().find(key)->raw());
    });
    if (!arguments_seen) writer.member("\"arguments\"") += "{}";
    writer.end();
}

void append_tool_calls(std::string& out, json_value calls, const std::string& path, const request_limits& limits) {
    if (!calls.is(json_kind::array)) refuse_type(path, "a list", calls);
    out += '[';
    std::size_t index = 0;
    calls.for_each_element([&](json_value call) {
        const auto here = element_path(path, index);
        if (index++ != 0) out += ',';
        const fields f(call, here);
        const auto type = f.text("type");
        if (type && *type != "function")
            refuse(f.path_of("type"), "'" + f.path_of("type") + "' must be 'function'", "invalid_value");
        f.text("id");
        const auto function = f.get("function");
        if (!function) refuse(f.path_of("function"), "'" + f.path_of("function") + "' is missing");
        object_writer writer(out);
        bool written = false;
        call.for_each_member([&](json_value name, json_value value) {
            if (!name.equals("function")) {
                writer.member(name.raw()).append(value.raw());
            } else if (!written) {
                written = true;
                writer.member(name.raw());
                append_function(out, *function, f.path_of("function"), limits);
            }
        });
        writer.end();
    });
    out += ']';
}

// The one reasoning text of a message, if it has any.
std::optional<std::string> reasoning_of(const fields& message) {
    const auto read = [&](std::string_view name) -> std::optional<std::string> {
        const auto value = message.get(name);
        if (value && (value->is(json_kind::number) || value->is(json_kind::boolean)))
            refuse_type(message.path_of(name), "a string", *value);
        // An object of this name is another program's affair: left alone.
        if (!value || !value->is(json_kind::string)) return std::nullopt;
        return value->string();
    };
    auto content = read("reasoning_content");
    return content && !content->empty() ? content : (read("reasoning") ? read("reasoning") : content);
}

void append_message(std::string& out, json_value message, const std::string& path, const request_limits& limits) {
    const fields f(message, path);
    const auto role = f.text("role");
    if (!role) refuse(f.path_of("role"), "'" + f.path_of("role") + "' is missing");
    if (std::find(roles.begin(), roles.end(), *role) == roles.end())
        refuse(f.path_of("role"),
               "'" + f.path_of("role") + "' must be one of system, developer, user, assistant, tool, function",
               "invalid_value");
    if (f.get("audio"))
        refuse(f.path_of("audio"), "'" + f.path_of("audio") + "': audio isn't supported by this server yet", "unsupported_content");
    f.text("name");
    f.text("tool_call_id");
    check_members(message, path, limits);
    const auto reasoning = reasoning_of(f);

    object_writer writer(out);
    std::vector<std::string> seen;
    bool has_content = false;
    message.for_each_member([&](json_value name, json_value) {
        auto key = name.string();
        if (std::find(seen.begin(), seen.end(), key) != seen.end()) return;
        const auto value = *message.find(key);  // the last one, if repeated
        if (key == "content") {
            has_content = true;
            writer.member("\"content\"");
            append_content(out, f, *role);
        } else if (key == "tool_calls" && !value.is(json_kind::null)) {
            writer.member("\"tool_calls\"");
            append_tool_calls(out, value, f.path_of("tool_calls"), limits);
        } else if (key == "reasoning" || key == "reasoning_content") {
            if (!reasoning && !value.is(json_kind::null)) writer.member(name.raw()).append(value.raw());
        } else if (!value.is(json_kind::null)) {
            writer.member(name.raw()).append(value.raw());
        }
        seen.push_back(std::move(key));
    });
    if (!has_content) {
        writer.member("\"content\"");
        append_content(out, f, *role);
    }
    if (reasoning) {
        append_json_string(writer.member("\"reasoning_content\""), *reasoning);
        append_json_string(writer.member("\"reasoning\""), *reasoning);
    }
    writer.end();
}

}  // namespace

void check_members(json_value value, const std::string& path, const request_limits& limits) {
    if (value.is(json_kind::object)) {
        if (value.size() > limits.members_max)
            refuse(path, "'" + path + "' holds an object with " + std::to_string(value.size()) + " members; at most " +
                             std::to_string(limits.members_max) + " are allowed");
        value.for_each_member([&](json_value, json_value v) { check_members(v, path, limits); });
    } else if (value.is(json_kind::array)) {
        value.for_each_element([&](json_value v) { check_members(v, path, limits); });
    }
}

std::string conversation_json(json_value messages, const request_limits& limits) {
    if (!messages.is(json_kind::array)) refuse_type("messages", "a list of messages", messages);
    if (messages.size() == 0) refuse("messages", "'messages' must not be empty", "invalid_value");
    std::string out;
    out.reserve(messages.raw().size() + 64);
    out += '[';
    std::size_t index = 0;
    messages.for_each_element([&](json_value message) {
        if (index != 0) out += ',';
        append_message(out, message, element_path("messages", index), limits);
        ++index;
    });
    out += ']';
    return out;
}

std::string tools_json(json_value tools, const request_limits& limits) {
    if (!tools.is(json_kind::array)) refuse_type("tools", "a list", tools);
    if (tools.size() == 0) return {};
    std::size_t index = 0;
    tools.for_each_element([&](json_value tool) {
        const fields f(tool, element_path("tools", index++));
        const auto type = f.text("type");
        if (!type || *type != "function")
            refuse(f.path_of("type"), "'" + f.path_of("type") + "' must be 'function'", "invalid_value");
        const auto function = f.nested("function");
        if (!function) refuse(f.path_of("function"), "'" + f.path_of("function") + "' is missing");
        if (!function->text("name")) refuse(function->path_of("name"), "'" + function->path_of("name") + "' is missing");
        if (const auto parameters = function->get("parameters"); parameters && !parameters->is(json_kind::object))
            refuse_type(function->path_of("parameters"), "an object", *parameters);
        check_members(tool, f.path_of("function"), limits);
    });
    return std::string(tools.raw());
}

}  // namespace fermata::openai
