#include "cli/client.hpp"

#include <utility>

namespace fermata::cli {

void pending_answer::on(const accepted& message) {
    const std::lock_guard lock(mutex_);
    prompt_tokens_ = message.prompt_tokens.value;
}

void pending_answer::on(const rejected& message) {
    const std::lock_guard lock(mutex_);
    error_ = message.error;
    end();
}

void pending_answer::on(const text_delta& delta) {
    if (options_.on_delta) options_.on_delta(delta);
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard lock(mutex_);
    answer& choice = choices_.at(delta.choice);
    if (options_.keep) {
        choice.text += delta.text;
        choice.tokens.insert(choice.tokens.end(), delta.tokens.begin(), delta.tokens.end());
        choice.prompt.insert(choice.prompt.end(), delta.prompt.begin(), delta.prompt.end());
    }
    choice.token_times.insert(choice.token_times.end(), delta.tokens.size(), now);
    if (delta.finish != finish_reason::none) choice.finish = delta.finish;
    changed_.notify_all();
}

void pending_answer::on(const finished& message) {
    const std::lock_guard lock(mutex_);
    usage_ = message.usage;
    end();
}

void pending_answer::on(const failed& message) {
    const std::lock_guard lock(mutex_);
    usage_ = message.usage;
    error_ = message.error;
    end();
}

void pending_answer::end() {
    over_ = true;
    changed_.notify_all();
}

void pending_answer::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_; });
}

bool pending_answer::wait_until(steady_time end) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, end, [this] { return over_; });
}

bool pending_answer::first_token_wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_ || !choices_.front().token_times.empty(); });
    return !choices_.front().token_times.empty();
}

std::shared_ptr<pending_answer> ask(gateway& node, submit& request, answer_options options) {
    request.request = node.next_request();
    auto sink = std::make_shared<pending_answer>(std::move(options), request.n);
    node.submit_request(request, sink);
    return sink;
}

std::string describe(const client_error& error) {
    return error.param.empty() ? error.message : error.param + ": " + error.message;
}

}  // namespace fermata::cli
