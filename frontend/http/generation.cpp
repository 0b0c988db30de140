// A generation from its body to its last byte. One HTTP request may be several requests of the node (one a prompt); all
// are accepted before the headers of a stream go out, so every 4xx is a plain answer.
#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "frontend/client_errors.hpp"
#include "frontend/http/exchange.hpp"
#include "frontend/openai/answer.hpp"

namespace fermata::http {
namespace {

constexpr std::size_t background_bytes = 64 * 1024;  // bodies from here on are parsed beside the strands

class generation final : public exchange {
public:
    generation(service& shared, responder& to, openai::api_kind api, std::string body, const request_head& head)
        : shared_(shared), to_(to), api_(api), body_(std::move(body)), client_id_(head.request_id) {}

    void start() override {
        if (body_.size() < background_bytes) {
            parse();
            submit_all();
        } else {
            to_.in_background([this] { parse(); });
        }
    }

    void on_events() override {
        if (!submitted_) return submit_all();
        if (over_) return;
        // A client that is behind: what comes waits in the mailbox, up to its bound.
        if (headers_sent_ && to_.congested() && !box_->overflowed()) return;
        bool overflow = false;
        box_->take(events_, overflow);
        for (auto& e : events_) {
            if (over_) break;
            std::visit([&](const auto& what) { handle(e.part, what); }, e.what);
        }
        if (over_) return;
        if (overflow) {
            give_up();
            return to_.slow_reader();
        }
        if (headers_sent_ && !out_.empty()) {
            to_.stream(out_);
            out_.clear();
        }
        if (done_ == ids_.size()) finish();
    }

    void left() override { give_up(); }
    bool needs_client() const override { return true; }

private:
    // May run beside the strand: touches only what nobody else uses before submit_all().
    void parse() {
        const auto& card = shared_.node.model();
        const openai::model_facts model{card.id, card.vocabulary};
        try {
            const auto& limits = shared_.options.request;
            parsed_ = api_ == openai::api_kind::chat ? openai::parse_chat(body_, model, limits)
                                                     : openai::parse_completion(body_, model, limits);
        } catch (const openai::request_error& e) {
            refused_ = e.error();
        } catch (const std::exception&) {
            refused_ = internal_error();
        }
        std::string().swap(body_);
    }

    // Prompts are requests of the node, queued together: more than may wait would be refused again and again.
    void check_prompts() {
        const auto limit = shared_.node.numbers()->queue_limit.load(std::memory_order_relaxed);
        if (limit <= 0 || parsed_->parts.size() <= static_cast<std::uint64_t>(limit)) return;
        refused_ = openai::invalid_request("prompt", "'prompt' has " + std::to_string(parsed_->parts.size()) +
                                                         " prompts; this server queues at most " + std::to_string(limit) +
                                                         " requests (--max-pending)", "invalid_value");
    }

    void submit_all() {
        submitted_ = true;
        if (over_) return;  // the client left meanwhile
        if (!refused_) check_prompts();
        if (refused_) return end_with(*refused_);
        form_ = parsed_->form;
        if (!shared_.node.model().has_text) form_.token_ids = true;  // there is nothing else to show
        record.stream = form_.stream;
        box_ = std::make_shared<mailbox>(form_.stream ? shared_.options.outbox_bytes_max : shared_.options.answer_bytes_max, to_.waker());
        for (std::size_t i = 0; i < parsed_->parts.size(); ++i) ids_.push_back(shared_.node.next_request());
        usage_.resize(ids_.size());
        live_.assign(ids_.size(), char{1});
        const auto name = std::to_string(ids_.front().value);
        record.id = (api_ == openai::api_kind::chat ? "chatcmpl-" : "cmpl-") + shared_.salt + '-' + name;
        answer_.emplace(form_, openai::answer_head{record.id, name, shared_.node.model().id, std::time(nullptr)});
        const bool keep_tokens = form_.logprobs || form_.token_ids;
        for (std::size_t i = 0; i < parsed_->parts.size(); ++i) {
            auto& part = parsed_->parts[i];
            part.request = ids_[i];
            shared_.node.submit_request(std::move(part), std::make_shared<mailbox_sink>(box_, i, keep_tokens));
        }
        parsed_.reset();
    }

