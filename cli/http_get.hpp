// One GET to a node over plain HTTP, for `inspect`.
#pragma once

#include <string>

namespace fermata::cli {

struct http_reply {
    unsigned status = 0;
    std::string body;
};

// `base`: http://HOST[:PORT]. Throws std::runtime_error that names the address when there is no answer in 10 s.
http_reply http_get(const std::string& base, const std::string& path, const std::string& key = {});

}  // namespace fermata::cli
