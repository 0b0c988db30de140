// SIGTERM and SIGINT of a server, from its first moment on: while the model loads they end the program at once, later they
// are what the server waits for.
//
// Make one before any other thread, so that all inherit the blocked signals and this object alone takes them.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace fermata::cli {

class signal_watch {
public:
    // `leave`: called on a thread of its own by a signal that comes before started(); the program ends with 0 behind it.
    explicit signal_watch(std::function<void()> leave);
    ~signal_watch();  // before started() too: what was being started failed
    signal_watch(const signal_watch&) = delete;
    signal_watch& operator=(const signal_watch&) = delete;

    // What was to be started is there. Doesn't return when a signal was faster.
    void started();
    // After started(): blocks until a signal, and calls `meanwhile` every `period`. The next signal has its default effect, the end
    // of the process.
    void wait(std::chrono::milliseconds period, const std::function<void()>& meanwhile);

private:
    void watch();

    enum class state { starting, started, leaving, over };
    std::function<void()> leave_;
    sigset_t signals_{};
    std::mutex mutex_;
    state state_ = state::starting;
    std::promise<void> arrived_;
    std::thread thread_;
};

}  // namespace fermata::cli
