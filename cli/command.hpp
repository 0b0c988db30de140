// The commands of the program. Each declares its options on a subcommand and returns what runs it. A command returns the
// exit status 0 or 1, or throws: usage_error (2), model_error (3), anything else (1).
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace fermata::cli {

using action = std::function<int()>;

action declare_tokenize(CLI::App& app);
action declare_detokenize(CLI::App& app);
action declare_template(CLI::App& app);
action declare_inspect(CLI::App& app);
action declare_run(CLI::App& app);
action declare_chat(CLI::App& app);
action declare_bench(CLI::App& app);
action declare_perplexity(CLI::App& app);
action declare_serve(CLI::App& app);
action declare_replay(CLI::App& app);

}  // namespace fermata::cli
