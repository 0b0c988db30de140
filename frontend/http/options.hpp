// What the HTTP side is told at start. Every limit has a name here and in the documentation.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/openai/request.hpp"

namespace fermata::http {

struct server_options {
    std::string host = "127.0.0.1";
    std::uint16_t port = 8080;          // 0: any free port
    std::vector<std::string> api_keys;  // empty: any key, or none, is accepted
    bool insecure = false;              // allow a host that isn't loopback without keys
    unsigned threads = 2;

    std::size_t connections_max = 1024;
    std::size_t header_bytes_max = 32 * 1024;
    std::size_t body_bytes_max = 32 * 1024 * 1024;
    std::size_t bodies_bytes_max = 256 * 1024 * 1024;  // of all bodies being received together
    std::size_t pipelined_bytes_max = 256 * 1024;      // read ahead while an answer is under way; more of it counts as a body
    std::size_t outbox_bytes_max = 2 * 1024 * 1024;    // of a stream, not taken by the client
    std::size_t answer_bytes_max = 64 * 1024 * 1024;   // one answer without a stream
    openai::request_limits request;

    std::chrono::milliseconds header_timeout{10'000};  // first byte of a request to the end of its header
    std::chrono::milliseconds body_timeout{30'000};    // without a further byte of the body
    std::chrono::milliseconds upload_timeout{300'000}; // whole request
    std::chrono::milliseconds idle_timeout{75'000};    // a kept connection without a request
    std::chrono::milliseconds write_timeout{60'000};   // the client takes nothing
    std::chrono::milliseconds heartbeat{5'000};        // silence in a stream before a comment line

    // One JSON object for each finished request; never text of a prompt or an answer. May be empty.
    std::function<void(std::string_view line)> request_log;
    // Rare troubles of the server itself (one line). May be empty.
    std::function<void(std::string_view line)> warn;
};

// One key a line; blank lines and lines that start with # are skipped. Throws std::runtime_error.
std::vector<std::string> read_api_keys(const std::string& path);

// Whether the address is reachable from this machine only.
bool is_loopback(const std::string& host);

}  // namespace fermata::http
