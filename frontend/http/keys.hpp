// Comparison of secrets in a time that depends only on the length of what was presented and on how many keys there are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fermata::http {

bool is_one_of(const std::vector<std::string>& keys, std::string_view presented);

// The key in `Authorization: Bearer KEY`, or in `x-api-key`; empty if there is none.
std::string_view presented_key(std::string_view authorization, std::string_view x_api_key);

}  // namespace fermata::http
