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
    if (!show(delta)) return;
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

// A callback that fails (a full disk behind standard output) is its owner's trouble, never the node's. Deltas come one by
// one, so nobody else writes `trouble_`.
bool pending_answer::show(const text_delta& delta) {
    if (trouble_) return false;
    if (!options_.on_delta) return true;
    try {
        options_.on_delta(delta);
        return true;
    } catch (...) {
        const std::lock_guard lock(mutex_);
        trouble_ = std::current_exception();
        end();
        return false;
    }
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
    rethrow();
}

void pending_answer::rethrow() const {
    if (trouble_) std::rethrow_exception(trouble_);
}

bool pending_answer::wait_until(steady_time end) {
    std::unique_lock lock(mutex_);
    const bool over = changed_.wait_until(lock, end, [this] { return over_; });
    rethrow();
    return over;
}

bool pending_answer::first_token_wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return over_ || !choices_.front().token_times.empty(); });
    return !choices_.front().token_times.empty();
}

void apply(const sampling_options& s, const engine_options& engine, submit& request) {
    request.sampling.temperature = s.temperature;
    request.sampling.top_p = s.top_p;
    request.sampling.top_k = s.top_k;
    request.sampling.min_p = s.min_p;
    request.sampling.repetition_penalty = s.repetition_penalty;
    request.sampling.frequency_penalty = s.frequency_penalty;
    request.sampling.presence_penalty = s.presence_penalty;
    request.stop = s.stop;
    request.ignore_eos = s.ignore_eos;
    if (const auto seed = seed_of(engine)) {
        request.sampling.seed = *seed;
        request.seed_given = true;
    }
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
