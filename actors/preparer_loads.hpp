// Which preparer gets the next job: the one with the fewest bytes before it. Large jobs keep off the first preparer
// where there are several, so that a short prompt never waits behind a book.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace fermata {

class preparer_loads {
public:
    static constexpr std::uint64_t large_bytes = 128 * 1024;

    explicit preparer_loads(std::size_t preparers = 0) {
        for (std::size_t i = 0; i < preparers; ++i) bytes_.push_back(std::make_shared<load>(0));
    }

    // At least one preparer is there.
    std::size_t pick(std::uint64_t bytes) const {
        std::size_t best = bytes >= large_bytes && bytes_.size() > 1 ? 1 : 0;
        for (std::size_t i = best + 1; i < bytes_.size(); ++i)
            if (*bytes_[i] < *bytes_[best]) best = i;
        return best;
    }
    // The job counts as long as somebody holds the ticket; it travels with the job.
    std::shared_ptr<const void> ticket(std::size_t preparer, std::uint64_t bytes) const {
        *bytes_[preparer] += bytes;
        return std::shared_ptr<const void>(bytes_[preparer].get(),
                                           [held = bytes_[preparer], bytes](const void*) { *held -= bytes; });
    }
    std::uint64_t bytes_before(std::size_t preparer) const { return *bytes_[preparer]; }

private:
    using load = std::atomic<std::uint64_t>;
    std::vector<std::shared_ptr<load>> bytes_;
};

}  // namespace fermata
