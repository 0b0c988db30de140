// Float32 matrices as .npy files (NumPy's format 1.0), written row by row.
#pragma once

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>

namespace fermata::cli {

class npy_writer {
public:
    // Throws std::runtime_error that names the file.
    npy_writer(const std::string& path, std::size_t columns);
    ~npy_writer();
    npy_writer(const npy_writer&) = delete;
    npy_writer& operator=(const npy_writer&) = delete;

    void append(std::span<const float> values);  // a whole number of rows
    void close();                                 // writes the final shape

private:
    void header();

    std::string path_;
    std::FILE* file_ = nullptr;
    std::size_t columns_ = 0;
    std::size_t values_ = 0;
};

}  // namespace fermata::cli
