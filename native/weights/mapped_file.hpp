// A file mapped read-only into memory. Pages come in when touched and can be dropped again one range at a time; a
// dropped page that is touched again is read from the file anew. Another process that truncates the file while it is
// mapped takes the pages away (SIGBUS): model files are replaced by renaming, not by writing into them.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace fermata::weights {

class mapped_file {
public:
    // Throws model_file_error when the path isn't a readable regular file or is empty. The message for a missing file
    // says how to get the demo model.
    static mapped_file open(const std::string& path);

    mapped_file() = default;
    mapped_file(mapped_file&& other) noexcept;
    mapped_file& operator=(mapped_file&& other) noexcept;
    mapped_file(const mapped_file&) = delete;
    mapped_file& operator=(const mapped_file&) = delete;
    ~mapped_file();

    std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
    const std::string& path() const noexcept { return path_; }
    bool contains(std::span<const std::byte> range) const noexcept;

    // Gives the whole pages inside `range` back to the system; the bytes stay readable.
    void release(std::span<const std::byte> range) const noexcept;
    // Asks the system to read `range` ahead.
    void prefetch(std::span<const std::byte> range) const noexcept;

private:
    mapped_file(std::string path, const std::byte* data, std::size_t size) noexcept;
    void unmap() noexcept;

    std::string path_;
    const std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace fermata::weights
