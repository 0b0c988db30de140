// run: one completion in a node of this process, with a digest of its logits for exactness checks.
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <xxhash.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/client.hpp"
#include "cli/command.hpp"
#include "cli/engine.hpp"
#include "cli/io.hpp"
#include "cli/npy.hpp"
#include "cli/options.hpp"
#include "cli/resident.hpp"

namespace fermata::cli {
namespace {

struct run_options {
    engine_options engine;
    sampling_options sampling;
    std::string prompt, prompt_file, tokens, messages, logits;
    bool prompt_given = false;
    std::uint32_t n = 128;
    std::uint32_t company = 0;
    bool json = false, all_positions = false, warm = false;
};

// The digest of all logits in order, over their bytes; and the file they go to.
class logits_sink {
public:
    logits_sink(const std::string& path, std::size_t vocabulary) : state_(XXH3_createState()) {
        XXH3_128bits_reset(state_);
        if (!path.empty()) file_ = std::make_unique<npy_writer>(path, vocabulary);
    }
    ~logits_sink() { XXH3_freeState(state_); }
    logits_sink(const logits_sink&) = delete;
    logits_sink& operator=(const logits_sink&) = delete;

    void take(const std::vector<float>& logits) {
        XXH3_128bits_update(state_, logits.data(), logits.size() * sizeof(float));
        if (file_) file_->append(logits);
    }
    std::string digest() {
        if (file_) file_->close();
        XXH128_canonical_t bytes;
        XXH128_canonicalFromHash(&bytes, XXH3_128bits_digest(state_));
        std::string hex;
        for (const unsigned char byte : bytes.digest) {
            char two[3];
            std::snprintf(two, sizeof two, "%02x", byte);
            hex += two;
        }
        return hex;
    }

private:
    XXH3_state_t* state_;
    std::unique_ptr<npy_writer> file_;
};

void set_prompt(const run_options& options, submit& request) {
    const int given = int{options.prompt_given} + int{!options.prompt_file.empty()} + int{!options.tokens.empty()} +
                      int{!options.messages.empty()};
    if (given != 1) throw usage_error{"one of -p, --prompt-file, --tokens or --messages is needed"};
    if (!options.tokens.empty()) {
        request.kind = prompt_kind::tokens;
        request.prompt_tokens = token_run(parse_tokens("--tokens", options.tokens));
    } else if (!options.messages.empty()) {
        request.kind = prompt_kind::chat;
        nlohmann::ordered_json file;
        try {
            file = nlohmann::ordered_json::parse(read_bytes(options.messages));
        } catch (const nlohmann::json::exception& e) {
            throw usage_error{"--messages: " + options.messages + ": " + e.what()};
        }
        if (file.is_object()) {
            nlohmann::ordered_json rest = nlohmann::ordered_json::object();
            for (const auto& [key, value] : file.items()) {
                if (key == "messages") request.messages_json = value.dump();
                else if (key == "tools") request.tools_json = value.dump();
                else rest[key] = value;
            }
            if (!rest.empty()) request.template_arguments_json = rest.dump();
        } else {
            request.messages_json = file.dump();
        }
        if (request.messages_json.empty())
            throw usage_error{"--messages: " + options.messages + ": a list, or an object with `messages`, would be right"};
    } else {
        request.kind = prompt_kind::text;
        request.prompt_text = options.prompt_given ? options.prompt : read_bytes(options.prompt_file);
    }
}

submit request_of(const run_options& options) {
    submit request;
    set_prompt(options, request);
    apply(options.sampling, options.engine, request);
    request.max_tokens = options.n;
    return request;
}

// Other requests beside the one that is measured: random tokens of different lengths, generating without end.
std::vector<std::pair<submit, std::shared_ptr<pending_answer>>> start_company(engine& node, std::uint32_t count) {
    std::vector<std::pair<submit, std::shared_ptr<pending_answer>>> company;
    std::uint64_t state = 0x9E3779B97F4A7C15ULL;
    const auto vocabulary = static_cast<std::uint64_t>(node.layout().vocabulary);
    for (std::uint32_t i = 0; i < count; ++i) {
        std::vector<token_id> tokens(17 + 31 * std::size_t{i});
        for (token_id& token : tokens) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            token = static_cast<token_id>((state >> 33) % vocabulary);
        }
        submit request;
        request.kind = prompt_kind::tokens;
        request.prompt_tokens = token_run(std::move(tokens));
        request.ignore_eos = true;
        request.sampling.seed = i;
        request.seed_given = true;
        auto pending = ask(node.door(), request, {.on_delta = {}, .keep = false});
        company.emplace_back(std::move(request), std::move(pending));
    }
    for (auto& [request, pending] : company) pending->first_token_wait();
    return company;
}

const char* name_of(finish_reason reason) {
    switch (reason) {
        case finish_reason::stop: return "stop";
        case finish_reason::length: return "length";
        case finish_reason::cancelled: return "cancelled";
        case finish_reason::error: return "error";
        case finish_reason::none: break;
    }
    return "";
}

double ms_between(steady_time from, steady_time to) {
    return std::chrono::duration<double, std::milli>(to - from).count();
}

void print_json(const engine& node, const std::string& model, pending_answer& pending,
                const std::string& digest, steady_time start, steady_time end) {
    const answer& choice = pending.choices().front();
    nlohmann::ordered_json out;
    out["model"] = model;
    out["prompt_tokens"] = pending.usage().prompt_tokens;
    nlohmann::ordered_json tokens = nlohmann::ordered_json::array();
    for (const token_report& token : choice.tokens) tokens.push_back(token.token);
    out["tokens"] = std::move(tokens);
    if (node.text().has_text()) out["text"] = choice.text;
    else out["text"] = nullptr;
    out["finish_reason"] = name_of(choice.finish);
    out["logits_xxh128"] = digest;
    out["usage"] = {{"prompt_tokens", pending.usage().prompt_tokens},
                    {"completion_tokens", pending.usage().completion_tokens},
                    {"cached_tokens", pending.usage().cached_tokens},
                    {"replayed_tokens", pending.usage().replayed_tokens}};
    nlohmann::ordered_json timings;
    timings["queue_ms"] = pending.usage().queue_ms;
    timings["ttft_ms"] = pending.usage().ttft_ms;
    timings["total_ms"] = ms_between(start, end);
    if (choice.token_times.size() > 1)
        timings["decode_tokens_per_s"] = static_cast<double>(choice.token_times.size() - 1) * 1e3 /
                                         ms_between(choice.token_times.front(), choice.token_times.back());
    out["timings"] = std::move(timings);
    write_bytes(out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

int run_completion(const run_options& options) {
    check(options.engine);
    submit request = request_of(options);
    if (options.all_positions && options.logits.empty() && !options.json)
        throw usage_error{"--all-positions needs --logits FILE or --json"};
    const auto node = start_engine(options.engine, {});
    const bool wants_logits = options.json || !options.logits.empty();
    logits_sink logits(options.logits, node->layout().vocabulary);

    if (options.warm) {
        submit first = request;
        first.max_tokens = 1;
        ask(node->door(), first)->wait();
    }
    auto company = start_company(*node, options.company);

    request.report.logits = wants_logits;
    request.report.prompt_logits = options.all_positions;
    const bool streams = !options.json;
    const auto on_delta = [&](const text_delta& delta) {
        if (!delta.logits.empty()) logits.take(delta.logits);
        if (streams && !delta.text.empty()) write_bytes(delta.text);
    };
    const auto start = std::chrono::steady_clock::now();
    const auto pending = ask(node->door(), request, {.on_delta = on_delta, .keep = true});
    pending->wait();
    const auto end = std::chrono::steady_clock::now();
    for (auto& [other, other_pending] : company) node->door().cancel(other.request);
    for (auto& [other, other_pending] : company) other_pending->wait();

    if (const auto& error = pending->error()) {
        // Logits that aren't finite are a fault of the model file.
        if (error->code == "logits_not_finite") throw model_error{options.engine.model + ": " + error->message};
        throw std::runtime_error(describe(*error));
    }
    const std::string digest = logits.digest();
    if (options.json) print_json(*node, node->door().model().id, *pending, digest, start, end);
    else if (node->text().has_text()) write_bytes("\n");
    else {
        std::string line;
        for (const token_report& token : pending->choices().front().tokens)
            line += (line.empty() ? "" : " ") + std::to_string(token.token);
        write_bytes(line + "\n");
    }
    node->stop(1000);
    return 0;
}

}  // namespace

action declare_run(CLI::App& app) {
    auto options = std::make_shared<run_options>();
    declare(app, options->engine);
    declare(app, options->sampling);
    app.add_option_function<std::string>(
        "--prompt,-p",
        [options](const std::string& text) {
            options->prompt = text;
            options->prompt_given = true;
        },
        "raw text, verbatim");
    app.add_option("--prompt-file", options->prompt_file, "raw text, verbatim");
    app.add_option("--tokens,-t", options->tokens, "token ids: 1,2,3");
    app.add_option("--messages", options->messages, "JSON file: a list of messages, or {messages, tools, ...}");
    app.add_option("-n", options->n, "tokens to generate")->capture_default_str();
    app.add_flag("--json", options->json, "one JSON object");
    app.add_option("--logits", options->logits, "write logits to FILE as .npy, float32 [positions, vocabulary]");
    app.add_flag("--all-positions", options->all_positions, "logits of every prompt position too");
    app.add_option("--company", options->company, "other requests beside this one");
    app.add_flag("--warm", options->warm, "run the prompt once before, so that it is cached");
    CLI::App* command = &app;
    return [options, command] {
        apply_fallbacks(*command, "run", {});
        return run_completion(*options);
    };
}

}  // namespace fermata::cli
