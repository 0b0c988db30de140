// See lazy_memory.hpp. Private anonymous mappings.
#include "native/stores/lazy_memory.hpp"

#include <sys/mman.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace fermata {

lazy_memory::lazy_memory(std::size_t bytes, const char* what) : size_(bytes) {
    if (bytes == 0) return;
    void* where = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (where == MAP_FAILED)
        throw std::runtime_error(std::string(what) + ": no address space for " + std::to_string(bytes) + " bytes");
    data_ = static_cast<std::byte*>(where);
}

lazy_memory::lazy_memory(lazy_memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

lazy_memory& lazy_memory::operator=(lazy_memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}

lazy_memory::~lazy_memory() {
    if (data_) munmap(data_, size_);
}

}  // namespace fermata
