// What a client is told when its request fails, made in one place. The type follows from the status, as in OpenAI's API.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "messages/ingress.hpp"

namespace fermata {

inline client_error make_error(unsigned status, std::string code, std::string message, std::string param = {}) {
    client_error error;
    error.status = static_cast<std::uint16_t>(status);
    error.type = status >= 500 ? "server_error" : status == 429 ? "rate_limit_error" : "invalid_request_error";
    error.code = std::move(code);
    error.param = std::move(param);
    error.message = std::move(message);
    return error;
}

// The same request may succeed after `seconds`.
inline client_error retry_after(client_error error, std::uint32_t seconds) {
    error.retry_after_s = seconds;
    return error;
}

// 503: the node can't take a request now.
inline client_error unavailable(std::string message, std::string code = "unavailable") {
    return make_error(503, std::move(code), std::move(message));
}

// 429: the node holds as much as it can.
inline client_error overloaded(std::string message) {
    return retry_after(make_error(429, "overloaded", std::move(message)), 1);
}

}  // namespace fermata
