// A read-only view of a JSON text: every value keeps its place in the bytes the client sent, so parts can be handed on
// verbatim (H5) and errors can name a position.
//
// Invariants
// - The text is valid JSON (RFC 8259) and valid UTF-8, with no unpaired surrogate escapes: what a view returns can be
//   used without further checks.
// - Memory is bounded by `json_limits`, never by a number inside the text.
// - A document refers to the text it was made from; the text must outlive it.
// - A repeated member name means its last value, as in Python and JavaScript.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::openai {

struct json_limits {
    std::size_t depth_max = 128;          // nested arrays and objects
    std::size_t values_max = 1'000'000;   // values and member names in one text
    std::size_t members_max = 262'144;    // members of one object
};

// What was wrong and at which byte (from 0).
class json_error : public std::runtime_error {
public:
    json_error(const std::string& what, std::size_t offset) : std::runtime_error(what), offset_(offset) {}
    std::size_t offset() const noexcept { return offset_; }

private:
    std::size_t offset_;
};

enum class json_kind : std::uint8_t { null, boolean, number, string, array, object };

// "a string", "null", ...: for error messages.
std::string_view name_of(json_kind kind);

class json_document;

class json_value {
public:
    json_value(const json_document* document, std::uint32_t index) : document_(document), index_(index) {}

    json_kind kind() const;
    bool is(json_kind k) const { return kind() == k; }
    std::string_view raw() const;  // the bytes of this value in the text
    std::size_t size() const;      // elements or members
    bool boolean() const;
    double number() const;                        // infinity when beyond the range of double
    std::optional<std::int64_t> integer() const;  // none: has a fraction or doesn't fit; 5.0 counts as 5
    std::string string() const;                   // escapes resolved
    bool equals(std::string_view text) const;     // a string with this content

    // The member with this name, null included; the last one if repeated.
    std::optional<json_value> find(std::string_view name) const;

    template <class Visit>  // visit(json_value)
    void for_each_element(Visit&& visit) const;
    template <class Visit>  // visit(json_value name, json_value value), in the order of the text, repetitions included
    void for_each_member(Visit&& visit) const;

private:
    const json_document* document_;
    std::uint32_t index_;
};

class json_document {
public:
    explicit json_document(std::string_view text, json_limits limits = {});
    json_document(const json_document&) = delete;
    json_document& operator=(const json_document&) = delete;
    json_value root() const { return json_value(this, 0); }

private:
    friend class json_value;
    friend class json_parser;
    struct node {
        std::uint32_t begin = 0, end = 0;  // bytes in the text; a string with its quotes
        std::uint32_t next = 0;            // the node after this one's subtree
        std::uint32_t size = 0;            // elements or members
        json_kind kind = json_kind::null;
        bool escaped = false;  // a string with at least one backslash
    };
    std::string_view text_;
    std::vector<node> nodes_;  // in the order of the text; a member is its name followed by its value
};

template <class Visit>
void json_value::for_each_element(Visit&& visit) const {
    const auto end = document_->nodes_[index_].next;
    for (auto i = index_ + 1; i < end; i = document_->nodes_[i].next) visit(json_value(document_, i));
}

template <class Visit>
void json_value::for_each_member(Visit&& visit) const {
    const auto end = document_->nodes_[index_].next;
    for (auto i = index_ + 1; i < end; i = document_->nodes_[i + 1].next)
        visit(json_value(document_, i), json_value(document_, i + 1));
}

}  // namespace fermata::openai
