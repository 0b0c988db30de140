// /tokenize and /detokenize.
#include <optional>
#include <utility>

#include "frontend/http/exchange.hpp"
#include "frontend/openai/answer.hpp"
#include "frontend/openai/text.hpp"

namespace fermata::http {
namespace {

constexpr std::size_t token_strings_max = 16'384;  // return_token_strs costs one question a token
constexpr std::size_t mailbox_bytes = 64 * 1024 * 1024;

class text_exchange : public exchange {
public:
    text_exchange(service& shared, responder& to, std::string body) : shared_(shared), to_(to), body_(std::move(body)) {}

    void start() override {
        to_.in_background([this] { parse(); });
    }
    void on_events() override {
        if (!asked_) {
            asked_ = true;
            if (refused_) return end_with(*refused_);
            box_ = std::make_shared<mailbox>(mailbox_bytes, to_.waker());
            return ask();
        }
        bool overflow = false;
        box_->take(events_, overflow);
        for (auto& e : events_) {
            if (over_) return;
            if (auto* t = std::get_if<tokenized>(&e.what)) on(*t);
            if (auto* d = std::get_if<detokenized>(&e.what)) on(e.part, *d);
        }
    }
    void left() override {
        over_ = true;
        if (box_) box_->detach();
    }
    bool needs_client() const override { return false; }

protected:
    openai::model_facts facts() const { return {shared_.node.model().id, shared_.node.model().vocabulary}; }
    virtual void read(std::string_view body) = 0;
    virtual void ask() = 0;
    virtual void on(tokenized&) {}
    virtual void on(std::size_t, detokenized&) {}

    void ask_words(std::size_t part, detokenize_tokens tokens) {
        shared_.node.detokenize(std::move(tokens), [box = box_, part](detokenized d) {
            const auto bytes = d.bytes.size();
            box->push({part, std::move(d)}, bytes, true);
        });
    }
    void end_with(const client_error& error) {
        left();
        record.error = error.code.empty() ? error.type : error.code;
        reply_error(to_, error);
    }
    void end_with(const std::string& body) {
        left();
        to_.reply(200, "application/json", body);
    }

    service& shared_;
    responder& to_;
    std::shared_ptr<mailbox> box_;
    bool over_ = false;

private:
    // Beside the strand, which may meanwhile read and write everything else of this exchange: the client may leave.
    void parse() {
        try {
            read(body_);
        } catch (const openai::request_error& e) {
            refused_ = e.error();
        } catch (const std::exception&) {
            refused_ = internal_error();
        }
        std::string().swap(body_);
    }

    std::string body_;
    std::optional<client_error> refused_;
    std::vector<event> events_;
    bool asked_ = false;
};

class tokenize_exchange final : public text_exchange {
public:
    using text_exchange::text_exchange;

private:
    void read(std::string_view body) override { request_ = openai::parse_tokenize(body, facts(), shared_.options.request); }
    void ask() override {
        shared_.node.tokenize(std::move(request_.text), [box = box_](tokenized t) { box->push({0, std::move(t)}, 0, true); });
    }
    void on(tokenized& t) override {
        if (t.error) return end_with(*t.error);
        tokens_ = t.tokens;
        if (!request_.token_strings) return answer();
        if (tokens_.size() > token_strings_max)
            return end_with(openai::invalid_request("return_token_strs", "'return_token_strs' is only possible up to " +
                                                                             std::to_string(token_strings_max) + " tokens"));
        strings_.resize(tokens_.size());
        waiting_ = tokens_.size();
        if (waiting_ == 0) return answer();
        for (std::size_t i = 0; i < tokens_.size(); ++i) ask_words(i, {tokens_.part(i, 1)});
    }
    void on(std::size_t part, detokenized& d) override {
        if (d.error) return end_with(*d.error);
        strings_[part] = std::move(d.bytes);
        if (--waiting_ == 0) answer();
    }
    void answer() {
        std::string out = "{\"count\":" + std::to_string(tokens_.size()) +
                          ",\"max_model_len\":" + std::to_string(shared_.node.model().max_model_len) + ",\"tokens\":[";
        for (std::size_t i = 0; i < tokens_.size(); ++i) {
            if (i != 0) out += ',';
            openai::append_json_number(out, std::int64_t{tokens_[i]});
        }
        out += "],\"token_strs\":";
        if (!request_.token_strings) {
            out += "null}";
            return end_with(out);
        }
        out += '[';
        for (std::size_t i = 0; i < strings_.size(); ++i) {
            if (i != 0) out += ',';
            openai::append_json_string(out, openai::printable_token(strings_[i]));
        }
        out += "]}";
        end_with(out);
    }

    openai::tokenize_request request_;
    token_run tokens_;
    std::vector<std::string> strings_;
    std::size_t waiting_ = 0;
};

class detokenize_exchange final : public text_exchange {
public:
    using text_exchange::text_exchange;

private:
    void read(std::string_view body) override { tokens_ = openai::parse_detokenize(body, facts(), shared_.options.request); }
    void ask() override { ask_words(0, std::move(tokens_)); }
    void on(std::size_t, detokenized& d) override {
        if (d.error) return end_with(*d.error);
        end_with("{\"prompt\":" + openai::json_string(d.bytes) + '}');
    }

    detokenize_tokens tokens_;
};

}  // namespace

std::unique_ptr<exchange> make_tokenize(service& shared, responder& to, std::string body) {
    return std::make_unique<tokenize_exchange>(shared, to, std::move(body));
}

std::unique_ptr<exchange> make_detokenize(service& shared, responder& to, std::string body) {
    return std::make_unique<detokenize_exchange>(shared, to, std::move(body));
}

}  // namespace fermata::http
