// A CAF application with a language model inside: a node lives in this program's own actor system, and an actor of
// ours talks to its Frontend in typed messages. No HTTP, no thread of ours waits for a token.
//
//   embed_caf                    the oracle, a model for tests whose answers are numbers
//   embed_caf MODEL.gguf [TEXT]  a real one: answers TEXT as a chat message
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <memory>
#include <string>

#include "actors/embed.hpp"
#include "native/cpu/cpu_backend.hpp"
#include "native/models/load.hpp"
#include "native/models/oracle/oracle.hpp"
#include "native/weights/model_file.hpp"
#include "native/weights/vocabulary.hpp"

namespace {

using namespace fermata;

// Our part of the conversation: an actor that takes what the node says. Its interface, `client_actor`, is the node's
// side of the contract; the compiler checks that each answer has a handler.
client_actor::behavior_type listener(client_actor::pointer self, std::shared_ptr<std::promise<int>> done, bool has_text) {
    auto finish = [self, done](int status) {
        done->set_value(status);
        self->quit();
    };
    return {
        [](const accepted& m) { std::printf("accepted, %u prompt tokens\n", m.prompt_tokens.value); },
        [finish](const rejected& m) {
            std::fprintf(stderr, "rejected: %s\n", m.error.message.c_str());
            finish(1);
        },
        [has_text](const text_delta& m) {
            // A model of text may have tokens without text (the end of its turn); the oracle has only tokens.
            if (has_text) std::printf("%s", m.text.c_str());
            else
                for (const auto& token : m.tokens) std::printf("%d ", token.token);
            std::fflush(stdout);
        },
        [finish](const finished& m) {
            std::printf("\nthe answer is complete: %llu tokens, first after %.1f ms\n",
                        static_cast<unsigned long long>(m.usage.completion_tokens), m.usage.ttft_ms);
            finish(0);
        },
        [finish](const failed& m) {
            std::fprintf(stderr, "failed: %s\n", m.error.message.c_str());
            finish(1);
        },
    };
}

node_options oracle_node() {
    node_options options;
    options.load_model = [] { return oracle::make({}); };
    options.program.max_context_tokens = 1024;
    options.model_id = "oracle";
    return options;
}

node_options file_node(const std::string& path) {
    node_options options;
    options.load_model = [path]() -> std::unique_ptr<model> {
        return load_model(model_file::open(path), make_cpu_backend({}), {});
    };
    const auto words = text::tokenizer::from_vocabulary(read_vocabulary(model_file::open(path)));
    options.text = std::make_shared<const text_model>(words, std::string(words->chat_template()));
    options.program.max_context_tokens = 0;  // the model's, at most 8192
    options.model_id = path;
    return options;
}

// JSON parts of a request travel as text.
std::string json_string(const std::string& text) {
    std::string quoted = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') quoted += '\\';
        quoted += c == '\n' ? ' ' : c;
    }
    return quoted + "\"";
}

int talk(int argc, char** argv) {
    // The application's system. Messages are registered before it is made.
    auto config = bus::make_config(4, false);
    caf::actor_system system{*config};

    node server(argc > 1 ? file_node(argv[1]) : oracle_node(), &system);
    server.start();

    auto done = std::make_shared<std::promise<int>>();
    auto ended = done->get_future();
    auto client = system.spawn(listener, done, argc > 1);

    submit request;
    request.request = request_id(1);  // ours to choose
    request.max_tokens = 48;
    if (argc > 1) {
        request.kind = prompt_kind::chat;
        request.messages_json = R"([{"role": "user", "content": )" + json_string(argc > 2 ? argv[2] : "Say hello.") + "}]";
    } else {
        request.kind = prompt_kind::tokens;
        request.prompt_tokens = token_run({1, 2, 3, 4, 5});
    }
    request.sampling.temperature = 0;
    bus::tell_from_outside(frontend_of(server), request, client);

    const int status = ended.get();
    server.stop(std::chrono::seconds(1));
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return talk(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "embed_caf: %s\n", error.what());
        return 1;
    }
}
