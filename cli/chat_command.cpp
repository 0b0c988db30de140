// chat: talk in the terminal with a node of this process. Ctrl-C stops the answer, not the program.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <unistd.h>
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

struct chat_options {
    engine_options engine;
    sampling_options sampling;
    std::string system;
    std::uint32_t max_tokens = 0;
};

volatile std::sig_atomic_t interrupted = 0;
void on_interrupt(int) { interrupted = 1; }

class conversation {
public:
    conversation(gateway& node, const chat_options& options) : node_(node), options_(options) {
        if (!options.system.empty()) say("system", options.system);
    }

    // False: the program is to end.
    bool take(const std::string& line) {
        if (line.empty()) return true;
        if (line[0] != '/') {
            answer_to(line);
            return true;
        }
        const auto space = line.find(' ');
        const std::string command = line.substr(0, space);
        const std::string argument = space == std::string::npos ? std::string() : line.substr(space + 1);
        if (command == "/quit" || command == "/exit") return false;
        if (command == "/undo") undo();
        else if (command == "/fork") fork();
        else if (command == "/back") back();
        else if (command == "/save") save(argument);
        else if (command == "/explain") explain();
        else help();
        return true;
    }

private:
    void say(const char* role, const std::string& content) {
        messages_.push_back({{"role", role}, {"content", content}});
    }

    void answer_to(const std::string& text) {
        say("user", text);
        submit request;
        request.kind = prompt_kind::chat;
        request.messages_json = messages_.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
        apply(options_.sampling, options_.engine, request);
        if (options_.max_tokens != 0) request.max_tokens = options_.max_tokens;
        interrupted = 0;
        const auto pending = ask(node_, request, {.on_delta = [](const text_delta& d) { write_bytes(d.text); }, .keep = true});
        bool stopped = false;
        while (!pending->wait_until(std::chrono::steady_clock::now() + std::chrono::milliseconds(50))) {
            if (!interrupted || stopped) continue;
            stopped = true;
            node_.cancel(request.request);
        }
        write_bytes(stopped ? " [stopped]\n" : "\n");
        usage_ = pending->usage();
        if (pending->error() && !stopped) {
            std::fprintf(stderr, "%s\n", describe(*pending->error()).c_str());
            messages_.erase(messages_.end() - 1);
            return;
        }
        say("assistant", pending->choices().front().text);
    }

    // Takes back the last question and its answer.
    void undo() {
        while (!messages_.empty() && messages_.back()["role"] == "assistant") messages_.erase(messages_.end() - 1);
        if (!messages_.empty() && messages_.back()["role"] == "user") messages_.erase(messages_.end() - 1);
        std::printf("%zu messages\n", messages_.size());
    }

    void fork() {
        forks_.push_back(messages_);
        std::printf("kept as fork %zu; /back returns to it\n", forks_.size());
    }

    void back() {
        if (forks_.empty()) {
            std::printf("there is no fork\n");
            return;
        }
        messages_ = forks_.back();
        forks_.pop_back();
        std::printf("%zu messages\n", messages_.size());
    }

    void save(const std::string& path) {
        if (path.empty()) {
            std::printf("/save FILE would be right\n");
            return;
        }
        std::FILE* file = std::fopen(path.c_str(), "wb");
        const std::string text = messages_.dump(2) + "\n";
        const bool good = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
        if (file) std::fclose(file);
        std::printf(good ? "saved %s\n" : "could not write %s\n", path.c_str());
    }

    void explain() {
        std::printf("prompt %llu tokens, %llu of them reused (%s), answer %llu tokens, first after %.0f ms\n",
                    static_cast<unsigned long long>(usage_.prompt_tokens),
                    static_cast<unsigned long long>(usage_.cached_tokens), usage_.source.c_str(),
                    static_cast<unsigned long long>(usage_.completion_tokens), usage_.ttft_ms);
    }

    static void help() {
        std::printf("/undo  take back the last question and answer\n/fork  keep this point; /back returns to it\n"
                    "/save FILE  write the conversation as JSON\n/explain  what the last answer reused\n/quit\n"
                    "Ctrl-C stops an answer\n");
    }

    gateway& node_;
    const chat_options& options_;
    nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();
    std::vector<nlohmann::ordered_json> forks_;
    request_usage usage_;
};

int chat(const chat_options& options) {
    check(options.engine);
    const auto node = start_engine(options.engine, {.progress = true});
    if (!node->text().has_chat_template())
        throw model_error{options.engine.model + ": has no chat template; give one with --chat-template FILE"};
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    sigaction(SIGINT, &action, nullptr);

    conversation talk(node->door(), options);
    const bool terminal = isatty(STDIN_FILENO) != 0;
    std::string line;
    while (true) {
        if (terminal) write_bytes("> ");
        if (!std::getline(std::cin, line)) {
            // Ctrl-C at the prompt interrupts the read; end of input ends the program.
            if (!interrupted) break;
            interrupted = 0;
            std::cin.clear();
            clearerr(stdin);
            write_bytes("\n");
            continue;
        }
        if (!talk.take(line)) break;
    }
    node->stop(1000);
    return 0;
}

}  // namespace

action declare_chat(CLI::App& app) {
    auto options = std::make_shared<chat_options>();
    options->sampling.temperature = 0.7F;
    declare(app, options->engine);
    declare(app, options->sampling);
    app.add_option("--system", options->system, "system message");
    app.add_option("--max-tokens", options->max_tokens, "longest answer (default: what is left of the context)");
    CLI::App* command = &app;
    return [options, command] {
        apply_fallbacks(*command, "chat", {});
        return chat(*options);
    };
}

}  // namespace fermata::cli
