// Which path and method mean what. Pure.
#pragma once

#include <string>
#include <string_view>

namespace fermata::http {

enum class route_id {
    health,
    ready,
    metrics,
    models,
    model,        // argument: the id
    chat,
    completions,
    tokenize,
    detokenize,
    options,      // OPTIONS on a known path
    not_built,    // promised, not in this version: 501
    wrong_method, // 405 with `allow`
    unknown,      // 404
};

struct route {
    route_id id = route_id::unknown;
    std::string argument;
    std::string_view allow;   // methods of the path
    bool needs_key = true;
};

route find_route(std::string_view method, std::string_view path);

}  // namespace fermata::http
