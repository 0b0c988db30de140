// The small JSON answers: models, health.
#pragma once

#include <string>
#include <string_view>

#include "frontend/gateway.hpp"

namespace fermata::http {

std::string model_json(const model_card& card);
std::string models_json(const model_card& card);
std::string health_json(bool good, std::string_view reason);

}  // namespace fermata::http
