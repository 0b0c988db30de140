// Msgpack, the primitives: a writer on msgpack-cxx and a pull reader of our own. The library reads into a tree whose
// arrays are allocated by the size the input claims; this reader allocates nothing, and hands out a count only when
// that many elements can still be in the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace fermata::wire {

class pack_writer {
public:
    explicit pack_writer(std::string& out) : out_(out) {}
    void nil();
    void boolean(bool x);
    void unsigned_integer(std::uint64_t x);
    void signed_integer(std::int64_t x);
    void number(float x);
    void number(double x);
    void text(std::string_view x);  // str when it is UTF-8, else bin
    void array(std::size_t size);
    void map(std::size_t size);

private:
    std::string& out_;
};

// What was wrong and at which byte. Readers of messages put the path of the field before it.
class pack_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// The input ends inside a value: what a writer that was killed leaves behind.
class pack_end : public pack_error {
public:
    using pack_error::pack_error;
};

// The kinds of values msgpack knows, as an error names them.
enum class pack_kind : std::uint8_t { nil, boolean, integer, float32, float64, text, array, map, extension };

class pack_reader {
public:
    explicit pack_reader(std::string_view in) : in_(in) {}

    std::size_t offset() const noexcept { return at_; }
    bool done() const noexcept { return at_ == in_.size(); }
    pack_kind peek() const;

    // Each throws pack_error ("expected an array, found a string") when the next value is of another kind.
    void nil();
    bool boolean();
    std::uint64_t unsigned_integer(std::uint64_t max);                    // also refuses what is above max
    std::int64_t signed_integer(std::int64_t min, std::int64_t max);
    float float32();
    double float64();
    std::string_view text();  // str or bin
    std::size_t array();      // number of elements; at most the bytes left
    std::size_t map();        // number of pairs; at most half of the bytes left
    void skip();              // any value, whatever its depth, without recursion

private:
    [[noreturn]] void wrong(std::string_view expected) const;
    std::uint8_t byte();
    std::uint64_t big_endian(std::size_t bytes);
    std::string_view take(std::size_t bytes);
    std::size_t counted(std::uint64_t size, std::size_t bytes_each) const;

    std::string_view in_;
    std::size_t at_ = 0;
};

}  // namespace fermata::wire
