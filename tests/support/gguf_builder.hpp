// Writes GGUF files byte by byte, right ones and (by patching what it returns) wrong ones. An independent
// description of the format: nothing is shared with the reader under test.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::test_support {

using byte_string = std::string;  // bytes; std::string for its convenient literals and comparisons

template <typename T>
void append(byte_string& to, T value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void append_text(byte_string& to, std::string_view text);  // u64 length, characters

class gguf_builder {
public:
    std::uint32_t version = 3;
    std::uint64_t alignment_bytes = 32;  // written as general.alignment when it isn't 32

    void add_u32(std::string_view key, std::uint32_t value);
    void add_u16(std::string_view key, std::uint16_t value);
    void add_u64(std::string_view key, std::uint64_t value);
    void add_i32(std::string_view key, std::int32_t value);
    void add_f32(std::string_view key, float value);
    void add_bool(std::string_view key, bool value);
    void add_string(std::string_view key, std::string_view value);
    void add_strings(std::string_view key, const std::vector<std::string>& values);
    void add_i32s(std::string_view key, const std::vector<std::int32_t>& values);
    // A value of any type, given as the bytes that follow its type.
    void add_raw(std::string_view key, std::uint32_t type, std::string_view bytes);

    // `shape`: innermost dimension first, as the file has it. `type`: GGUF's number.
    void add_tensor(std::string_view name, const std::vector<std::uint64_t>& shape, std::uint32_t type,
                    byte_string data);

    byte_string build() const;

private:
    struct tensor {
        std::string name;
        std::vector<std::uint64_t> shape;
        std::uint32_t type;
        byte_string data;
    };

    std::uint64_t keys_ = 0;
    byte_string key_bytes_;
    std::vector<tensor> tensors_;
};

void write_file(const std::string& path, std::string_view bytes);
byte_string read_file(const std::string& path);

}  // namespace fermata::test_support
