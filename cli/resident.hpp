// Opening what --model names: the text side for every command, the whole model for those that run it.
#pragma once

#include <memory>
#include <string>

#include "cli/options.hpp"
#include "frontend/jinja/jinja.hpp"
#include "frontend/planning/text_model.hpp"

namespace fermata::cli {

// The model can't be loaded (exit 3): one line with file and place.
struct model_error {
    std::string message;
};

bool is_oracle(const std::string& model);

// The text side of a GGUF file (a vocabulary is enough), a folder, or the oracle (no text). `template_file`
// replaces the model's chat template; empty: the model's own. Throws model_error.
std::shared_ptr<const text_model> open_text(const std::string& model, const std::string& template_file);

// Wall-clock time for strftime_now, in the local zone.
jinja::local_time local_now();

}  // namespace fermata::cli
