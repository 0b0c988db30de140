// GET /metrics: the node's numbers and the HTTP side's own, as Prometheus text.
//
// Every series, with each value of its bounded labels, exists from the first scrape on, at 0 where the part that would
// move it isn't built yet: a dashboard never sees a series appear.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "frontend/gateway.hpp"

namespace fermata::http {

// Of the HTTP side itself. Written by its threads.
struct http_numbers {
    std::atomic<std::int64_t> connections{0};
    std::atomic<std::uint64_t> connections_total{0}, connections_refused{0};
    std::atomic<std::uint64_t> clients_left{0}, slow_readers{0}, timeouts{0};
    static constexpr std::array<unsigned, 18> codes = {200, 204, 400, 401, 403, 404, 405, 408, 413,
                                                       415, 417, 429, 431, 499, 500, 501, 503, 504};
    std::array<std::atomic<std::uint64_t>, codes.size() + 1> responses{};  // the last: any other code
    void count(unsigned status);
};

// `now_ns`: the steady clock that the node's times are taken from.
std::string metrics_text(const telemetry& node, const http_numbers& http, std::int64_t now_ns);

}  // namespace fermata::http
