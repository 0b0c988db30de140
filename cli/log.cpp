#include "cli/log.hpp"

#include <memory>
#include <mutex>

#include <nlohmann/json.hpp>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace fermata::cli {
namespace {

// %* : the message, escaped for a JSON string.
class json_message final : public spdlog::custom_flag_formatter {
public:
    void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
        const std::string text = json_escaped(std::string(message.payload.data(), message.payload.size()));
        out.append(text.data(), text.data() + text.size());
    }
    std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<json_message>(); }
};

void make_log(const std::string& level, bool json) {
    auto logger = std::make_shared<spdlog::logger>("fermata", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    if (json)
        formatter->add_flag<json_message>('*').set_pattern(
            R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","message":"%*"})");
    else
        formatter->set_pattern("%H:%M:%S.%e %^%l%$ %v");
    logger->set_formatter(std::move(formatter));
    logger->set_level(spdlog::level::from_str(level));
    logger->flush_on(spdlog::level::trace);
    spdlog::set_default_logger(std::move(logger));
}

}  // namespace

std::string json_escaped(const std::string& text) {
    const std::string quoted =
        nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return quoted.substr(1, quoted.size() - 2);
}

void set_up_log(const std::string& level, bool json) {
    // The first call counts: a logger that other threads may hold must not be replaced.
    static std::once_flag done;
    std::call_once(done, [&] { make_log(level, json); });
}

}  // namespace fermata::cli
