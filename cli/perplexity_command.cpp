// perplexity: how well the model predicts a text. Windows don't overlap; in each, the second half is scored.
#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/client.hpp"
#include "cli/command.hpp"
#include "cli/engine.hpp"
#include "cli/io.hpp"
#include "cli/options.hpp"
#include "cli/resident.hpp"

namespace fermata::cli {
namespace {

struct perplexity_options {
    engine_options engine;
    std::string file = "-";
    std::uint32_t context = 512;
    bool json = false;
};

struct score {
    double logprobs = 0;  // sum, natural logarithm
    std::uint64_t tokens = 0;
};

// Windows of `context` tokens: what the model adds at the start, then the text in order. The last partial one is
// dropped.
std::vector<std::vector<token_id>> windows_of(const text::tokenizer& words, const std::string& text,
                                              std::uint32_t context) {
    const auto prefix = words.added_prefix();
    if (context < 4 || prefix.size() * 2 >= context)
        throw usage_error{"--context: " + std::to_string(context) + " tokens are too few"};
    const std::vector<token_id> ids = words.encode(text, {.parse_special = false, .add_special = false});
    const std::size_t body = context - prefix.size();
    std::vector<std::vector<token_id>> windows;
    for (std::size_t at = 0; at + body <= ids.size(); at += body) {
        std::vector<token_id> window(prefix.begin(), prefix.end());
        window.insert(window.end(), ids.begin() + static_cast<std::ptrdiff_t>(at),
                      ids.begin() + static_cast<std::ptrdiff_t>(at + body));
        windows.push_back(std::move(window));
    }
    if (windows.empty())
        throw usage_error{"--file: the text has " + std::to_string(ids.size()) + " tokens, less than one window of " +
                          std::to_string(context)};
    return windows;
}

std::shared_ptr<pending_answer> score_window(gateway& node, std::vector<token_id> window) {
    submit request;
    request.kind = prompt_kind::tokens;
    request.prompt_tokens = token_run(std::move(window));
    request.max_tokens = 0;
    request.report.prompt_logprobs = true;
    return ask(node, request);
}

void add(score& total, pending_answer& pending, std::uint32_t context) {
    pending.wait();
    if (const auto& error = pending.error()) throw std::runtime_error(describe(*error));
    const auto& tokens = pending.choices().front().prompt;
    if (tokens.size() != context) throw std::runtime_error("a window was not scored whole");
    for (std::size_t i = context / 2 + 1; i < tokens.size(); ++i) {
        total.logprobs += static_cast<double>(tokens[i].logprob);
        ++total.tokens;
    }
}

int measure(perplexity_options options) {
    check(options.engine);
    if (options.engine.max_context == 0 || options.engine.max_context < options.context)
        options.engine.max_context = options.context;
    const std::string text = read_bytes(options.file);
    const auto node = start_engine(options.engine, {});
    if (!node->text().has_text()) throw model_error{options.engine.model + ": has no tokenizer"};
    const auto windows = windows_of(*node->text().words(), text, options.context);

    score total;
    std::deque<std::shared_ptr<pending_answer>> under_way;
    for (const auto& window : windows) {
        if (under_way.size() >= options.engine.max_concurrency) {
            add(total, *under_way.front(), options.context);
            under_way.pop_front();
        }
        under_way.push_back(score_window(node->door(), window));
    }
    for (const auto& pending : under_way) add(total, *pending, options.context);

    const double perplexity = std::exp(-total.logprobs / static_cast<double>(total.tokens));
    nlohmann::ordered_json out{{"tokens", total.tokens}, {"perplexity", perplexity}};
    if (options.json) write_bytes(out.dump() + "\n");
    else write_bytes("perplexity " + std::to_string(perplexity) + " over " + std::to_string(total.tokens) + " tokens\n");
    node->stop(1000);
    return 0;
}

}  // namespace

action declare_perplexity(CLI::App& app) {
    auto options = std::make_shared<perplexity_options>();
    declare(app, options->engine);
    app.add_option("--file,-f", options->file, "text; - for standard input")->capture_default_str();
    app.add_option("--context,-c", options->context, "tokens of a window")->capture_default_str();
    app.add_flag("--json", options->json, "one JSON object");
    CLI::App* command = &app;
    return [options, command] {
        apply_fallbacks(*command, "perplexity", {});
        return measure(*options);
    };
}

}  // namespace fermata::cli
