// A cursor over untrusted bytes: every read checks what is left first and says in its error where it stood and what
// it was after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "native/weights/error.hpp"

namespace fermata::weights {

class byte_reader {
public:
    byte_reader(std::span<const std::byte> bytes, std::string_view file) : bytes_(bytes), file_(file) {}

    std::size_t offset() const noexcept { return offset_; }
    std::size_t left() const noexcept { return bytes_.size() - offset_; }

    std::span<const std::byte> take(std::uint64_t count, std::string_view what) {
        if (count > left())
            error(std::string(what) + " needs " + std::to_string(count) + " bytes, but the file ends after " +
                  std::to_string(left()) + "; it is truncated or damaged");
        const auto taken = bytes_.subspan(offset_, static_cast<std::size_t>(count));
        offset_ += taken.size();
        return taken;
    }

    template <typename T>
    T number(std::string_view what) {
        T value;
        std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
        return value;
    }

    std::string_view text(std::uint64_t length, std::string_view what) {
        const auto taken = take(length, what);
        return {reinterpret_cast<const char*>(taken.data()), taken.size()};
    }

    [[noreturn]] void error(std::string_view what) const { fail_at(file_, offset_, what); }
    [[noreturn]] void error_at(std::size_t offset, std::string_view what) const { fail_at(file_, offset, what); }

private:
    std::span<const std::byte> bytes_;
    std::string_view file_;
    std::size_t offset_ = 0;
};

}  // namespace fermata::weights
