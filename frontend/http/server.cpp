#include "frontend/http/server.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "frontend/http/connection.hpp"

namespace fermata::http {

using tcp = asio::ip::tcp;

namespace {

constexpr std::size_t refusals_max = 64;  // connections beyond the limit that are told so; the rest is just closed

std::string start_salt() {
    std::random_device device;
    constexpr char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    std::string salt;
    for (int i = 0; i < 8; ++i) salt += digits[device() % 36];
    return salt;
}

std::string address_text(const tcp::endpoint& endpoint) {
    const auto address = endpoint.address().to_string();
    return (endpoint.address().is_v6() ? '[' + address + ']' : address) + ':' + std::to_string(endpoint.port());
}

// A dead peer on a quiet connection is noticed after about two minutes.
void tune(socket_type& socket) {
    boost::system::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    socket.set_option(asio::socket_base::keep_alive(true), ignored);
    const int fd = socket.native_handle();
    const int idle_s = 60, interval_s = 15, probes = 4;
    ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

}  // namespace

struct server::state {
    struct listener {
        tcp::acceptor acceptor;
        asio::steady_timer pause;
        explicit listener(asio::io_context& context) : acceptor(asio::make_strand(context)), pause(acceptor.get_executor()) {}
    };

    service shared;
    asio::io_context context;
    asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
    std::unique_ptr<asio::thread_pool> background = std::make_unique<asio::thread_pool>(1);
    std::vector<std::thread> threads;
    std::vector<std::unique_ptr<listener>> listeners;
    std::uint16_t port = 0;
    std::atomic<std::size_t> bodies_bytes{0};
    bool stopped = false;

    std::mutex mutex;  // guards `open`, `leaving` and `stopping`
    std::condition_variable changed;
    std::unordered_map<connection*, std::weak_ptr<connection>> open;
    std::unordered_set<connection*> leaving;  // of these, asked to make room
    bool stopping = false;

    state(server_options options, gateway& node) : shared(std::move(options), node) { shared.salt = start_salt(); }

    void warn(const std::string& line) {
        if (shared.options.warn) shared.options.warn(line);
    }

    // An exception (no memory) costs the connection whose handler threw it, not the server.
    void run() {
        while (true) {
            try {
                context.run();
                return;
            } catch (const std::exception& e) {
                warn(std::string("a connection was dropped: ") + e.what());
            }
        }
    }

    std::vector<tcp::endpoint> resolve() {
        const auto& o = shared.options;
        boost::system::error_code error;
        const auto address = asio::ip::make_address(o.host, error);
        if (!error) return {tcp::endpoint(address, o.port)};
        tcp::resolver resolver(context);
        const auto found = resolver.resolve(o.host, std::to_string(o.port), tcp::resolver::passive, error);
        if (error || found.empty())
            throw listen_error("--host " + o.host + " is no address of this machine: " + error.message());
        std::vector<tcp::endpoint> result;
        for (const auto& entry : found)
            if (std::find(result.begin(), result.end(), entry.endpoint()) == result.end()) result.push_back(entry.endpoint());
        return result;
    }

    void check_exposure() const {
        const auto& o = shared.options;
        if (o.api_keys.empty() && !o.insecure && !is_loopback(o.host))
            throw listen_error("--host " + o.host + " is reachable from other machines: give --api-key-file FILE, or --insecure to serve without keys");
    }

    // False where the address family or address doesn't exist here (one of several of a name).
    bool listen_on(tcp::endpoint endpoint) {
        auto next = std::make_unique<listener>(context);
        auto& acceptor = next->acceptor;
        boost::system::error_code error;
        acceptor.open(endpoint.protocol(), error);
        if (error) return false;
        acceptor.set_option(tcp::acceptor::reuse_address(true), error);
        if (endpoint.protocol() == tcp::v6()) acceptor.set_option(asio::ip::v6_only(endpoint.address() != asio::ip::address_v6::any()), error);
        acceptor.bind(endpoint, error);
        if (!error) acceptor.listen(1024, error);
        if (error == asio::error::address_in_use)
            throw listen_error("port " + std::to_string(endpoint.port()) + " on " + shared.options.host + " is in use by another program; choose another with --port");
        if (error == asio::error::access_denied)
            throw listen_error("port " + std::to_string(endpoint.port()) + " needs privileges; choose one from 1024 on with --port");
        if (error && error.value() == EADDRNOTAVAIL) return false;
        if (error) throw listen_error("can't listen on " + address_text(endpoint) + ": " + error.message());
        port = acceptor.local_endpoint().port();
        listeners.push_back(std::move(next));
        return true;
    }

