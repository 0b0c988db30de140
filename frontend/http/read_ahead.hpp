// Bytes read from a client and not yet parsed. Taking from the front is cheap however much waits behind.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fermata::http {

class read_ahead {
public:
    std::string_view view() const noexcept { return std::string_view(bytes_).substr(begin_); }
    std::size_t size() const noexcept { return bytes_.size() - begin_; }
    bool empty() const noexcept { return size() == 0; }

    void append(std::string_view more) { bytes_.append(more); }
    // `n` of size().
    void drop(std::size_t n) {
        begin_ += n;
        if (begin_ < bytes_.size() / 2) return;  // so each byte is moved once, on average
        bytes_.erase(0, begin_);
        begin_ = 0;
        if (bytes_.empty() && bytes_.capacity() > kept_bytes) bytes_.shrink_to_fit();
    }
    void clear() {
        bytes_.clear();
        begin_ = 0;
    }

private:
    static constexpr std::size_t kept_bytes = 256 * 1024;
    std::string bytes_;
    std::size_t begin_ = 0;
};

}  // namespace fermata::http
