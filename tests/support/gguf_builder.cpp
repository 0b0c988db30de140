#include "tests/support/gguf_builder.hpp"

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace fermata::test_support {

void append_text(byte_string& to, std::string_view text) {
    append<std::uint64_t>(to, text.size());
    to.append(text);
}

void gguf_builder::add_raw(std::string_view key, std::uint32_t type, std::string_view bytes) {
    append_text(key_bytes_, key);
    append(key_bytes_, type);
    key_bytes_.append(bytes);
    ++keys_;
}

namespace {

template <typename T>
byte_string bytes_of(T value) {
    byte_string bytes;
    append(bytes, value);
    return bytes;
}

}  // namespace

void gguf_builder::add_u16(std::string_view key, std::uint16_t value) { add_raw(key, 2, bytes_of(value)); }
void gguf_builder::add_u32(std::string_view key, std::uint32_t value) { add_raw(key, 4, bytes_of(value)); }
void gguf_builder::add_i32(std::string_view key, std::int32_t value) { add_raw(key, 5, bytes_of(value)); }
void gguf_builder::add_f32(std::string_view key, float value) { add_raw(key, 6, bytes_of(value)); }
void gguf_builder::add_u64(std::string_view key, std::uint64_t value) { add_raw(key, 10, bytes_of(value)); }
void gguf_builder::add_bool(std::string_view key, bool value) {
    add_raw(key, 7, bytes_of(static_cast<std::uint8_t>(value ? 1 : 0)));
}

void gguf_builder::add_string(std::string_view key, std::string_view value) {
    byte_string bytes;
    append_text(bytes, value);
    add_raw(key, 8, bytes);
}

void gguf_builder::add_strings(std::string_view key, const std::vector<std::string>& values) {
    byte_string bytes = bytes_of<std::uint32_t>(8);
    append<std::uint64_t>(bytes, values.size());
    for (const std::string& value : values) append_text(bytes, value);
    add_raw(key, 9, bytes);
}

void gguf_builder::add_i32s(std::string_view key, const std::vector<std::int32_t>& values) {
    byte_string bytes = bytes_of<std::uint32_t>(5);
    append<std::uint64_t>(bytes, values.size());
    for (const std::int32_t value : values) append(bytes, value);
    add_raw(key, 9, bytes);
}

void gguf_builder::add_tensor(std::string_view name, const std::vector<std::uint64_t>& shape, std::uint32_t type,
                              byte_string data) {
    tensors_.push_back({std::string(name), shape, type, std::move(data)});
}

byte_string gguf_builder::build() const {
    byte_string keys = key_bytes_;
    std::uint64_t key_count = keys_;
    if (alignment_bytes != 32) {
        append_text(keys, "general.alignment");
        append<std::uint32_t>(keys, 4);
        append<std::uint32_t>(keys, static_cast<std::uint32_t>(alignment_bytes));
        ++key_count;
    }
    byte_string file = "GGUF";
    append(file, version);
    append<std::uint64_t>(file, tensors_.size());
    append(file, key_count);
    file += keys;
    byte_string data;
    const auto pad = [this](byte_string& bytes) {
        while (bytes.size() % alignment_bytes != 0) bytes += '\0';
    };
    for (const tensor& entry : tensors_) {
        append_text(file, entry.name);
        append<std::uint32_t>(file, static_cast<std::uint32_t>(entry.shape.size()));
        for (const std::uint64_t size : entry.shape) append(file, size);
        append(file, entry.type);
        append<std::uint64_t>(file, data.size());
        data += entry.data;
        pad(data);
    }
    if (!tensors_.empty()) pad(file);
    return file + data;
}

void write_file(const std::string& path, std::string_view bytes) {
    std::ofstream stream(path, std::ios::binary | std::ios::trunc);
    if (!stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size())))
        throw std::runtime_error("can't write " + path);
}

byte_string read_file(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw std::runtime_error("can't read " + path);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace fermata::test_support
