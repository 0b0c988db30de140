// Reading: bytes to requests, requests to routes.
#include "frontend/http/connection.hpp"

#include <boost/asio/post.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/rfc7230.hpp>

#include "frontend/client_errors.hpp"
#include "frontend/http/keys.hpp"
#include "frontend/http/models_json.hpp"

namespace fermata::http {

namespace beast_http = boost::beast::http;

namespace {

constexpr std::size_t discard_max = 64 * 1024;  // a refused request's body is read up to here to keep the connection

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

connection::connection(socket_type socket, connection_host host, std::function<void(connection*)> gone)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      host_(host),
      shared_(*host.shared),
      options_(host.shared->options),
      gone_(std::move(gone)) {}

connection::~connection() {
    if (exchange_ && !closed_) exchange_->left();  // a handler threw: what it had begun is not left running
    buffer_.clear();
    account_ahead();
    release_body();
    gone_(this);
}

void connection::start() {
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
        self->rest();
        self->read();
        self->arm();
    });
}

void connection::refuse() {
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
        self->keep_ = false;
        self->linger_after_flush_ = true;
        self->phase_ = phase::answering;
        auto error = make_error(503, "too_many_connections", "the server has as many connections as it takes; try again");
        error.retry_after_s = 1;
        self->record_.begun = clock::now();
        reply_error(*self, error);
        self->complete();
        self->read();
        self->arm();
    });
}

void connection::finish_and_close() {
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
        self->finishing_ = true;
        self->keep_ = false;
        if (self->phase_ != phase::idle) return;
        self->close_after_flush_ = true;  // the last answer may still be on its way
        if (self->outbox_.empty() && !self->writing_) self->close(false);
    });
}

void connection::close_if_idle() {
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
        if (self->idle_since_ns() != 0) self->close(false);
    });
}

// Nothing is asked and nothing left to be written, from now on.
void connection::rest() {
    phase_since_ = clock::now();
    idle_since_ns_.store(phase_since_.time_since_epoch().count(), std::memory_order_relaxed);
}

void connection::close_now() {
    asio::post(socket_.get_executor(), [self = shared_from_this()] { self->close(false); });
}

void connection::read() {
    if (reading_ || closed_ || read_eof_) return;
    const bool ahead = phase_ == phase::answering || phase_ == phase::idle;
    if (ahead && !account_ahead()) return;  // on_time() watches for a hang-up instead
    reading_ = true;
    socket_.async_read_some(asio::buffer(chunk_), [self = shared_from_this()](auto error, auto size) {
        self->reading_ = false;
        self->on_read(error, size);
    });
}

void connection::on_read(boost::system::error_code error, std::size_t size) {
    if (closed_) return;
    if (error) {
        if (error == asio::error::eof) return on_end_of_file();
        return close(true);
    }
    if (phase_ == phase::lingering || close_after_flush_) {
        lingered_ += size;
        if (lingered_ > options_.body_bytes_max) return close(false);
        return read();
    }
    buffer_.append({chunk_.data(), size});
    if (phase_ == phase::body) phase_since_ = clock::now();
    process();
    if (phase_ == phase::answering && buffer_.size() > options_.body_bytes_max + options_.header_bytes_max)
        return close(true);  // a flood of requests behind this one
    read();
    arm();
}

void connection::on_end_of_file() {
    read_eof_ = true;
    if (phase_ == phase::lingering) return close(false);
    if (close_after_flush_) return;
    if (exchange_ && exchange_->needs_client()) return close(true);
    keep_ = false;
    if (phase_ == phase::answering) return;  // the answer goes out, then the connection closes
    if (phase_ != phase::idle || (outbox_.empty() && !writing_)) return close(phase_ != phase::idle);
    close_after_flush_ = true;
}

void connection::process() {
    while (!closed_ && !close_after_flush_ && phase_ != phase::answering && phase_ != phase::lingering) {
        if (outbox_.size() > options_.outbox_bytes_max) return;  // pipelined requests wait until answers are taken
        if (phase_ == phase::idle) {
            const auto start = buffer_.view().find_first_not_of("\r\n");  // some clients end a body with an extra line
            buffer_.drop(start == std::string_view::npos ? buffer_.size() : start);
            if (buffer_.empty()) return;
            begin_request();
        }
        if (!feed()) return;
    }
}

