#include "frontend/http/routes.hpp"

namespace fermata::http {
namespace {

constexpr std::string_view get = "GET, HEAD, OPTIONS";
constexpr std::string_view post = "POST, OPTIONS";

struct fixed_route {
    std::string_view path;
    std::string_view allow;
    route_id id;
    bool needs_key = true;
};

// /health, /ready and /metrics answer without a key: probes and scrapers have none.
constexpr fixed_route table[] = {
    {"/health", get, route_id::health, false},
    {"/ready", get, route_id::ready, false},
    {"/metrics", get, route_id::metrics, false},
    {"/v1/models", get, route_id::models},
    {"/v1/chat/completions", post, route_id::chat},
    {"/v1/completions", post, route_id::completions},
    {"/tokenize", post, route_id::tokenize},
    {"/detokenize", post, route_id::detokenize},
    {"/v1/responses", post, route_id::not_built},
    {"/v1/responses/input_tokens", post, route_id::not_built},
    {"/v1/messages", post, route_id::not_built},
    {"/v1/messages/count_tokens", post, route_id::not_built},
    {"/fermata/cache", get, route_id::not_built},
    {"/fermata/evictions", get, route_id::not_built},
    {"/fermata/plan", get, route_id::not_built},
    {"/fermata", get, route_id::not_built},
    {"/", get, route_id::not_built},
};

struct prefix_route {
    std::string_view prefix;
    std::string_view allow;
    route_id id;
};

constexpr prefix_route prefixes[] = {
    {"/v1/models/", get, route_id::model},
    {"/v1/responses/", "GET, HEAD, DELETE, OPTIONS", route_id::not_built},
    {"/fermata/explain/", get, route_id::not_built},
    {"/fermata/sessions/", post, route_id::not_built},
    {"/fermata/", "GET, HEAD, POST, DELETE, OPTIONS", route_id::not_built},
};

bool allows(std::string_view allow, std::string_view method) {
    while (!allow.empty()) {
        const auto end = allow.find(", ");
        if (allow.substr(0, end) == method) return true;
        if (end == allow.npos) break;
        allow.remove_prefix(end + 2);
    }
    return false;
}

route decided(std::string_view method, route found) {
    if (!allows(found.allow, method))
        found.id = route_id::wrong_method;
    else if (method == "OPTIONS")
        found.id = route_id::options;
    if (method == "OPTIONS") found.needs_key = false;
    return found;
}

}  // namespace

route find_route(std::string_view method, std::string_view path) {
    if (path == "*" && method == "OPTIONS") return {route_id::options, {}, "GET, HEAD, POST, DELETE, OPTIONS", false};
    if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    for (const auto& each : table)
        if (path == each.path) return decided(method, {each.id, {}, each.allow, each.needs_key});
    for (const auto& each : prefixes)
        if (path.starts_with(each.prefix) && path.size() > each.prefix.size())
            return decided(method, {each.id, std::string(path.substr(each.prefix.size())), each.allow, true});
    return {route_id::unknown, {}, {}, true};
}

}  // namespace fermata::http
