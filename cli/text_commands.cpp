// tokenize, detokenize, template: the text layer by itself.
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/command.hpp"
#include "cli/io.hpp"
#include "cli/options.hpp"
#include "cli/resident.hpp"

namespace fermata::cli {
namespace {

struct text_options {
    std::string model, file = "-", tokens, chat_template, input = "-";
    bool special = false, bos = false;
};

std::shared_ptr<const text_model> text_of(const std::string& model) {
    if (model.empty()) throw usage_error{"--model is missing; get the demo model with: bash tools/model.sh"};
    auto text = open_text(model, {});
    if (!text->has_text()) throw model_error{model + ": has no tokenizer"};
    return text;
}

int tokenize_text_of(const text_options& options) {
    const auto text = text_of(options.model);
    const std::string bytes = read_bytes(options.file);
    const auto ids = text->words()->encode(bytes, {.parse_special = options.special, .add_special = options.bos});
    std::string line;
    for (const token_id id : ids) {
        if (!line.empty()) line += ' ';
        line += std::to_string(id);
    }
    write_bytes(line + "\n");
    return 0;
}

int detokenize_ids(const text_options& options) {
    const auto text = text_of(options.model);
    const auto ids = parse_tokens("tokens", options.tokens.empty() ? read_bytes(options.file) : options.tokens);
    try {
        write_bytes(text->words()->decode(ids, options.special));
    } catch (const text::tokenizer_error& e) {
        throw usage_error{e.what()};
    }
    return 0;
}

int render_template(const text_options& options) {
    if (options.chat_template == "-" && options.input == "-")
        throw usage_error{"--file and --input can't both be standard input"};
    const std::string source = read_bytes(options.chat_template);
    const std::string input = read_bytes(options.input);
    try {
        const auto program = jinja::program::parse(source);
        const auto context = jinja::value::parse_json(input);
        if (!context.is_dict()) throw usage_error{"--input: a JSON object with the template's variables would be right"};
        jinja::render_options rendering;
        rendering.now = local_now;
        write_bytes(program.render(context, rendering));
    } catch (const jinja::error& e) {
        throw std::runtime_error(e.line() == 0 ? options.input + ": " + e.what()
                                               : options.chat_template + ": " + e.what());
    }
    return 0;
}

}  // namespace

action declare_tokenize(CLI::App& app) {
    auto options = std::make_shared<text_options>();
    app.add_option("--model,-m", options->model, "GGUF file (a vocabulary is enough) or Hugging Face folder");
    app.add_option("--file,-f", options->file, "text; - for standard input")->capture_default_str();
    app.add_flag("--special", options->special, "recognise special tokens in the text");
    app.add_flag("--bos", options->bos, "add what the model adds at the start and the end");
    return [options] { return tokenize_text_of(*options); };
}

action declare_detokenize(CLI::App& app) {
    auto options = std::make_shared<text_options>();
    app.add_option("--model,-m", options->model, "GGUF file (a vocabulary is enough) or Hugging Face folder");
    app.add_option("--tokens,-t", options->tokens, "1,2,3 (default: read --file)");
    app.add_option("--file,-f", options->file, "ids; - for standard input")->capture_default_str();
    app.add_flag("--special", options->special, "special tokens give their text too");
    return [options] { return detokenize_ids(*options); };
}

action declare_template(CLI::App& app) {
    auto options = std::make_shared<text_options>();
    app.add_option("--file,-f", options->chat_template, "Jinja template")->required();
    app.add_option("--input,-i", options->input, "JSON object of variables; - for standard input")
        ->capture_default_str();
    return [options] { return render_template(*options); };
}

}  // namespace fermata::cli
