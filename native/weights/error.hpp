// The one exception of the readers of model files, and how names out of such a file are shown in its message.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace fermata {

// The message is one line: file as the user named it, place (byte offset, key or tensor), what is wrong, what would
// be right.
class model_file_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

namespace weights {

// `text` between quotes, made safe for a terminal and a log: control bytes and bytes that aren't ASCII are written as
// \xNN, and what exceeds 96 bytes is cut. (Not `quoted`: std::quoted would be found by its argument.)
std::string shown(std::string_view text);
// The same without quotes.
std::string escaped(std::string_view text);

// Throws model_file_error "FILE: what".
[[noreturn]] void fail(std::string_view file, std::string_view what);
// Throws model_file_error "FILE: at byte N: what".
[[noreturn]] void fail_at(std::string_view file, std::size_t offset, std::string_view what);

}  // namespace weights
}  // namespace fermata
