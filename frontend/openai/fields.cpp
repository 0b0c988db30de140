#include "frontend/openai/fields.hpp"

#include <cmath>
#include <cstdio>
#include <utility>

#include "frontend/client_errors.hpp"

namespace fermata::openai {
namespace {

// Short values are shown; long ones and texts aren't (they may be the user's words).
std::string described(json_value value) {
    if (value.is(json_kind::number) || value.is(json_kind::boolean)) {
        const auto raw = value.raw();
        if (raw.size() <= 32) return std::string(raw);
    }
    return std::string(name_of(value.kind()));
}

std::string plain(double value) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%g", value);
    return buffer;
}

}  // namespace

client_error invalid_request(std::string param, std::string message, std::string code) {
    return make_error(400, std::move(code), std::move(message), std::move(param));
}

void refuse(std::string param, std::string message, std::string code) {
    throw request_error(invalid_request(std::move(param), std::move(message), std::move(code)));
}

void refuse_type(const std::string& path, std::string_view expected, json_value found) {
    refuse(path, "'" + path + "' must be " + std::string(expected) + ", not " + described(found), "invalid_type");
}

fields::fields(json_value object, std::string path) : object_(object), path_(std::move(path)) {
    if (object_.is(json_kind::object)) return;
    if (path_.empty())
        refuse("", "the body must be a JSON object, not " + std::string(name_of(object_.kind())), "invalid_type");
    refuse_type(path_, "an object", object_);
}

std::optional<json_value> fields::get(std::string_view name) const {
    auto value = object_.find(name);
    if (value && value->is(json_kind::null)) return std::nullopt;
    return value;
}

std::optional<bool> fields::boolean(std::string_view name) const {
    const auto value = get(name);
    if (!value) return std::nullopt;
    if (!value->is(json_kind::boolean)) refuse_type(path_of(name), "true or false", *value);
    return value->boolean();
}

std::optional<double> fields::number(std::string_view name, double lowest, double highest) const {
    const auto value = get(name);
    if (!value) return std::nullopt;
    if (!value->is(json_kind::number)) refuse_type(path_of(name), "a number", *value);
    const double real = value->number();
    if (!(real >= lowest && real <= highest) || !std::isfinite(real))
        refuse(path_of(name), "'" + path_of(name) + "' must be a number between " + plain(lowest) + " and " +
                                  plain(highest) + ", not " + described(*value),
               "invalid_value");
    return real;
}

std::optional<std::int64_t> fields::integer(std::string_view name, std::int64_t lowest, std::int64_t highest) const {
    const auto value = get(name);
    if (!value) return std::nullopt;
    if (!value->is(json_kind::number)) refuse_type(path_of(name), "a whole number", *value);
    const auto whole = value->integer();
    if (!whole || *whole < lowest || *whole > highest)
        refuse(path_of(name), "'" + path_of(name) + "' must be a whole number between " + std::to_string(lowest) +
                                  " and " + std::to_string(highest) + ", not " + described(*value),
               "invalid_value");
    return whole;
}

std::optional<std::string> fields::text(std::string_view name) const {
    const auto value = get(name);
    if (!value) return std::nullopt;
    if (!value->is(json_kind::string)) refuse_type(path_of(name), "a string", *value);
    return value->string();
}

std::optional<json_value> fields::list(std::string_view name) const {
    const auto value = get(name);
    if (value && !value->is(json_kind::array)) refuse_type(path_of(name), "a list", *value);
    return value;
}

std::optional<fields> fields::nested(std::string_view name) const {
    const auto value = get(name);
    if (!value) return std::nullopt;
    return fields(*value, path_of(name));
}

std::string element_path(const std::string& path, std::size_t index) { return path + '[' + std::to_string(index) + ']'; }

}  // namespace fermata::openai
