#include "cli/signal_watch.hpp"

#include <cstdlib>
#include <utility>

#include <pthread.h>

namespace fermata::cli {

signal_watch::signal_watch(std::function<void()> leave) : leave_(std::move(leave)) {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    thread_ = std::thread([this] { watch(); });
}

signal_watch::~signal_watch() {
    {
        const std::lock_guard lock(mutex_);
        state_ = state::over;
    }
    pthread_kill(thread_.native_handle(), SIGTERM);  // blocked in every thread: it only ends the wait, where it still waits
    thread_.join();
}

// One signal is taken here.
void signal_watch::watch() {
    int signal = 0;
    sigwait(&signals_, &signal);
    std::unique_lock lock(mutex_);
    if (state_ == state::over) return;
    if (state_ == state::starting) {
        state_ = state::leaving;
        lock.unlock();
        leave_();
        std::_Exit(0);  // what is being started can't be called off, and holds nothing that would be lost
    }
    std::signal(SIGTERM, SIG_DFL);
    std::signal(SIGINT, SIG_DFL);
    arrived_.set_value();
}

void signal_watch::started() {
    std::unique_lock lock(mutex_);
    if (state_ == state::leaving) {
        lock.unlock();
        thread_.join();
    }
    state_ = state::started;
}

void signal_watch::wait(std::chrono::milliseconds period, const std::function<void()>& meanwhile) {
    const auto arrived = arrived_.get_future();
    while (arrived.wait_for(period) != std::future_status::ready) meanwhile();
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
}

}  // namespace fermata::cli
