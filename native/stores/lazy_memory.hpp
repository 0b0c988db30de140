// A block of address space that costs memory only where it was touched. Reads as zero until written.
#pragma once

#include <cstddef>

namespace fermata {

class lazy_memory {
public:
    lazy_memory() = default;
    // Throws std::runtime_error naming `what` and the size when the address space isn't there.
    lazy_memory(std::size_t bytes, const char* what);
    lazy_memory(lazy_memory&& other) noexcept;
    lazy_memory& operator=(lazy_memory&& other) noexcept;
    ~lazy_memory();

    std::byte* data() const noexcept { return data_; }  // aligned to a memory page of the machine
    std::size_t size() const noexcept { return size_; }

private:
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace fermata
