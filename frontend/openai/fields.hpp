// Typed access to the members of a request body. A wrong type or value ends the request with a 400 whose `param` is the
// path of the field ("messages[2].content") and whose message says what it was and what would be right.
//
// `null` counts as absent everywhere (gateways write both), and a whole number may be written 5 or 5.0.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "frontend/openai/json.hpp"
#include "messages/ingress.hpp"

namespace fermata::openai {

// Ends the parsing of a request; carries what the client sees.
class request_error : public std::runtime_error {
public:
    explicit request_error(client_error error) : std::runtime_error(error.message), error_(std::move(error)) {}
    const client_error& error() const noexcept { return error_; }

private:
    client_error error_;
};

client_error invalid_request(std::string param, std::string message, std::string code = {});
[[noreturn]] void refuse(std::string param, std::string message, std::string code = {});

// "`temperature` must be a number, not a string", with what a value looks like when it is short enough to show.
[[noreturn]] void refuse_type(const std::string& path, std::string_view expected, json_value found);

class fields {
public:
    // `object` must be an object, otherwise refuses. `path`: "" for the body itself.
    fields(json_value object, std::string path);

    std::string path_of(std::string_view name) const { return path_.empty() ? std::string(name) : path_ + '.' + std::string(name); }
    json_value object() const { return object_; }

    std::optional<json_value> get(std::string_view name) const;  // present and not null
    std::optional<bool> boolean(std::string_view name) const;
    std::optional<double> number(std::string_view name, double lowest, double highest) const;
    std::optional<std::int64_t> integer(std::string_view name,
                                        std::int64_t lowest = std::numeric_limits<std::int64_t>::min(),
                                        std::int64_t highest = std::numeric_limits<std::int64_t>::max()) const;
    std::optional<std::string> text(std::string_view name) const;
    std::optional<json_value> list(std::string_view name) const;
    std::optional<fields> nested(std::string_view name) const;

private:
    json_value object_;
    std::string path_;
};

std::string element_path(const std::string& path, std::size_t index);

}  // namespace fermata::openai
