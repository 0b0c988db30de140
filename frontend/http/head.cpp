#include "frontend/http/head.hpp"

#include <algorithm>
#include <cctype>

namespace fermata::http {

std::string_view reason_of(unsigned status) {
    switch (status) {
        case 200: return "OK";
        case 204: return "No Content";
        case 400: return "Bad Request";
        case 401: return "Unauthorized";
        case 404: return "Not Found";
        case 405: return "Method Not Allowed";
        case 408: return "Request Timeout";
        case 413: return "Content Too Large";
        case 415: return "Unsupported Media Type";
        case 417: return "Expectation Failed";
        case 429: return "Too Many Requests";
        case 431: return "Request Header Fields Too Large";
        case 500: return "Internal Server Error";
        case 501: return "Not Implemented";
        case 503: return "Service Unavailable";
        case 504: return "Gateway Timeout";
        default: return status < 400 ? "OK" : status < 500 ? "Client Error" : "Server Error";
    }
}

std::string text_of(const response_head& head) {
    std::string out = "HTTP/1.1 " + std::to_string(head.status) + ' ';
    out.append(reason_of(head.status));
    out += "\r\nServer: fermata\r\n";
    if (!head.content_type.empty()) {
        out += "Content-Type: ";
        out.append(head.content_type);
        out += "\r\n";
    }
    if (head.content_length)
        out += "Content-Length: " + std::to_string(*head.content_length) + "\r\n";
    else if (head.http_1_1 && head.status != 204)
        out += "Transfer-Encoding: chunked\r\n";
    const bool kept = head.keep_alive && (head.content_length || head.http_1_1);
    if (!kept)
        out += "Connection: close\r\n";
    else if (!head.http_1_1)
        out += "Connection: keep-alive\r\n";
    for (const auto& [name, value] : head.more) {
        out.append(name);
        out += ": " + value + "\r\n";
    }
    out += "\r\n";
    return out;
}

std::optional<std::string> path_of(std::string_view target) {
    for (std::string_view scheme : {"http://", "https://"}) {
        if (!target.starts_with(scheme)) continue;
        const auto slash = target.find('/', scheme.size());
        target = slash == target.npos ? std::string_view("/") : target.substr(slash);
        break;
    }
    if (target == "*") return std::string("*");
    if (!target.starts_with('/')) return std::nullopt;
    target = target.substr(0, target.find_first_of("?#"));
    std::string out;
    const auto digit = [](char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    };
    for (std::size_t i = 0; i < target.size(); ++i) {
        if (target[i] != '%') {
            out += target[i];
            continue;
        }
        const int high = i + 1 < target.size() ? digit(target[i + 1]) : -1;
        const int low = i + 2 < target.size() ? digit(target[i + 2]) : -1;
        if (high < 0 || low < 0 || high * 16 + low == 0) return std::nullopt;
        out += static_cast<char>(static_cast<unsigned char>(high * 16 + low));
        i += 2;
    }
    return out;
}

std::string fit_request_id(std::string_view id) {
    const bool fit = !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' || c == ':';
    });
    return fit ? std::string(id) : std::string();
}

}  // namespace fermata::http
