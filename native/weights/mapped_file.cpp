#include "native/weights/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>

#include "native/weights/error.hpp"

namespace fermata::weights {
namespace {

class descriptor {
public:
    explicit descriptor(int value) : value_(value) {}
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    ~descriptor() {
        if (value_ >= 0) ::close(value_);
    }
    int value() const { return value_; }

private:
    int value_;
};

std::size_t page_bytes() {
    static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return size;
}

}  // namespace

mapped_file mapped_file::open(const std::string& path) {
    // Non-blocking, so that a named pipe given by mistake doesn't hang the program.
    const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.value() < 0) {
        if (errno == ENOENT) fail(path, "no such file; 'bash tools/model.sh' gets the demo model into models/");
        fail(path, std::string("can't be opened: ") + std::strerror(errno));
    }
    struct stat status {};
    if (::fstat(file.value(), &status) != 0) fail(path, std::string("can't be examined: ") + std::strerror(errno));
    if (!S_ISREG(status.st_mode)) fail(path, "isn't a regular file; a GGUF or safetensors file is needed here");
    if (status.st_size <= 0) fail(path, "is empty; get the file again");
    const auto size = static_cast<std::size_t>(status.st_size);
    void* const data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value(), 0);
    if (data == MAP_FAILED) fail(path, std::string("can't be mapped into memory: ") + std::strerror(errno));
    return {path, static_cast<const std::byte*>(data), size};
}

mapped_file::mapped_file(std::string path, const std::byte* data, std::size_t size) noexcept
    : path_(std::move(path)), data_(data), size_(size) {}

mapped_file::mapped_file(mapped_file&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

mapped_file& mapped_file::operator=(mapped_file&& other) noexcept {
    if (this != &other) {
        unmap();
        path_ = std::move(other.path_);
        data_ = std::exchange(other.data_, nullptr);
        size_ = std::exchange(other.size_, 0);
    }
    return *this;
}

mapped_file::~mapped_file() { unmap(); }

void mapped_file::unmap() noexcept {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
    data_ = nullptr;
    size_ = 0;
}

bool mapped_file::contains(std::span<const std::byte> range) const noexcept {
    const std::less_equal<const std::byte*> not_after;
    return data_ != nullptr && not_after(data_, range.data()) &&
           not_after(range.data() + range.size(), data_ + size_);
}

void mapped_file::release(std::span<const std::byte> range) const noexcept {
    if (!contains(range)) return;
    const std::size_t page = page_bytes();
    const auto start = static_cast<std::size_t>(range.data() - data_);
    const std::size_t first = (start + page - 1) / page * page;
    // The last page of the file may be partial and still belongs to nobody else.
    const std::size_t end = start + range.size() == size_ ? size_ : (start + range.size()) / page * page;
    if (first >= end) return;
    ::madvise(const_cast<std::byte*>(data_) + first, end - first, MADV_DONTNEED);
}

void mapped_file::prefetch(std::span<const std::byte> range) const noexcept {
    if (!contains(range) || range.empty()) return;
    const std::size_t page = page_bytes();
    const std::size_t first = static_cast<std::size_t>(range.data() - data_) / page * page;
    const std::size_t end = static_cast<std::size_t>(range.data() - data_) + range.size();
    ::madvise(const_cast<std::byte*>(data_) + first, end - first, MADV_WILLNEED);
}

}  // namespace fermata::weights
