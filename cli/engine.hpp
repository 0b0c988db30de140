// A resident model in a node of this process: what `run`, `chat`, `bench`, `perplexity` and `serve` start.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cli/options.hpp"
#include "frontend/gateway.hpp"
#include "frontend/planning/text_model.hpp"
#include "native/program.hpp"

namespace fermata::cli {

class engine {
public:
    virtual ~engine() = default;
    virtual gateway& door() = 0;
    virtual const text_model& text() const = 0;
    virtual const model_layout& layout() const = 0;
    virtual const memory_plan& plan() const = 0;
    virtual std::uint32_t threads() const = 0;
    // The port of the typed CAF endpoint; 0: none.
    virtual std::uint16_t caf_port() const = 0;
    // No new requests; accepted ones may finish within the grace time. True when nothing was cut short.
    virtual bool stop(std::uint32_t grace_ms) = 0;
};

struct engine_extras {
    std::string model_id{};          // empty: the file's name
    int caf_port = -1;               // -1: none
    std::string caf_host{};
    bool progress = false;           // say on standard error what is being done
};

// Of a --model argument: the file's name, and the name in /v1/models (the file's without its ending).
std::string file_name(const std::string& model);
std::string model_id_of(const std::string& model);

// Throws usage_error, model_error.
std::unique_ptr<engine> start_engine(const engine_options& options, const engine_extras& extras);

}  // namespace fermata::cli
