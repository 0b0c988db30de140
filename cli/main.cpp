// The program `fermata`. Exit status: 0 done; 1 it failed; 2 wrong usage or configuration; 3 the model can't be loaded.
#include <cstdio>
#include <exception>
#include <map>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/command.hpp"
#include "cli/io.hpp"
#include "cli/options.hpp"
#include "cli/resident.hpp"
#include "cli/version.hpp"

namespace {

using namespace fermata;

int fail(int status, const std::string& message) {
    std::fprintf(stderr, "fermata: %s\n", message.c_str());
    return status;
}

int run(const cli::action& command) {
    try {
        const int status = command();
        cli::flush_output();
        return status;
    } catch (const cli::usage_error& e) {
        return fail(2, e.message);
    } catch (const cli::model_error& e) {
        return fail(3, e.message);
    } catch (const std::exception& e) {
        return fail(1, e.what());
    }
}

struct planned_command {
    const char* name;
    const char* what;
};

// Named so that a script gets a clear answer instead of "unknown command".
constexpr planned_command planned[] = {{"lab", "policy laboratory (not in this version)"},
                                       {"plan", "capacity planning (not in this version)"},
                                       {"explain", "why a request reused what it did (not in this version)"},
                                       {"route", "a group's router (not in this version)"}};

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Serves language models to agents; every conversation stays resumable.", "fermata"};
    app.set_version_flag("--version", std::string("fermata ") + cli::version);
    app.require_subcommand(1);

    std::map<CLI::App*, cli::action> commands;
    const auto add = [&](const char* name, const char* what, cli::action (*declare)(CLI::App&)) {
        CLI::App* command = app.add_subcommand(name, what);
        commands[command] = declare(*command);
    };
    add("serve", "the node: HTTP, optional CAF port", cli::declare_serve);
    add("chat", "talk in the terminal", cli::declare_chat);
    add("run", "one completion", cli::declare_run);
    add("bench", "speed of prefill and decode", cli::declare_bench);
    add("perplexity", "perplexity of a text", cli::declare_perplexity);
    add("inspect", "a running node or a model file", cli::declare_inspect);
    add("replay", "feed a journal to a core, report the first command that differs", cli::declare_replay);
    add("tokenize", "text to token ids", cli::declare_tokenize);
    add("detokenize", "token ids to text", cli::declare_detokenize);
    add("template", "render a chat template", cli::declare_template);
    for (const planned_command& later : planned) {
        CLI::App* command = app.add_subcommand(later.name, later.what);
        command->allow_extras();
        const std::string name = later.name;
        commands[command] = [name]() -> int { throw cli::usage_error{name + " is not in this version"}; };
    }

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        // Help and version print to standard output and succeed; anything else is wrong usage.
        if (e.get_exit_code() == 0) return app.exit(e);
        const std::string where = app.get_subcommands().empty() ? std::string() : app.get_subcommands().front()->get_name() + " ";
        return fail(2, std::string(e.what()) + " (see fermata " + where + "--help)");
    }
    return run(commands.at(app.get_subcommands().front()));
}