    void handle(std::size_t, const accepted&) {
        if (++accepted_ == ids_.size() && form_.stream) open_stream();
    }
    void handle(std::size_t part, const rejected& e) {
        live_[part] = 0;
        end_with(e.error);
    }
    void handle(std::size_t part, const text_delta& e) {
        answer_->add(part, e, out_);
        if (answer_->kept_bytes() <= shared_.options.answer_bytes_max) return;
        end_with(make_error(500, "answer_too_large",
                            "the answer is larger than " + std::to_string(shared_.options.answer_bytes_max) +
                                " bytes; use a stream, or ask for fewer tokens or log-probabilities"));
    }
    void handle(std::size_t part, const finished& e) {
        live_[part] = 0;
        usage_[part] = e.usage;
        ++done_;
    }
    void handle(std::size_t part, const failed& e) {
        live_[part] = 0;
        usage_[part] = e.usage;
        end_with(e.error);
    }
    void handle(std::size_t, const tokenized&) {}
    void handle(std::size_t, const detokenized&) {}

    header_list headers() const {
        header_list more;
        more.emplace_back("X-Request-Id", client_id_.empty() ? record.id : client_id_);
        return more;
    }

    void open_stream() {
        headers_sent_ = true;
        auto more = headers();
        more.emplace_back("Cache-Control", "no-cache");
        more.emplace_back("X-Accel-Buffering", "no");  // nginx would hold events back
        to_.begin_stream(std::move(more));
    }

    void finish() {
        over_ = true;
        record.has_usage = true;
        record.usage = openai::total_of(usage_);
        record.finish = answer_->finish_of(0);
        box_->detach();
        answer_->finish(usage_, out_);
        if (form_.stream) {
            to_.stream(out_);
            to_.end_stream();
        } else {
            to_.reply(200, "application/json", out_, headers());
        }
    }

    void end_with(const client_error& error) {
        give_up();
        record.error = error.code.empty() ? error.type : error.code;
        if (answer_) {
            record.has_usage = true;
            record.usage = openai::total_of(usage_);
        }
        if (headers_sent_) {
            openai::answer::fail(error, out_);
            to_.stream(out_);
            to_.end_stream();
        } else {
            reply_error(to_, error, record.id.empty() ? header_list{} : headers());
        }
    }

    // Cancels what is still running, once (O1).
    void give_up() {
        over_ = true;
        if (box_) box_->detach();
        for (std::size_t i = 0; i < live_.size(); ++i)
            if (std::exchange(live_[i], char{0}) != 0) shared_.node.cancel(ids_[i]);
    }

    service& shared_;
    responder& to_;
    const openai::api_kind api_;
    std::string body_;
    const std::string client_id_;
    std::optional<openai::generation_request> parsed_;
    std::optional<client_error> refused_;
    openai::answer_form form_;
    std::optional<openai::answer> answer_;
    std::shared_ptr<mailbox> box_;
    std::vector<request_id> ids_;
    std::vector<char> live_;  // 1: submitted and not ended
    std::vector<request_usage> usage_;
    std::vector<event> events_;
    std::string out_;  // events not yet handed to the connection
    std::size_t accepted_ = 0, done_ = 0;
    bool submitted_ = false, headers_sent_ = false, over_ = false;
};

}  // namespace

std::unique_ptr<exchange> make_generation(service& shared, responder& to, openai::api_kind api, std::string body,
                                          const request_head& head) {
    return std::make_unique<generation>(shared, to, api, std::move(body), head);
}

}  // namespace fermata::http
