// One client connection: bytes in, requests out, answers in order.
//
// Invariants
// - Everything runs on the connection's strand; only the mailbox of an exchange is touched by other threads.
// - One request is answered at a time; what a client pipelines waits, in a bounded buffer.
// - The socket is read also while an answer is under way, so that a client that leaves is noticed at once: an end of file
//   or a reset cancels a generation (queued, prefilling or streaming alike). That it lies behind pipelined requests
//   changes nothing: these are read too, at the cost of the limit that bodies share.
// - Memory is bounded: header, body, read-ahead and outbox have limits of their own.
// - Every state has a deadline but one: waiting for the node, whose timeouts are its own.
#pragma once

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/http/parser.hpp>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "frontend/http/body.hpp"
#include "frontend/http/exchange.hpp"
#include "frontend/http/read_ahead.hpp"
#include "frontend/http/routes.hpp"

namespace fermata::http {

namespace asio = boost::asio;
using strand_type = asio::strand<asio::io_context::executor_type>;
using socket_type = asio::basic_stream_socket<asio::ip::tcp, strand_type>;

// Shared by all connections of a server; outlives them.
struct connection_host {
    service* shared = nullptr;
    asio::thread_pool* background = nullptr;
    std::atomic<std::size_t>* bodies_bytes = nullptr;  // of bodies being received
};

class connection final : public std::enable_shared_from_this<connection>, private responder {
public:
    connection(socket_type socket, connection_host host, std::function<void(connection*)> gone);
    ~connection() override;

    void start();            // from any thread
    void refuse();           // instead of start(): 503, the server has enough connections
    void finish_and_close(); // no further request; what is under way may end
    void close_now();        // cancels what is under way
    void close_if_idle();    // makes room for a client that has something to ask
    // When it fell idle (steady clock); 0: it is not. From any thread.
    std::int64_t idle_since_ns() const noexcept { return idle_since_ns_.load(std::memory_order_relaxed); }

private:
    using clock = std::chrono::steady_clock;
    using parser_type = boost::beast::http::request_parser<bounded_body>;
    enum class phase { idle, header, body, answering, lingering };

    // responder
    void reply(unsigned status, std::string_view content_type, std::string_view body, header_list more) override;
    void begin_stream(header_list more) override;
    void stream(std::string_view bytes) override;
    void end_stream() override;
    bool congested() const override;
    void slow_reader() override;
    std::function<void()> waker() override;
    void in_background(std::function<void()> work) override;

    // reading: connection.cpp
    void read();
    void on_read(boost::system::error_code error, std::size_t size);
    void on_end_of_file();
    void process();
    void begin_request();
    bool comes_from_here(std::string_view origin) const;
    bool feed();  // false: more bytes are needed, or the request ended
    void on_header();
    void account_body();
    bool account_ahead();  // false: the limit of all bodies is reached
    void rest();
    void release_body();
    void on_bad_request(boost::system::error_code error);
    void refuse_early(client_error error, bool close);
    void dispatch();
    void install(std::unique_ptr<exchange> next);
    void run_exchange(void (exchange::*step)());
    void answer_route();
    void complete();

    // writing and time: connection_io.cpp
    void send(std::string_view bytes);
    void write();
    void on_written(boost::system::error_code error, std::size_t size);
    void flushed();
    void arm();
    void on_time();
    void close(bool client_left);
    void linger();
    std::optional<clock::time_point> deadline() const;
    bool client_hung_up();
    bool all_written() const { return !writing_ && outbox_.empty(); }

    socket_type socket_;
    asio::basic_waitable_timer<clock, asio::wait_traits<clock>, strand_type> timer_;
    connection_host host_;
    service& shared_;
    const server_options& options_;
    std::function<void(connection*)> gone_;

    std::array<char, 16 * 1024> chunk_;
    read_ahead buffer_;
    std::size_t ahead_accounted_ = 0;  // of buffer_, in bodies_bytes: what is beyond pipelined_bytes_max
    std::atomic<std::int64_t> idle_since_ns_{0};
    std::optional<parser_type> parser_;
    phase phase_ = phase::idle;
    request_head head_;
    route route_;
    std::optional<client_error> early_;  // decided at the header, answered after the body
    header_list early_headers_;
    std::size_t accounted_ = 0;          // bytes of the body in bodies_bytes
    std::unique_ptr<exchange> exchange_;
    std::uint64_t serial_ = 0;           // of exchange_: a wake-up for an earlier one does nothing
    bool in_background_ = false;
    request_record record_;              // of requests without an exchange
    bool response_done_ = false;         // set by the responder, acted on after the exchange returns
    bool streaming_ = false;
    bool keep_ = true;                   // the connection survives this response

    std::string outbox_, in_flight_;
    std::size_t written_ = 0;  // of in_flight_
    bool reading_ = false, writing_ = false, read_eof_ = false, close_after_flush_ = false, linger_after_flush_ = false,
         closed_ = false, finishing_ = false;
    std::size_t lingered_ = 0;

    clock::time_point request_begun_{}, phase_since_{}, write_since_{}, stream_written_{};
    std::optional<clock::time_point> armed_;
};

}  // namespace fermata::http
