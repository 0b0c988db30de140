// Bytes in and out of the terminal programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "messages/vocabulary.hpp"

namespace fermata::cli {

// "-" or empty: standard input. Throws std::runtime_error that names the file.
std::string read_bytes(const std::string& path);
// To standard output, exactly. Throws std::runtime_error when it can't be written.
void write_bytes(const std::string& bytes);
// What std::printf left in the buffer, with the same error.
void flush_output();
// "1,2,3" (spaces allowed). Throws usage_error naming `option`.
std::vector<token_id> parse_tokens(const std::string& option, const std::string& text);

}  // namespace fermata::cli
