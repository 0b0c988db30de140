// A value inside a JSON file together with the way to it, so that every complaint says where: "tokenizer.json:
// pre_tokenizer.pretokenizers[1].behavior: ...". Values are checked when taken, never trusted.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "frontend/tokenizer/reading.hpp"
#include "frontend/tokenizer/tokenizer.hpp"

namespace fermata::text {

inline constexpr std::size_t json_depth_max = 64;

// "line 3, column 14" of a byte counted from 1, as JSON errors count.
std::string json_position(std::string_view text, std::size_t byte);

// Parses an untrusted file: at most 64 levels deep, valid UTF-8. Throws tokenizer_error with line and column.
nlohmann::json parse_json_file(std::string_view text, std::string_view file_name);

class json_place {
public:
    json_place(const nlohmann::json& value, std::string where) : value_(&value), where_(std::move(where)) {}

    const nlohmann::json& value() const noexcept { return *value_; }
    const std::string& where() const noexcept { return where_; }
    bool is_null() const noexcept { return value_->is_null(); }

    [[noreturn]] void fail(const std::string& what) const { throw tokenizer_error(where_ + ": " + what); }
    [[noreturn]] void refuse(const std::string& what) const { throw unsupported_tokenizer(where_ + ": " + what); }

    // A member; a null place if there is none.
    json_place operator[](const char* key) const {
        static const nlohmann::json none;
        if (!value_->is_object()) fail("an object is expected");
        const auto found = value_->find(key);
        return {found == value_->end() ? none : *found, where_ + (where_.ends_with(": ") ? "" : ".") + key};
    }

    json_place at(std::size_t i) const { return {(*value_)[i], where_ + "[" + std::to_string(i) + "]"}; }
    std::size_t items() const {
        if (!value_->is_array()) fail("a list is expected");
        return value_->size();
    }

    const std::string& text() const {
        if (!value_->is_string()) fail("a string is expected");
        return value_->get_ref<const std::string&>();
    }
    std::string text_or(std::string otherwise) const { return is_null() ? otherwise : text(); }
    bool flag_or(bool otherwise) const {
        if (is_null()) return otherwise;
        if (!value_->is_boolean()) fail("true or false is expected");
        return value_->get<bool>();
    }
    std::uint64_t number_below(std::uint64_t limit) const {
        if (!value_->is_number_unsigned()) fail("a whole number of at least 0 is expected");
        const auto n = value_->get<std::uint64_t>();
        if (n >= limit) fail(std::to_string(n) + " is too large; less than " + std::to_string(limit) + " is expected");
        return n;
    }
    // The member "type" of a part of the pipeline.
    std::string type() const { return (*this)["type"].text(); }

private:
    const nlohmann::json* value_;
    std::string where_;
};

}  // namespace fermata::text
