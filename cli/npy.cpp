#include "cli/npy.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace fermata::cli {

npy_writer::npy_writer(const std::string& path, std::size_t columns)
    : path_(path), file_(std::fopen(path.c_str(), "wb")), columns_(columns) {
    if (!file_) throw std::runtime_error(path + ": " + std::strerror(errno));
    header();
}

npy_writer::~npy_writer() {
    if (file_) std::fclose(file_);
}

// 128 bytes whatever the shape, so that it can be written again at the end.
void npy_writer::header() {
    constexpr std::size_t total = 128, fixed = 10;
    std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(columns_ == 0 ? 0 : values_ / columns_) + ", " + std::to_string(columns_) + "), }";
    text.resize(total - fixed - 1, ' ');
    text += '\n';
    const unsigned char magic[fixed] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, total - fixed, 0};
    if (std::fwrite(magic, 1, fixed, file_) != fixed || std::fwrite(text.data(), 1, text.size(), file_) != text.size())
        throw std::runtime_error(path_ + ": " + std::strerror(errno));
}

void npy_writer::append(std::span<const float> values) {
    if (std::fwrite(values.data(), sizeof(float), values.size(), file_) != values.size())
        throw std::runtime_error(path_ + ": " + std::strerror(errno));
    values_ += values.size();
}

void npy_writer::close() {
    std::rewind(file_);
    header();
    const bool good = std::fclose(file_) == 0;
    file_ = nullptr;
    if (!good) throw std::runtime_error(path_ + ": " + std::strerror(errno));
}

}  // namespace fermata::cli
