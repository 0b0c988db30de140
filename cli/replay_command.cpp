// replay: feeds a journal to fresh cores and reports the first command that differs.
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "actors/journal/replay.hpp"
#include "cli/command.hpp"
#include "cli/io.hpp"
#include "cli/options.hpp"

namespace fermata::cli {
namespace {

struct replay_options {
    std::string file;
    std::string core = "both";
};

replay_core core_of(const std::string& name) {
    if (name == "both") return replay_core::both;
    if (name == "scheduler") return replay_core::scheduler;
    if (name == "resource-manager") return replay_core::resource_manager;
    throw usage_error{"--core: '" + name + "' is not one of both, scheduler, resource-manager"};
}

}  // namespace

action declare_replay(CLI::App& app) {
    auto options = std::make_shared<replay_options>();
    app.add_option("file", options->file, "journal (its predecessors FILE.1, FILE.2, ... are read first)")->required();
    app.add_option("--core", options->core, "both, scheduler or resource-manager")->capture_default_str();
    return [options]() -> int {
        const replay_result result = replay_journal_file(options->file, core_of(options->core));
        write_bytes(result.text() + "\n");
        return result.identical() ? 0 : 1;
    };
}

}  // namespace fermata::cli
