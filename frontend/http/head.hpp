// Heads of requests and responses: what routing needs of the one, and the bytes of the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fermata::http {

struct request_head {
    std::string method;
    std::string path;           // decoded, without query
    bool http_1_1 = true;
    bool keep_alive = true;
    bool expects_continue = false;
    std::string request_id;     // the client's x-request-id where it is fit to be repeated, else empty
    bool is(std::string_view m) const { return method == m; }
};

using header_list = std::vector<std::pair<std::string_view, std::string>>;

struct response_head {
    unsigned status = 200;
    std::string_view content_type;               // empty: none
    std::optional<std::size_t> content_length;   // none: a stream (chunked, or up to the end of the connection)
    bool http_1_1 = true;
    bool keep_alive = true;
    header_list more;
};

std::string_view reason_of(unsigned status);
std::string text_of(const response_head& head);

// The path of a request target ("/a%20b?x" or "http://host/a"), percent-decoded; none when it isn't one.
std::optional<std::string> path_of(std::string_view target);

// `id` if it may be repeated in a header, else empty.
std::string fit_request_id(std::string_view id);

}  // namespace fermata::http
