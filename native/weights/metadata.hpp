// The key-value part of a GGUF header. Values stay where the file has them (checked for size and form once, at
// opening) and are decoded when asked for, so a vocabulary of 200,000 strings costs nothing until it is read.
//
// A getter returns nothing for an absent key and throws model_file_error, naming file and key, for a value of another
// type or out of range. Views live as long as the mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fermata::weights {

// Numbers of the GGUF specification.
enum class metadata_type : std::uint32_t {
    u8 = 0,
    i8 = 1,
    u16 = 2,
    i16 = 3,
    u32 = 4,
    i32 = 5,
    f32 = 6,
    boolean = 7,
    string = 8,
    array = 9,
    u64 = 10,
    i64 = 11,
    f64 = 12,
};

// "u32", "string", "array"; "?" for a number that isn't one.
std::string_view name_of(metadata_type type) noexcept;
// Bytes of one value of a type of fixed size; 0 for string and array.
std::size_t fixed_bytes(metadata_type type) noexcept;

struct metadata_value {
    metadata_type type = metadata_type::u8;
    metadata_type element = metadata_type::u8;  // of an array
    std::uint64_t count = 0;                    // elements of an array
    std::span<const std::byte> bytes;           // the value, a string's characters, or an array's elements
};

class metadata {
public:
    metadata() = default;
    explicit metadata(std::string file) : file_(std::move(file)) {}

    // False when the key is there already.
    bool insert(std::string_view key, const metadata_value& value);

    bool contains(std::string_view key) const { return values_.contains(key); }
    std::size_t size() const noexcept { return order_.size(); }
    const std::vector<std::string_view>& keys() const noexcept { return order_; }  // in file order
    const metadata_value* find(std::string_view key) const;

    std::optional<std::uint64_t> unsigned_integer(std::string_view key) const;  // any integer type, >= 0
    std::optional<double> number(std::string_view key) const;                   // any number, finite
    std::optional<bool> boolean(std::string_view key) const;
    std::optional<std::string_view> string(std::string_view key) const;
    std::optional<std::vector<std::string_view>> strings(std::string_view key) const;
    std::optional<std::vector<std::int64_t>> integers(std::string_view key) const;  // an array of any integer type

private:
    [[noreturn]] void wrong_type(std::string_view key, const metadata_value& value, std::string_view wanted) const;

    std::string file_;
    std::unordered_map<std::string_view, metadata_value> values_;
    std::vector<std::string_view> order_;
};

}  // namespace fermata::weights
