// Fields that other servers know and this one doesn't honour yet. Their defaults pass; anything else is a 400 that names
// the field: an answer that silently ignored it would be wrong.
#pragma once

#include "frontend/openai/fields.hpp"
#include "frontend/openai/request.hpp"

namespace fermata::openai {

void refuse_not_yet(const fields& body, api_kind api);

}  // namespace fermata::openai
