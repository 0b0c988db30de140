#include "native/weights/metadata.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "native/weights/error.hpp"

namespace fermata::weights {
namespace {

template <typename T>
T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

bool is_integer(metadata_type type) {
    switch (type) {
        case metadata_type::u8:
        case metadata_type::i8:
        case metadata_type::u16:
        case metadata_type::i16:
        case metadata_type::u32:
        case metadata_type::i32:
        case metadata_type::u64:
        case metadata_type::i64: return true;
        default: return false;
    }
}

// Nothing for a u64 beyond the range of i64.
std::optional<std::int64_t> integer_at(metadata_type type, const std::byte* from) {
    switch (type) {
        case metadata_type::u8: return load<std::uint8_t>(from);
        case metadata_type::i8: return load<std::int8_t>(from);
        case metadata_type::u16: return load<std::uint16_t>(from);
        case metadata_type::i16: return load<std::int16_t>(from);
        case metadata_type::u32: return load<std::uint32_t>(from);
        case metadata_type::i32: return load<std::int32_t>(from);
        case metadata_type::i64: return load<std::int64_t>(from);
        case metadata_type::u64: {
            const auto value = load<std::uint64_t>(from);
            if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
            return static_cast<std::int64_t>(value);
        }
        default: return std::nullopt;
    }
}

std::string type_text(const metadata_value& value) {
    if (value.type != metadata_type::array) return std::string(name_of(value.type));
    return "array of " + std::string(name_of(value.element));
}

}  // namespace

std::string_view name_of(metadata_type type) noexcept {
    switch (type) {
        case metadata_type::u8: return "u8";
        case metadata_type::i8: return "i8";
        case metadata_type::u16: return "u16";
        case metadata_type::i16: return "i16";
        case metadata_type::u32: return "u32";
        case metadata_type::i32: return "i32";
        case metadata_type::f32: return "f32";
        case metadata_type::boolean: return "bool";
        case metadata_type::string: return "string";
        case metadata_type::array: return "array";
        case metadata_type::u64: return "u64";
        case metadata_type::i64: return "i64";
        case metadata_type::f64: return "f64";
    }
    return "?";
}

std::size_t fixed_bytes(metadata_type type) noexcept {
    switch (type) {
        case metadata_type::u8:
        case metadata_type::i8:
        case metadata_type::boolean: return 1;
        case metadata_type::u16:
        case metadata_type::i16: return 2;
        case metadata_type::u32:
        case metadata_type::i32:
        case metadata_type::f32: return 4;
        case metadata_type::u64:
        case metadata_type::i64:
        case metadata_type::f64: return 8;
        case metadata_type::string:
        case metadata_type::array: return 0;
    }
    return 0;
}

bool metadata::insert(std::string_view key, const metadata_value& value) {
    if (!values_.emplace(key, value).second) return false;
    order_.push_back(key);
    return true;
}

const metadata_value* metadata::find(std::string_view key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
}

void metadata::wrong_type(std::string_view key, const metadata_value& value, std::string_view wanted) const {
    fail(file_, "key " + escaped(key) + " is of type " + type_text(value) + ", it should be " + std::string(wanted));
}

std::optional<std::uint64_t> metadata::unsigned_integer(std::string_view key) const {
    const metadata_value* const value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!is_integer(value->type)) wrong_type(key, *value, "an integer");
    if (value->type == metadata_type::u64) return load<std::uint64_t>(value->bytes.data());
    const auto number = integer_at(value->type, value->bytes.data());
    if (*number < 0)
        fail(file_, "key " + escaped(key) + " is " + std::to_string(*number) + ", it should be 0 or more");
    return static_cast<std::uint64_t>(*number);
}

std::optional<double> metadata::number(std::string_view key) const {
    const metadata_value* const value = find(key);
    if (value == nullptr) return std::nullopt;
    double result = 0;
    if (value->type == metadata_type::f32) {
        result = static_cast<double>(load<float>(value->bytes.data()));
    } else if (value->type == metadata_type::f64) {
        result = load<double>(value->bytes.data());
    } else if (value->type == metadata_type::u64) {
        result = static_cast<double>(load<std::uint64_t>(value->bytes.data()));
    } else if (is_integer(value->type)) {
        result = static_cast<double>(*integer_at(value->type, value->bytes.data()));
    } else {
        wrong_type(key, *value, "a number");
    }
    if (!std::isfinite(result)) fail(file_, "key " + escaped(key) + " isn't finite; it should be a number");
    return result;
}

std::optional<bool> metadata::boolean(std::string_view key) const {
    const metadata_value* const value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->type != metadata_type::boolean) wrong_type(key, *value, "bool");
    return value->bytes[0] != std::byte{0};
}

std::optional<std::string_view> metadata::string(std::string_view key) const {
    const metadata_value* const value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->type != metadata_type::string) wrong_type(key, *value, "a string");
    return std::string_view(reinterpret_cast<const char*>(value->bytes.data()), value->bytes.size());
}

std::optional<std::vector<std::string_view>> metadata::strings(std::string_view key) const {
    const metadata_value* const value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->type != metadata_type::array || (value->element != metadata_type::string && value->count != 0))
        wrong_type(key, *value, "an array of strings");
    std::vector<std::string_view> result;
    result.reserve(static_cast<std::size_t>(value->count));  // each has at least 8 bytes in the file
    const std::byte* at = value->bytes.data();
    for (std::uint64_t i = 0; i < value->count; ++i) {
        const auto length = static_cast<std::size_t>(load<std::uint64_t>(at));
        result.emplace_back(reinterpret_cast<const char*>(at + 8), length);
        at += 8 + length;
    }
    return result;
}

std::optional<std::vector<std::int64_t>> metadata::integers(std::string_view key) const {
    const metadata_value* const value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->type != metadata_type::array || (!is_integer(value->element) && value->count != 0))
        wrong_type(key, *value, "an array of integers");
    std::vector<std::int64_t> result;
    if (value->count == 0) return result;
    const std::size_t size = fixed_bytes(value->element);
    result.reserve(static_cast<std::size_t>(value->count));
    for (std::size_t i = 0; i < value->count; ++i) {
        const auto number = integer_at(value->element, value->bytes.data() + i * size);
        if (!number) fail(file_, "key " + escaped(key) + " holds a number beyond 2^63");
        result.push_back(*number);
    }
    return result;
}

}  // namespace fermata::weights
