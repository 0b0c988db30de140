// Writing and time.
#include <poll.h>

#include <boost/asio/write.hpp>
#include <algorithm>
#include <cstdio>
#include <utility>

#include "frontend/client_errors.hpp"
#include "frontend/http/connection.hpp"

namespace fermata::http {

namespace {

constexpr std::chrono::milliseconds linger_time{2'000};
constexpr std::chrono::milliseconds hang_up_check{500};
constexpr std::size_t congested_bytes = 64 * 1024;  // from here on events wait in the mailbox, where they are joined

}  // namespace

void connection::reply(unsigned status, std::string_view content_type, std::string_view body, header_list more) {
    response_head head;
    head.status = status;
    head.content_type = content_type;
    if (status != 204) head.content_length = body.size();
    head.http_1_1 = head_.http_1_1;
    head.keep_alive = keep_ && !finishing_;
    head.more = std::move(more);
    auto text = text_of(head);
    if (!head_.is("HEAD")) text.append(body);
    (exchange_ ? exchange_->record : record_).status = status;
    shared_.numbers.count(status);
    response_done_ = true;
    send(text);
}

void connection::begin_stream(header_list more) {
    response_head head;
    head.content_type = "text/event-stream; charset=utf-8";
    head.http_1_1 = head_.http_1_1;
    if (!head_.http_1_1) keep_ = false;
    head.keep_alive = keep_ && !finishing_;
    head.more = std::move(more);
    exchange_->record.status = 200;
    shared_.numbers.count(200);
    streaming_ = true;
    stream_written_ = clock::now();
    send(text_of(head));
}

void connection::stream(std::string_view bytes) {
    if (closed_ || bytes.empty()) return;
    stream_written_ = clock::now();
    if (!head_.http_1_1) return send(bytes);
    char size[20];
    const auto digits = std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    outbox_.append(size, static_cast<std::size_t>(digits));
    outbox_.append(bytes);
    send("\r\n");
}

void connection::end_stream() {
    if (closed_) return;
    streaming_ = false;
    response_done_ = true;
    if (head_.http_1_1) send("0\r\n\r\n");
}

bool connection::congested() const { return outbox_.size() + in_flight_.size() - written_ > congested_bytes; }

void connection::slow_reader() {
    if (closed_) return;
    shared_.numbers.slow_readers.fetch_add(1, std::memory_order_relaxed);
    if (exchange_) exchange_->record.error = "slow_reader";
    close(true);
}

void connection::send(std::string_view bytes) {
    if (closed_) return;
    outbox_.append(bytes);
    if (!writing_) write();
}

void connection::write() {
    if (written_ == in_flight_.size()) {
        in_flight_.clear();
        written_ = 0;
        in_flight_.swap(outbox_);
    }
    if (in_flight_.empty()) return;
    writing_ = true;
    write_since_ = clock::now();
    socket_.async_write_some(asio::buffer(in_flight_.data() + written_, in_flight_.size() - written_),
                             [self = shared_from_this()](auto error, auto size) {
                                 self->writing_ = false;
                                 self->on_written(error, size);
                             });
}

void connection::on_written(boost::system::error_code error, std::size_t size) {
    if (closed_) return;
    if (error) return close(true);
    written_ += size;
    if (written_ < in_flight_.size() || !outbox_.empty()) return write();
    flushed();
}

void connection::flushed() {
    in_flight_.clear();
    written_ = 0;
    // One large answer must not keep its memory for the rest of the connection's life.
    if (in_flight_.capacity() > 256 * 1024) in_flight_.shrink_to_fit();
    if (outbox_.capacity() > 256 * 1024) outbox_.shrink_to_fit();
    if (close_after_flush_) return linger_after_flush_ ? linger() : close(false);
    if (phase_ == phase::idle) rest();  // it begins when the answer is out
    if (streaming_) return run_exchange(&exchange::on_events);  // what waited while the connection was congested
    process();  // requests that waited for the client to take earlier answers
    read();
    arm();
}

// The client may still be sending what was refused; closing at once would reset the connection and take the answer with it.
void connection::linger() {
    boost::system::error_code ignored;
    socket_.shutdown(socket_type::shutdown_send, ignored);
    phase_ = phase::lingering;
    phase_since_ = clock::now();
    buffer_.clear();
    account_ahead();
    if (read_eof_) return close(false);
    read();
    arm();
}

// When something has to happen next, whatever bytes do or don't arrive.
std::optional<connection::clock::time_point> connection::deadline() const {
    std::optional<clock::time_point> next;
    const auto at = [&](clock::time_point t) { next = next ? std::min(*next, t) : t; };
    switch (phase_) {
        case phase::idle:
            if (all_written()) at(phase_since_ + options_.idle_timeout);
            break;
        case phase::header: at(request_begun_ + options_.header_timeout); break;
        case phase::body:
            at(phase_since_ + options_.body_timeout);
            at(request_begun_ + options_.upload_timeout);
            break;
        case phase::lingering: at(phase_since_ + linger_time); break;
        case phase::answering:
            if (streaming_) at(stream_written_ + options_.heartbeat);
            if (!reading_) at(clock::now() + hang_up_check);
            break;
    }
    if (writing_) at(write_since_ + options_.write_timeout);
    return next;
}

void connection::arm() {
    if (closed_) return;
    const auto next = deadline();
    if (!next || (armed_ && *armed_ <= *next)) return;  // an earlier wake-up looks again
    armed_ = next;
    timer_.expires_at(*next);
    timer_.async_wait([self = shared_from_this()](boost::system::error_code error) {
        if (error || self->closed_) return;
        self->armed_.reset();
        self->on_time();
        self->arm();
    });
}

void connection::on_time() {
    const auto now = clock::now();
    if (writing_ && now >= write_since_ + options_.write_timeout) {
        shared_.numbers.timeouts.fetch_add(1, std::memory_order_relaxed);
        return close(true);
    }
    switch (phase_) {
        case phase::idle:
            if (all_written() && now >= phase_since_ + options_.idle_timeout) close(false);
            return;
        case phase::lingering:
            if (now >= phase_since_ + linger_time) close(false);
            return;
        case phase::header:
        case phase::body: {
            const bool late = phase_ == phase::header ? now >= request_begun_ + options_.header_timeout
                                                      : now >= phase_since_ + options_.body_timeout ||
                                                            now >= request_begun_ + options_.upload_timeout;
            if (!late) return;
            shared_.numbers.timeouts.fetch_add(1, std::memory_order_relaxed);
            keep_ = false;
            const auto error = make_error(408, "request_timeout", "the request did not arrive in time");
            phase_ = phase::answering;
            record_.error = error.code;
            reply_error(*this, error);
            return complete();
        }
        case phase::answering:
            if (!reading_ && client_hung_up()) return on_end_of_file();
            if (streaming_ && now >= stream_written_ + options_.heartbeat) stream(": keep-alive\n\n");
            return;
    }
}

// Whether the client sent its end of file behind bytes that aren't read yet.
bool connection::client_hung_up() {
    pollfd state{socket_.native_handle(), POLLRDHUP, 0};
    return ::poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

// `client_left`: an answer under way has nobody to read it.
void connection::close(bool client_left) {
    if (std::exchange(closed_, true)) return;
    idle_since_ns_.store(0, std::memory_order_relaxed);
    buffer_.clear();
    account_ahead();
    release_body();
    if (exchange_) {
        exchange_->left();
        auto& record = exchange_->record;
        if (!response_done_) {
            if (!client_left) shared_.cut_short.fetch_add(1);
            if (client_left) shared_.numbers.clients_left.fetch_add(1, std::memory_order_relaxed);
            if (record.status == 0) shared_.numbers.count(client_left ? 499 : 503);
            record.status = client_left ? 499 : record.status == 0 ? 503 : record.status;
            if (record.error.empty()) record.error = client_left ? "client_left" : "shutting_down";
            if (options_.request_log) options_.request_log(to_json(record, clock::now()));
        }
    }
    timer_.cancel();
    boost::system::error_code ignored;
    socket_.shutdown(socket_type::shutdown_both, ignored);
    socket_.close(ignored);
}

}  // namespace fermata::http
