// inspect: a model file (layout, sizes, types) or a running node (its model, pools and counters).
#include <memory>
#include <sstream>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/http_get.hpp"
#include "cli/io.hpp"
#include "cli/options.hpp"
#include "cli/resident.hpp"
#include "native/weights/describe.hpp"
#include "native/weights/model_file.hpp"

namespace fermata::cli {
namespace {

struct inspect_options {
    std::string target;
    std::string key;
    bool json = false;
};

nlohmann::ordered_json to_json(const model_description& d) {
    nlohmann::ordered_json out{{"format", d.format},         {"architecture", d.architecture}, {"name", d.name},
                               {"files", d.files},           {"file_bytes", d.file_bytes},     {"tensors", d.tensors},
                               {"parameters", d.parameters}, {"tensor_bytes", d.tensor_bytes}};
    nlohmann::ordered_json types = nlohmann::ordered_json::array();
    for (const type_usage& t : d.types)
        types.push_back({{"type", t.type}, {"tensors", t.tensors}, {"elements", t.elements}, {"bytes", t.bytes}});
    out["types"] = std::move(types);
    out["vocabulary"] = {{"kind", d.vocabulary_kind}, {"tokens", d.vocabulary}};
    out["chat_template"] = d.chat_template;
    if (!d.sizes_error.empty()) out["sizes_error"] = d.sizes_error;
    return out;
}

int inspect_file(const inspect_options& options) {
    try {
        const model_description d = describe(model_file::open(options.target));
        write_bytes(options.json ? to_json(d).dump(2) + "\n" : to_text(d));
    } catch (const model_file_error& e) {
        throw model_error{e.what()};
    }
    return 0;
}

// The node's own metrics, without comments; `name{labels} value` lines as they are.
int inspect_node(const inspect_options& options) {
    const http_reply models = http_get(options.target, "/v1/models", options.key);
    if (models.status != 200) throw std::runtime_error(options.target + ": /v1/models answered " + std::to_string(models.status));
    const http_reply ready = http_get(options.target, "/ready", options.key);
    const http_reply metrics = http_get(options.target, "/metrics", options.key);
    nlohmann::ordered_json values = nlohmann::ordered_json::object();
    std::istringstream lines(metrics.body);
    for (std::string line; std::getline(lines, line);) {
        const auto space = line.rfind(' ');
        const bool bucket = line.find("_bucket{") != std::string::npos;
        if (line.empty() || line[0] == '#' || space == std::string::npos || bucket) continue;
        values[line.substr(0, space)] = std::stod(line.substr(space + 1));
    }
    if (options.json) {
        nlohmann::ordered_json out{{"ready", ready.status == 200}, {"models", nlohmann::ordered_json::parse(models.body)["data"]}};
        out["metrics"] = std::move(values);
        write_bytes(out.dump(2) + "\n");
        return 0;
    }
    std::ostringstream text;
    for (const auto& model : nlohmann::ordered_json::parse(models.body)["data"])
        text << "model: " << model["id"].get<std::string>() << ", context " << model["max_model_len"] << " tokens\n";
    text << "ready: " << (ready.status == 200 ? "yes" : "no") << "\n";
    for (const auto& [name, value] : values.items()) text << name << ": " << value.dump() << "\n";
    write_bytes(text.str());
    return 0;
}

}  // namespace

action declare_inspect(CLI::App& app) {
    auto options = std::make_shared<inspect_options>();
    app.add_option("target,--model", options->target, "model file or folder, or http://HOST:PORT of a node")->required();
    app.add_option("--key", options->key, "API key of the node");
    app.add_flag("--json", options->json, "one JSON object");
    return [options] {
        return options->target.rfind("http://", 0) == 0 ? inspect_node(*options) : inspect_file(*options);
    };
}

}  // namespace fermata::cli
