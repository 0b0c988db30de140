// The HTTP server: listens, keeps the connections, starts and stops. Everything about the model is behind `gateway`.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "frontend/gateway.hpp"
#include "frontend/http/metrics.hpp"
#include "frontend/http/options.hpp"

namespace fermata::http {

// The address can't be used: what is wrong and what would be right, one line.
class listen_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

class server {
public:
    // The gateway must outlive the server.
    server(server_options options, gateway& node);
    ~server();  // stop(0)
    server(const server&) = delete;
    server& operator=(const server&) = delete;

    // Listens and answers from now on. Throws listen_error.
    void start();
    std::uint16_t port() const noexcept;  // after start(); useful with port 0

    // Takes no further connection or request, lets answers under way end for at most `grace`, then cancels them.
    // Returns how many were cut short. Blocks; call it from none of the node's or server's threads.
    std::size_t stop(std::chrono::milliseconds grace);

    const http_numbers& numbers() const noexcept;

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace fermata::http
