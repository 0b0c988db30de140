#include "frontend/http/models_json.hpp"

#include "frontend/openai/text.hpp"

namespace fermata::http {

std::string model_json(const model_card& card) {
    std::string out = "{\"id\":";
    openai::append_json_string(out, card.id);
    out += ",\"object\":\"model\",\"created\":";
    openai::append_json_number(out, card.created_s);
    out += ",\"owned_by\":\"fermata\",\"root\":";
    openai::append_json_string(out, card.root);
    out += ",\"parent\":null,\"max_model_len\":";
    openai::append_json_number(out, std::uint64_t{card.max_model_len});
    out += '}';
    return out;
}

std::string models_json(const model_card& card) { return "{\"object\":\"list\",\"data\":[" + model_json(card) + "]}"; }

std::string health_json(bool good, std::string_view reason) {
    if (good) return "{\"status\":\"ok\"}";
    return "{\"status\":\"unavailable\",\"reason\":" + openai::json_string(reason.empty() ? "not ready" : reason) + '}';
}

}  // namespace fermata::http