void connection::begin_request() {
    parser_.emplace();
    parser_->eager(true);
    parser_->header_limit(static_cast<std::uint32_t>(options_.header_bytes_max));
    parser_->body_limit(options_.body_bytes_max);
    phase_ = phase::header;
    idle_since_ns_.store(0, std::memory_order_relaxed);
    request_begun_ = phase_since_ = clock::now();
    head_ = {};
    route_ = {};
    early_.reset();
    early_headers_.clear();
    record_ = {};
    record_.begun = request_begun_;
    response_done_ = streaming_ = false;
    keep_ = !finishing_ && !read_eof_;
}

bool connection::feed() {
    boost::system::error_code error;
    const auto waiting = buffer_.view();
    const auto used = parser_->put(asio::const_buffer(waiting.data(), waiting.size()), error);
    buffer_.drop(used);
    account_ahead();
    if (error && error != beast_http::error::need_more) {
        on_bad_request(error);
        return false;
    }
    if (phase_ == phase::header && parser_->is_header_done()) {
        phase_ = phase::body;
        phase_since_ = clock::now();
        on_header();
        if (phase_ != phase::body) return false;
    }
    account_body();
    if (phase_ != phase::body && phase_ != phase::header) return false;
    if (parser_->is_done()) {
        dispatch();
        return true;
    }
    if (error == beast_http::error::need_more && buffer_.size() > options_.header_bytes_max) {
        on_bad_request(beast_http::error::header_limit);  // an endless chunk header
        return false;
    }
    return !buffer_.empty() && !error;
}

// Browsers say which site's page sends a request. Without keys, on a loopback address, only pages of this machine may:
// the address alone would not keep a page of any site from asking.
bool connection::comes_from_here(std::string_view origin) const {
    if (origin.empty() || !options_.api_keys.empty() || options_.insecure || !is_loopback(options_.host)) return true;
    const auto scheme = origin.find("://");
    if (scheme == origin.npos) return false;  // "null": a page without a site
    auto host = origin.substr(scheme + 3);
    if (host.starts_with('['))
        host = host.substr(1, host.find(']') - 1);
    else
        host = host.substr(0, host.find(':'));
    return is_loopback(std::string(host));
}

// Bodies under way, of all connections together, stay within one limit.
void connection::account_body() {
    const auto now = parser_ ? parser_->get().body().text.size() : 0;
    if (now <= accounted_) return;
    const auto more = now - accounted_;
    accounted_ = now;
    if (host_.bodies_bytes->fetch_add(more) + more <= options_.bodies_bytes_max) return;
    auto error = make_error(503, "too_many_uploads", "the server is receiving too much at once; try again");
    error.retry_after_s = 1;
    refuse_early(std::move(error), true);
}

bool connection::account_ahead() {
    const auto free_bytes = options_.pipelined_bytes_max;
    const auto now = buffer_.size() > free_bytes ? buffer_.size() - free_bytes : 0;
    if (now < ahead_accounted_) host_.bodies_bytes->fetch_sub(ahead_accounted_ - now);
    if (now > ahead_accounted_) host_.bodies_bytes->fetch_add(now - ahead_accounted_);
    ahead_accounted_ = now;
    return now == 0 || host_.bodies_bytes->load() <= options_.bodies_bytes_max;
}

void connection::release_body() { host_.bodies_bytes->fetch_sub(std::exchange(accounted_, 0)); }

