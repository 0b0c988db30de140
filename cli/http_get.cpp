#include "cli/http_get.hpp"

#include <chrono>
#include <stdexcept>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

namespace fermata::cli {

namespace beast = boost::beast;
namespace http = beast::http;
namespace asio = boost::asio;

http_reply http_get(const std::string& base, const std::string& path, const std::string& key) {
    const std::string scheme = "http://";
    if (base.rfind(scheme, 0) != 0) throw std::runtime_error(base + ": http://HOST:PORT would be right");
    std::string host = base.substr(scheme.size());
    while (!host.empty() && host.back() == '/') host.pop_back();
    std::string port = "80";
    if (const auto colon = host.rfind(':'); colon != std::string::npos && host.find(']', colon) == std::string::npos) {
        port = host.substr(colon + 1);
        host.resize(colon);
    }
    if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);

    asio::io_context context;
    beast::tcp_stream stream(context);
    http::response<http::string_body> reply;
    beast::flat_buffer buffer;
    http::request<http::empty_body> request(http::verb::get, path, 11);
    request.set(http::field::host, host);
    if (!key.empty()) request.set(http::field::authorization, "Bearer " + key);
    beast::error_code problem;
    asio::ip::tcp::resolver resolver(context);
    const auto addresses = resolver.resolve(host, port, problem);
    if (!problem) {
        stream.expires_after(std::chrono::seconds(10));
        stream.async_connect(addresses, [&](beast::error_code e, const auto&) {
            if ((problem = e)) return;
            http::async_write(stream, request, [&](beast::error_code w, std::size_t) {
                if ((problem = w)) return;
                http::async_read(stream, buffer, reply, [&](beast::error_code r, std::size_t) { problem = r; });
            });
        });
        context.run();
    }
    if (problem) throw std::runtime_error(base + path + ": " + problem.message());
    return {reply.result_int(), reply.body()};
}

}  // namespace fermata::cli
