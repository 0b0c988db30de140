// A client made of a socket and nothing else, so that tests can send what no library would.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace fermata::testing {

struct raw_response {
    unsigned status = 0;
    std::string head;
    std::string body;
    bool has(std::string_view text) const { return head.find(text) != std::string::npos; }
};

class raw_client {
public:
    // `receive_bytes`: size of the kernel's receive buffer, for clients that don't read.
    explicit raw_client(std::uint16_t port, int receive_bytes = 0) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
        if (receive_bytes != 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
        timeval const patience{20, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) throw std::runtime_error("can't connect");
    }
    ~raw_client() { close(); }
    raw_client(raw_client const&) = delete;
    raw_client& operator=(raw_client const&) = delete;

    void send(std::string_view bytes) {
        while (!bytes.empty()) {
            auto const n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (n <= 0) throw std::runtime_error("the server closed the connection");
            bytes.remove_prefix(static_cast<std::size_t>(n));
        }
    }
    void half_close() { ::shutdown(fd_, SHUT_WR); }
    void close() {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }
    // Closes with a reset instead of a goodbye.
    void reset() {
        linger const hard{1, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        close();
    }

    // Everything up to and including `mark`.
    std::string read_until(std::string_view mark) {
        while (true) {
            auto const at = buffer_.find(mark);
            if (at != std::string::npos) return take(at + mark.size());
            if (!more()) throw std::runtime_error("the server closed before '" + std::string(mark) + "': " + buffer_);
        }
    }
    std::string read_to_end() {
        while (more()) {
        }
        return take(buffer_.size());
    }
    bool at_end() { return buffer_.empty() && !more(); }

    // One response with a length or in chunks; `head_only` for HEAD.
    raw_response read_response(bool head_only = false) {
        raw_response r;
        r.head = read_until("\r\n\r\n");
        r.status = static_cast<unsigned>(std::stoul(r.head.substr(9, 3)));
        if (head_only || r.status == 204 || r.status == 100) return r;
        if (r.has("Transfer-Encoding: chunked")) {
            while (true) {
                auto const size = std::stoul(read_until("\r\n"), nullptr, 16);
                r.body += read_exactly(size);
                if (read_exactly(2) != "\r\n") throw std::runtime_error("a chunk isn't closed");
                if (size == 0) return r;
            }
        }
        auto const at = r.head.find("Content-Length: ");
        r.body = at == std::string::npos ? read_to_end() : read_exactly(std::stoul(r.head.substr(at + 16)));
        return r;
    }

private:
    std::string take(std::size_t n) {
        auto result = buffer_.substr(0, n);
        buffer_.erase(0, n);
        return result;
    }
    std::string read_exactly(std::size_t n) {
        while (buffer_.size() < n)
            if (!more()) throw std::runtime_error("the server closed in the middle of a body");
        return take(n);
    }
    bool more() {
        pollfd p{fd_, POLLIN, 0};
        if (::poll(&p, 1, 20'000) <= 0) throw std::runtime_error("nothing came for 20 s; so far: " + buffer_);
        char chunk[16384];
        auto const n = ::recv(fd_, chunk, sizeof chunk, 0);
        if (n <= 0) return false;
        buffer_.append(chunk, static_cast<std::size_t>(n));
        return true;
    }

    int fd_;
    std::string buffer_;
};

inline std::string request_text(std::string_view method, std::string_view path, std::string_view body = {},
                                std::string_view more_headers = {}) {
    std::string out(method);
    out += ' ';
    out.append(path);
    out += " HTTP/1.1\r\nHost: test\r\n";
    out.append(more_headers);
    if (!body.empty()) out += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    out += "\r\n";
    out.append(body);
    return out;
}

}  // namespace fermata::testing