// What can be decided before the body: route, key, expectations.
void connection::on_header() {
    const auto& message = parser_->get();
    head_.method = std::string(view(message.method_string()));
    head_.http_1_1 = message.version() >= 11;
    head_.keep_alive = message.keep_alive();
    head_.request_id = fit_request_id(view(message["X-Request-Id"]));
    keep_ = keep_ && head_.keep_alive;
    const auto path = path_of(view(message.target()));
    record_.method = head_.method;
    record_.request_id = head_.request_id;
    if (!path) return refuse_early(make_error(400, "invalid_target", "the request target isn't a path"), false);
    head_.path = record_.path = *path;

    if (head_.http_1_1 && message.find(beast_http::field::host) == message.end())
        return refuse_early(make_error(400, "missing_host", "the Host header is missing"), true);
    const auto coding = view(message[beast_http::field::transfer_encoding]);
    if (!coding.empty() && !boost::beast::iequals(message[beast_http::field::transfer_encoding], "chunked"))
        return refuse_early(make_error(501, "transfer_encoding", "only the transfer encoding 'chunked' is supported"), true);
    const auto packed = message[beast_http::field::content_encoding];
    if (!packed.empty() && !boost::beast::iequals(packed, "identity"))
        return refuse_early(make_error(415, "content_encoding", "send the body without a content encoding"), false);
    const auto expectation = message[beast_http::field::expect];
    if (!expectation.empty() && !boost::beast::iequals(expectation, "100-continue"))
        return refuse_early(make_error(417, "expectation", "only 'Expect: 100-continue' is understood"), true);
    head_.expects_continue = !expectation.empty() && head_.http_1_1;

    if (!comes_from_here(view(message[beast_http::field::origin])))
        return refuse_early(make_error(403, "origin_not_allowed",
                                        "a page of another site asks for this; a server without keys answers local pages only "
                                        "(give --api-key-file FILE, or --insecure)"),
                            false);
    route_ = find_route(head_.method, head_.path);
    const auto key = presented_key(view(message[beast_http::field::authorization]), view(message["X-Api-Key"]));
    if (route_.needs_key && !options_.api_keys.empty() && !is_one_of(options_.api_keys, key)) {
        early_headers_.emplace_back("WWW-Authenticate", "Bearer");
        return refuse_early(make_error(401, "invalid_api_key",
                                        key.empty() ? "an API key is required: send 'Authorization: Bearer KEY'"
                                                    : "the API key is not valid"),
                            false);
    }
    switch (route_.id) {
        case route_id::unknown:
            return refuse_early(make_error(404, "unknown_url", "there is nothing at " + head_.method + " " + head_.path.substr(0, 200)), false);
        case route_id::not_built:
            return refuse_early(make_error(501, "not_in_this_version", head_.path.substr(0, 200) + " is not in this version"), false);
        case route_id::wrong_method:
            early_headers_.emplace_back("Allow", std::string(route_.allow));
            return refuse_early(make_error(405, "method_not_allowed",
                                            head_.path.substr(0, 200) + " takes " + std::string(route_.allow) + ", not " + head_.method.substr(0, 32)),
                                false);
        default: break;
    }
    if (head_.expects_continue && !parser_->is_done()) send("HTTP/1.1 100 Continue\r\n\r\n");
}

// A refusal at the header. A small body is read and dropped, so that the connection can go on; otherwise it is closed.
void connection::refuse_early(client_error error, bool close) {
    const auto length = parser_->is_header_done() ? parser_->content_length() : boost::none;
    const bool chunked = parser_->is_header_done() && parser_->chunked();
    const bool small = !chunked && (!length || *length <= discard_max);
    if (!close && (parser_->is_done() || (small && !head_.expects_continue))) {
        parser_->get().body().discard = true;
        early_ = std::move(error);
        return;
    }
    keep_ = false;
    linger_after_flush_ = true;
    phase_ = phase::answering;
    record_.error = error.code;
    reply_error(*this, error, std::move(early_headers_));
    complete();
}

void connection::on_bad_request(boost::system::error_code error) {
    keep_ = false;
    linger_after_flush_ = true;
    const auto& message = parser_->get();
    if (record_.method.empty()) {
        record_.method = std::string(view(message.method_string())).substr(0, 32);
        record_.path = path_of(view(message.target())).value_or("").substr(0, 200);
    }
    client_error answer;
    if (error == beast_http::error::body_limit)
        answer = make_error(413, "body_too_large", "the body is larger than " + std::to_string(options_.body_bytes_max) + " bytes");
    else if (error == beast_http::error::header_limit)
        answer = make_error(431, "header_too_large", "the header is larger than " + std::to_string(options_.header_bytes_max) + " bytes");
    else
        answer = make_error(400, "invalid_http", "this isn't a valid HTTP/1.1 request: " + error.message());
    phase_ = phase::answering;
    record_.error = answer.code;
    reply_error(*this, answer);
    complete();
}