    void accept(listener& from) {
        from.acceptor.async_accept(asio::make_strand(context), [this, &from](boost::system::error_code error, socket_type socket) {
            if (error == asio::error::operation_aborted || !from.acceptor.is_open()) return;
            if (error) {
                warn("can't accept a connection: " + error.message());
                from.pause.expires_after(std::chrono::milliseconds(100));  // out of descriptors: others must close first
                from.pause.async_wait([this, &from](boost::system::error_code stopped_waiting) {
                    if (!stopped_waiting && from.acceptor.is_open()) accept(from);
                });
                return;
            }
            try {
                adopt(std::move(socket));
            } catch (const std::exception& e) {  // no memory: this connection's trouble, not the listener's
                warn(std::string("a connection was dropped: ") + e.what());
            }
            accept(from);
        });
    }

    void adopt(socket_type socket) {
        tune(socket);
        auto& numbers = shared.numbers;
        const auto gone = [this](connection* c) {
            shared.numbers.connections.fetch_sub(1, std::memory_order_relaxed);
            std::lock_guard lock(mutex);
            open.erase(c);
            leaving.erase(c);
            changed.notify_all();
        };
        // Made and, whatever happens, ended outside the lock: `gone` takes it.
        auto next = std::make_shared<connection>(std::move(socket), connection_host{&shared, background.get(), &bodies_bytes}, gone);
        numbers.connections.fetch_add(1, std::memory_order_relaxed);
        bool full = false;
        std::shared_ptr<connection> leaves;  // released outside the lock, too
        {
            std::lock_guard lock(mutex);
            const auto& limit = shared.options.connections_max;
            full = open.size() >= limit;
            if (full && open.size() < limit + refusals_max && (leaves = longest_idle())) full = false;
            (full || stopping ? numbers.connections_refused : numbers.connections_total).fetch_add(1, std::memory_order_relaxed);
            if (stopping || open.size() >= limit + refusals_max) return;
            open.emplace(next.get(), next);
        }
        if (leaves) leaves->close_if_idle();
        full ? next->refuse() : next->start();
    }

    // The connection that has been of no use for longest, if one is idle; it is asked once. Under `mutex`.
    std::shared_ptr<connection> longest_idle() {
        connection* found = nullptr;
        std::int64_t since = std::numeric_limits<std::int64_t>::max();
        for (const auto& [each, weak] : open) {
            const auto idle = each->idle_since_ns();
            if (idle == 0 || idle >= since || leaving.contains(each)) continue;
            found = each;
            since = idle;
        }
        if (!found) return nullptr;
        leaving.insert(found);
        return open.at(found).lock();
    }

    std::vector<std::shared_ptr<connection>> connections() {
        std::vector<std::shared_ptr<connection>> result;
        std::lock_guard lock(mutex);
        for (const auto& [_, weak] : open)
            if (auto c = weak.lock()) result.push_back(std::move(c));
        return result;
    }

    bool wait_until_empty(std::chrono::milliseconds time) {
        std::unique_lock lock(mutex);
        return changed.wait_for(lock, time, [this] { return open.empty(); });
    }
};

server::server(server_options options, gateway& node) : state_(std::make_unique<state>(std::move(options), node)) {}

server::~server() { stop(std::chrono::milliseconds(0)); }

void server::start() {
    auto& s = *state_;
    s.check_exposure();
    const auto endpoints = s.resolve();
    for (auto endpoint : endpoints) {
        if (s.port != 0) endpoint.port(s.port);  // one port for all addresses of a name
        s.listen_on(endpoint);
    }
    if (s.listeners.empty())
        throw listen_error("--host " + s.shared.options.host + " is no address of this machine");
    for (auto& each : s.listeners) s.accept(*each);
    for (unsigned i = 0; i < std::max(1u, s.shared.options.threads); ++i) s.threads.emplace_back([&s] { s.run(); });
}

std::uint16_t server::port() const noexcept { return state_->port; }

const http_numbers& server::numbers() const noexcept { return state_->shared.numbers; }

std::size_t server::stop(std::chrono::milliseconds grace) {
    auto& s = *state_;
    if (std::exchange(s.stopped, true)) return 0;
    {
        std::lock_guard lock(s.mutex);
        s.stopping = true;
    }
    for (auto& each : s.listeners)
        asio::post(each->acceptor.get_executor(), [&listener = *each] {
            boost::system::error_code ignored;
            listener.acceptor.close(ignored);
            listener.pause.cancel();
        });
    if (!s.threads.empty()) {
        for (const auto& c : s.connections()) c->finish_and_close();
        if (!s.wait_until_empty(grace)) {
            for (const auto& c : s.connections()) c->close_now();
        }
        s.background->join();  // bodies being parsed; their connections are closed
        s.wait_until_empty(std::chrono::seconds(10));
    }
    s.work.reset();
    for (auto& thread : s.threads) thread.join();
    s.threads.clear();
    s.background.reset();
    return s.shared.cut_short.load();
}

}  // namespace fermata::http
