#include <chrono>
#include <ctime>
#include <filesystem>
#include <utility>

#include "cli/io.hpp"
#include "cli/resident.hpp"
#include "native/weights/model_file.hpp"
#include "native/weights/vocabulary.hpp"

namespace fermata::cli {
namespace {

struct text_parts {
    std::shared_ptr<const text::tokenizer> words;
    std::string chat_template;
};

text_parts from_folder(const std::string& folder) {
    std::string tokenizer, config, special, generation, chat_template;
    if (!read_text_file(folder, "tokenizer.json", tokenizer) || tokenizer.empty()) return {};
    read_text_file(folder, "tokenizer_config.json", config);
    read_text_file(folder, "special_tokens_map.json", special);
    read_text_file(folder, "generation_config.json", generation);
    read_text_file(folder, "chat_template.jinja", chat_template);
    text_parts parts;
    parts.words = text::tokenizer::from_files({.tokenizer_json = tokenizer,
                                               .tokenizer_config_json = config,
                                               .special_tokens_map_json = special,
                                               .generation_config_json = generation,
                                               .chat_template_jinja = chat_template});
    parts.chat_template = parts.words->chat_template();
    return parts;
}

text_parts from_gguf(const std::string& path) {
    const model_file file = model_file::open(path);
    text_parts parts;
    parts.words = text::tokenizer::from_vocabulary(read_vocabulary(file));
    parts.chat_template = parts.words->chat_template();
    return parts;
}

text_parts open_parts(const std::string& model) {
    try {
        return std::filesystem::is_directory(model) ? from_folder(model) : from_gguf(model);
    } catch (const model_file_error& e) {
        throw model_error{e.what()};
    } catch (const text::tokenizer_error& e) {
        throw model_error{model + ": " + e.what()};
    }
}

}  // namespace

bool is_oracle(const std::string& model) { return model == "oracle" || model.rfind("oracle:", 0) == 0; }

std::shared_ptr<const text_model> open_text(const std::string& model, const std::string& template_file) {
    text_parts parts;
    if (!is_oracle(model)) parts = open_parts(model);
    std::string origin = model + ": chat template";
    if (!template_file.empty()) {
        try {
            parts.chat_template = read_bytes(template_file);
        } catch (const std::exception& e) {
            throw usage_error{std::string("--chat-template: ") + e.what()};
        }
        origin = template_file;
    }
    try {
        return std::make_shared<const text_model>(std::move(parts.words), std::move(parts.chat_template));
    } catch (const jinja::error& e) {
        throw model_error{origin + ": " + e.what() + "; another template can be given with --chat-template FILE"};
    }
}

jinja::local_time local_now() {
    const auto now = std::chrono::system_clock::now();
    const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
    jinja::local_time result;
    localtime_r(&seconds, &result.fields);
    result.microseconds = static_cast<unsigned>(
        std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count() % 1'000'000);
    return result;
}

}  // namespace fermata::cli
