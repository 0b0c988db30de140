#include "native/cpu/pool.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fermata::cpu {
namespace {

inline void relax() noexcept {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// A pause takes 40 to 140 cycles on current x86 and a few on others: some tens of microseconds in all.
constexpr int spins_before_parking = 2000;

}  // namespace

fork_join_pool::fork_join_pool(unsigned threads) {
    for (unsigned i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
}

fork_join_pool::~fork_join_pool() {
    ending_.store(true, std::memory_order_relaxed);
    signal_.fetch_add(1, std::memory_order_release);
    signal_.notify_all();
    for (std::thread& worker : workers_) worker.join();
}

void fork_join_pool::run_job(std::size_t items, function call, void* context) {
    items_ = items;
    call_ = call;
    context_ = context;
    next_.store(0, std::memory_order_relaxed);
    state_.store(open_bit, std::memory_order_release);
    signal_.fetch_add(1, std::memory_order_release);
    signal_.notify_all();
    take_items(0);
    // No item is left: nobody joins any more, those inside finish theirs.
    state_.fetch_and(~open_bit, std::memory_order_acq_rel);
    for (int spins = 0;; ++spins) {
        const std::uint32_t joined = state_.load(std::memory_order_acquire);
        if (joined == 0) return;
        if (spins < spins_before_parking)
            relax();
        else
            state_.wait(joined, std::memory_order_acquire);
    }
}

void fork_join_pool::take_items(unsigned thread) {
    for (;;) {
        const std::size_t item = next_.fetch_add(1, std::memory_order_relaxed);
        if (item >= items_) return;
        call_(context_, item, thread);
    }
}

bool fork_join_pool::join_job() noexcept {
    std::uint32_t state = state_.load(std::memory_order_relaxed);
    while ((state & open_bit) != 0)
        if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire, std::memory_order_relaxed))
            return true;
    return false;
}

void fork_join_pool::work(unsigned thread) {
    std::uint32_t seen = 0;
    int spins = 0;
    for (;;) {
        const std::uint32_t now = signal_.load(std::memory_order_acquire);
        if (now == seen) {
            if (++spins < spins_before_parking)
                relax();
            else
                signal_.wait(seen, std::memory_order_acquire);
            continue;
        }
        seen = now;
        spins = 0;
        if (ending_.load(std::memory_order_relaxed)) return;
        if (!join_job()) continue;
        take_items(thread);
        // The job's owner may be parked on the count of those inside.
        if (state_.fetch_sub(1, std::memory_order_acq_rel) == 1) state_.notify_one();
    }
}

}  // namespace fermata::cpu
