#include "frontend/http/exchange.hpp"

#include "frontend/client_errors.hpp"
#include "frontend/openai/answer.hpp"
#include "frontend/openai/text.hpp"

namespace fermata::http {

client_error internal_error() { return make_error(500, "internal_error", "the server could not process this request"); }

void reply_error(responder& to, const client_error& error, header_list more) {
    const unsigned status = error.status >= 400 && error.status <= 599 ? error.status : 500;
    auto retry_after_s = error.retry_after_s;
    if (status == 429 && retry_after_s == 0) retry_after_s = 1;
    if (retry_after_s != 0) more.emplace_back("Retry-After", std::to_string(retry_after_s));
    to.reply(status, "application/json", openai::error_json(error), std::move(more));
}

std::string to_json(const request_record& record, std::chrono::steady_clock::time_point now) {
    std::string out = "{\"id\":";
    openai::append_json_string(out, record.id);
    const auto text = [&](std::string_view name, std::string_view value) {
        if (value.empty()) return;
        out += ",\"" + std::string(name) + "\":";
        openai::append_json_string(out, value);
    };
    const auto number = [&](std::string_view name, auto value) {
        out += ",\"" + std::string(name) + "\":";
        openai::append_json_number(out, value);
    };
    text("request_id", record.request_id);
    text("method", record.method);
    text("path", record.path);
    number("status", std::uint64_t{record.status});
    out += record.stream ? ",\"stream\":true" : ",\"stream\":false";
    text("error", record.error);
    text("finish_reason", record.finish);
    if (record.has_usage) {
        number("prompt_tokens", record.usage.prompt_tokens);
        number("cached_tokens", record.usage.cached_tokens);
        number("completion_tokens", record.usage.completion_tokens);
        number("replayed_tokens", record.usage.replayed_tokens);
        text("source", record.usage.source);
        number("queue_ms", record.usage.queue_ms);
        number("ttft_ms", record.usage.ttft_ms);
    }
    number("duration_ms", std::chrono::duration<double, std::milli>(now - record.begun).count());
    out += '}';
    return out;
}

}  // namespace fermata::http
