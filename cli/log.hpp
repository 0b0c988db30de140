// Logging of the program: lines on standard error, plain or JSON.
#pragma once

#include <string>

namespace fermata::cli {

// `level`: trace, debug, info, warn, error, off. The first call of the process counts.
void set_up_log(const std::string& level, bool json);

// `text` inside a JSON string, without the quotes.
std::string json_escaped(const std::string& text);

}  // namespace fermata::cli
