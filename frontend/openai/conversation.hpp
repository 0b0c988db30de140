// The conversation of a chat request: checked, and brought to the one form templates see. What isn't named here stays the
// bytes the client sent, member order included (H5).
//
// Brought to one form, so that the same conversation gives the same prompt through every gateway:
// - a list of text parts becomes one string, parts joined by a newline;
// - an assistant's absent or null content becomes "" (some gateways drop the null);
// - tool calls' `arguments`, a string in OpenAI's form, become the object they spell (templates iterate over it);
// - `reasoning` and `reasoning_content` are one thing: both are set to it.
#pragma once

#include <string>

#include "frontend/openai/fields.hpp"
#include "frontend/openai/request.hpp"

namespace fermata::openai {

// The list as JSON. `messages` is the value of the field; refuses what isn't a conversation.
std::string conversation_json(json_value messages, const request_limits& limits);

// The list of tools as sent; empty when there are none. `tools` is the value of the field.
std::string tools_json(json_value tools, const request_limits& limits);

// Refuses objects with more members than the limit, below `value` (readers further on look members up one by one).
void check_members(json_value value, const std::string& path, const request_limits& limits);

}  // namespace fermata::openai
