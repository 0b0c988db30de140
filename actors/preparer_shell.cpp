// A preparer: renders, tokenises and checks requests beside the five actors, so that a prompt of 100k tokens delays
// nobody but its own sender. It works on the immutable text model and keeps nothing.
#include "actors/spawn.hpp"

namespace fermata {
namespace {

class preparer_shell final : public shell<preparer_actor> {
public:
    preparer_shell(caf::actor_config& config, context_ptr context, preparer_setup setup)
        : shell(config, std::move(context), bus_party::preparer), setup_(std::move(setup)) {}

    behavior_type make_behavior() override {
        return {
            [this](const prepare_job& job) { on_job(job); },
            [this](const tokenize_text& text) { return tokenize_one(text); },
            [this](const detokenize_tokens& tokens) { return detokenize_one(tokens); },
            [this](const tokenize_local& m) { answer(m, [&] { return tokenize_one(*m.text); }); },
            [this](const detokenize_local& m) { answer(m, [&] { return detokenize_one(m.tokens); }); },
            [this](const meet& m) { peers_ = m.peers; },
            [this](const halt&) { leave(); },
        };
    }
    void on_exit() override { peers_.reset(); }

private:
    // A request must not take its preparer with it, whatever is thrown.
    void on_job(const prepare_job& job) {
        prepared result;
        try {
            result = done_with(job.work);
        } catch (const std::exception& error) {
            result = failed(job.work, error.what());
        } catch (...) {
            result = failed(job.work, "an exception of an unknown kind");
        }
        bus::tell(this, peers_->frontend, std::move(result));
    }
    prepared done_with(const hand_to_preparer& work) {
        if (work.given_up && *work.given_up) return failed(work, "nobody waits for it");
        return prepare(*work.request, *setup_.text, setup_.limits, work.drawn_seed, context_->clock());
    }
    static prepared failed(const hand_to_preparer& work, const char* why) {
        prepared result;
        result.request = work.request->request;
        result.error = internal(why);
        return result;
    }
    template <class Job, class Work>
    static void answer(const Job& job, Work&& work) {
        try {
            job.done(work());
        } catch (...) {  // thrown by the caller's own function: it has had its answer
        }
    }
    tokenized tokenize_one(const tokenize_text& text) {
        try {
            return tokenize(text, *setup_.text, setup_.limits);
        } catch (const std::exception& error) {
            tokenized failed;
            failed.error = internal(error.what());
            return failed;
        }
    }
    detokenized detokenize_one(const detokenize_tokens& tokens) {
        try {
            return detokenize(tokens, *setup_.text);
        } catch (const std::exception& error) {
            detokenized failed;
            failed.error = internal(error.what());
            return failed;
        }
    }
    static client_error internal(const std::string& text) {
        return error_of(failure_kind::internal, "the request could not be prepared: " + text);
    }

    preparer_setup setup_;
    std::shared_ptr<const peer_handles> peers_;
};

}  // namespace

preparer_actor spawn_preparer(caf::actor_system& system, context_ptr context, preparer_setup setup) {
    return system.spawn<preparer_shell>(std::move(context), std::move(setup));
}

}  // namespace fermata
