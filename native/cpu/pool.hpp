// The fork-join pool of the kernels. `run` splits a job into items that any thread may take in any order; a kernel
// gives each item its own outputs, so who takes which never changes a result.
//
// Workers join a job that is open and are waited for only once they have joined: a worker that is parked or that the
// kernel of the operating system has put aside costs parallelism, never a wait. Idle workers spin for some tens of
// microseconds (a layer's operations follow each other faster than a futex wakes), then park.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace fermata::cpu {

class fork_join_pool {
public:
    // `threads` includes the thread that calls run; 1 starts none.
    explicit fork_join_pool(unsigned threads);
    fork_join_pool(const fork_join_pool&) = delete;
    fork_join_pool& operator=(const fork_join_pool&) = delete;
    ~fork_join_pool();

    unsigned threads() const noexcept { return static_cast<unsigned>(workers_.size()) + 1; }

    // Calls task(item, thread) for every item in [0, items), thread in [0, threads()), and returns when all are done.
    // One caller at a time. `task` must not throw.
    template <class Task>
    void run(std::size_t items, Task&& task) {
        if (items <= 1 || workers_.empty()) {
            for (std::size_t i = 0; i < items; ++i) task(i, 0u);
            return;
        }
        using plain = std::remove_reference_t<Task>;
        run_job(items, [](void* context, std::size_t item, unsigned thread) { (*static_cast<plain*>(context))(item, thread); },
                const_cast<void*>(static_cast<const void*>(&task)));
    }

private:
    using function = void (*)(void* context, std::size_t item, unsigned thread);

    void run_job(std::size_t items, function call, void* context);
    void work(unsigned thread);
    bool join_job() noexcept;
    void take_items(unsigned thread);

    // state_: joined workers in the low bits, `open_bit` while items may be left.
    static constexpr std::uint32_t open_bit = 1u << 31;

    alignas(64) std::atomic<std::uint32_t> signal_{0};  // changes with every job; workers spin and park on it
    alignas(64) std::atomic<std::uint32_t> state_{0};
    alignas(64) std::atomic<std::size_t> next_{0};
    alignas(64) std::size_t items_ = 0;
    function call_ = nullptr;
    void* context_ = nullptr;
    std::atomic<bool> ending_{false};
    std::vector<std::thread> workers_;
};

}  // namespace fermata::cpu