void connection::dispatch() {
    phase_ = phase::answering;
    phase_since_ = clock::now();
    if (early_) {
        record_.error = early_->code;
        reply_error(*this, *early_, std::move(early_headers_));
        return complete();
    }
    auto body = std::move(parser_->get().body().text);
    parser_.reset();
    switch (route_.id) {
        case route_id::chat: return install(make_generation(shared_, *this, openai::api_kind::chat, std::move(body), head_));
        case route_id::completions:
            return install(make_generation(shared_, *this, openai::api_kind::completion, std::move(body), head_));
        case route_id::tokenize: return install(make_tokenize(shared_, *this, std::move(body)));
        case route_id::detokenize: return install(make_detokenize(shared_, *this, std::move(body)));
        default: break;
    }
    answer_route();
    complete();
}

void connection::answer_route() {
    const auto& node = shared_.node;
    switch (route_.id) {
        case route_id::health:
        case route_id::ready: {
            const auto health = node.health();
            const bool good = route_.id == route_id::health ? health.accepting : health.ready;
            return reply(good ? 200 : 503, "application/json", health_json(good, health.reason), {});
        }
        case route_id::metrics: {
            const auto now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now().time_since_epoch()).count();
            return reply(200, "text/plain; version=0.0.4; charset=utf-8", metrics_text(*node.numbers(), shared_.numbers, now_ns), {});
        }
        case route_id::models: return reply(200, "application/json", models_json(node.model()), {});
        case route_id::model:
            if (route_.argument == node.model().id) return reply(200, "application/json", model_json(node.model()), {});
            {
                auto error = make_error(404, "model_not_found",
                                         "the model '" + route_.argument.substr(0, 200) + "' does not exist; this server has '" + node.model().id + "'");
                error.param = "model";
                record_.error = error.code;
                return reply_error(*this, error);
            }
        case route_id::options: return reply(204, {}, {}, {{"Allow", std::string(route_.allow)}});
        default: return reply_error(*this, internal_error());
    }
}

void connection::install(std::unique_ptr<exchange> next) {
    exchange_ = std::move(next);
    ++serial_;
    exchange_->record.method = record_.method;
    exchange_->record.path = record_.path;
    exchange_->record.request_id = record_.request_id;
    exchange_->record.begun = record_.begun;
    run_exchange(&exchange::start);
    if (!in_background_) release_body();
}

void connection::run_exchange(void (exchange::*step)()) {
    if (closed_ || !exchange_ || response_done_) return;
    (exchange_.get()->*step)();
    if (response_done_ && !closed_) {
        complete();
        process();
        read();
    }
    arm();
}

std::function<void()> connection::waker() {
    return [self = shared_from_this(), mine = serial_] {
        asio::post(self->socket_.get_executor(), [self, mine] {
            if (self->serial_ == mine) self->run_exchange(&exchange::on_events);
        });
    };
}

void connection::in_background(std::function<void()> work) {
    in_background_ = true;
    asio::post(*host_.background, [self = shared_from_this(), work = std::move(work)] {
        work();
        asio::post(self->socket_.get_executor(), [self] {
            self->in_background_ = false;
            self->run_exchange(&exchange::on_events);  // from here on the node counts what it was given
            self->release_body();
        });
    });
}

// The response is in the outbox in full: account for it, make ready for the next request.
void connection::complete() {
    release_body();
    if (exchange_) record_ = std::move(exchange_->record);
    if (exchange_) record_.status = record_.status == 0 ? 200 : record_.status;
    exchange_.reset();
    parser_.reset();
    if (options_.request_log && (route_.needs_key || !record_.error.empty()))
        options_.request_log(to_json(record_, clock::now()));
    phase_ = phase::idle;
    phase_since_ = clock::now();
    if (all_written()) rest();
    if (finishing_) keep_ = false;
    if (!keep_) {
        close_after_flush_ = true;
        if (!writing_ && outbox_.empty()) flushed();
    }
}

}  // namespace fermata::http
