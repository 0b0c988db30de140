// What a reader of model files says when it refuses.
#pragma once

#include <string>

#include "native/weights/error.hpp"

namespace fermata::test_support {

// The message of the model_file_error that `action` throws; empty when it throws none.
template <typename Action>
std::string refusal(Action&& action) {
    try {
        action();
    } catch (const model_file_error& error) {
        return error.what();
    }
    return {};
}

inline bool mentions(const std::string& text, const std::string& fragment) {
    return text.find(fragment) != std::string::npos;
}

}  // namespace fermata::test_support
