// Msgpack primitives. Formats after https://github.com/msgpack/msgpack/blob/master/spec.md.
#include "messages/wire/pack.hpp"

#include <bit>
#include <limits>
#include <msgpack/pack.hpp>

#include "messages/utf8.hpp"

namespace fermata::wire {
namespace {

struct sink {
    std::string& out;
    void write(const char* data, std::size_t size) { out.append(data, size); }
};

std::uint32_t size32(std::size_t size) {
    if (size > std::numeric_limits<std::uint32_t>::max()) throw pack_error("more than 4294967295 elements or bytes");
    return static_cast<std::uint32_t>(size);
}

template <class Use>
void with(std::string& out, Use&& use) {
    sink to{out};
    msgpack::packer<sink> packer(to);
    use(packer);
}

}  // namespace

void pack_writer::nil() { with(out_, [](auto& p) { p.pack_nil(); }); }
void pack_writer::boolean(bool x) { with(out_, [&](auto& p) { x ? p.pack_true() : p.pack_false(); }); }
void pack_writer::unsigned_integer(std::uint64_t x) { with(out_, [&](auto& p) { p.pack_uint64(x); }); }
void pack_writer::signed_integer(std::int64_t x) { with(out_, [&](auto& p) { p.pack_int64(x); }); }
void pack_writer::number(float x) {
    // By its bits: the library narrows floats that hold whole numbers to integers.
    auto bits = std::bit_cast<std::uint32_t>(x);
    out_ += '\xca';
    for (int shift = 24; shift >= 0; shift -= 8) out_ += static_cast<char>(bits >> shift);
}
void pack_writer::number(double x) {
    auto bits = std::bit_cast<std::uint64_t>(x);
    out_ += '\xcb';
    for (int shift = 56; shift >= 0; shift -= 8) out_ += static_cast<char>(bits >> shift);
}
void pack_writer::text(std::string_view x) {
    const auto size = size32(x.size());
    with(out_, [&](auto& p) {
        if (utf8::is_valid(x)) p.pack_str(size).pack_str_body(x.data(), size);
        else p.pack_bin(size).pack_bin_body(x.data(), size);
    });
}
void pack_writer::array(std::size_t size) { with(out_, [&](auto& p) { p.pack_array(size32(size)); }); }
void pack_writer::map(std::size_t size) { with(out_, [&](auto& p) { p.pack_map(size32(size)); }); }

namespace {

constexpr std::string_view kind_text(pack_kind kind) {
    switch (kind) {
        case pack_kind::nil: return "nil";
        case pack_kind::boolean: return "a boolean";
        case pack_kind::integer: return "an integer";
        case pack_kind::float32: return "a 32-bit float";
        case pack_kind::float64: return "a 64-bit float";
        case pack_kind::text: return "a string";
        case pack_kind::array: return "an array";
        case pack_kind::map: return "a map";
        case pack_kind::extension: return "an extension";
    }
    return "?";
}

}  // namespace

pack_kind pack_reader::peek() const {
    if (at_ >= in_.size()) throw pack_end("the input ends at byte " + std::to_string(at_));
    const auto c = static_cast<std::uint8_t>(in_[at_]);
    if (c <= 0x7f || c >= 0xe0 || (c >= 0xcc && c <= 0xd3)) return pack_kind::integer;
    if (c <= 0x8f || c == 0xde || c == 0xdf) return pack_kind::map;
    if (c <= 0x9f || c == 0xdc || c == 0xdd) return pack_kind::array;
    if (c <= 0xbf || (c >= 0xc4 && c <= 0xc6) || (c >= 0xd9 && c <= 0xdb)) return pack_kind::text;
    if (c == 0xc0) return pack_kind::nil;
    if (c == 0xc2 || c == 0xc3) return pack_kind::boolean;
    if (c == 0xca) return pack_kind::float32;
    if (c == 0xcb) return pack_kind::float64;
    if (c == 0xc1) throw pack_error("byte 0xc1 at " + std::to_string(at_) + " starts no msgpack value");
    return pack_kind::extension;
}

void pack_reader::wrong(std::string_view expected) const {
    throw pack_error("expected " + std::string(expected) + ", found " + std::string(kind_text(peek())) + " at byte " +
                     std::to_string(at_));
}

std::string_view pack_reader::take(std::size_t bytes) {
    if (bytes > in_.size() - at_)
        throw pack_end("the input ends at byte " + std::to_string(in_.size()) + " inside a value of " +
                         std::to_string(bytes) + " bytes at " + std::to_string(at_));
    auto part = in_.substr(at_, bytes);
    at_ += bytes;
    return part;
}

std::uint8_t pack_reader::byte() { return static_cast<std::uint8_t>(take(1)[0]); }

std::uint64_t pack_reader::big_endian(std::size_t bytes) {
    std::uint64_t x = 0;
    for (char c : take(bytes)) x = x << 8 | static_cast<std::uint8_t>(c);
    return x;
}

std::size_t pack_reader::counted(std::uint64_t size, std::size_t bytes_each) const {
    if (size > (in_.size() - at_) / bytes_each)
        throw pack_end(std::to_string(size) + " elements are claimed at byte " + std::to_string(at_) + ", but only " +
                         std::to_string(in_.size() - at_) + " bytes are left");
    return static_cast<std::size_t>(size);
}

void pack_reader::nil() {
    if (peek() != pack_kind::nil) wrong("nil");
    ++at_;
}

bool pack_reader::boolean() {
    if (peek() != pack_kind::boolean) wrong("a boolean");
    return byte() == 0xc3;
}

std::uint64_t pack_reader::unsigned_integer(std::uint64_t max) {
    if (peek() != pack_kind::integer) wrong("an unsigned integer");
    const auto start = at_;
    const auto c = byte();
    std::uint64_t x = c;
    std::int64_t negative = 0;
    if (c >= 0xe0) negative = static_cast<std::int8_t>(c);
    else if (c >= 0xcc && c <= 0xcf) x = big_endian(std::size_t{1} << (c - 0xcc));
    else if (c == 0xd0) negative = static_cast<std::int8_t>(x = big_endian(1));
    else if (c == 0xd1) negative = static_cast<std::int16_t>(x = big_endian(2));
    else if (c == 0xd2) negative = static_cast<std::int32_t>(x = big_endian(4));
    else if (c == 0xd3) negative = static_cast<std::int64_t>(x = big_endian(8));
    if (negative < 0)
        throw pack_error(std::to_string(negative) + " is below 0 at byte " + std::to_string(start));
    if (x > max)
        throw pack_error(std::to_string(x) + " is above " + std::to_string(max) + " at byte " + std::to_string(start));
    return x;
}

std::int64_t pack_reader::signed_integer(std::int64_t min, std::int64_t max) {
    if (peek() != pack_kind::integer) wrong("an integer");
    const auto start = at_;
    const auto c = byte();
    std::int64_t x = 0;
    if (c <= 0x7f) x = c;
    else if (c >= 0xe0) x = static_cast<std::int8_t>(c);
    else if (c == 0xd0) x = static_cast<std::int8_t>(big_endian(1));
    else if (c == 0xd1) x = static_cast<std::int16_t>(big_endian(2));
    else if (c == 0xd2) x = static_cast<std::int32_t>(big_endian(4));
    else if (c == 0xd3) x = static_cast<std::int64_t>(big_endian(8));
    else {
        const auto u = big_endian(std::size_t{1} << (c - 0xcc));
        if (u > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            throw pack_error(std::to_string(u) + " is above " + std::to_string(max) + " at byte " + std::to_string(start));
        x = static_cast<std::int64_t>(u);
    }
    if (x < min || x > max)
        throw pack_error(std::to_string(x) + " is outside " + std::to_string(min) + " .. " + std::to_string(max) +
                         " at byte " + std::to_string(start));
    return x;
}

float pack_reader::float32() {
    if (peek() != pack_kind::float32) wrong("a 32-bit float");
    ++at_;
    return std::bit_cast<float>(static_cast<std::uint32_t>(big_endian(4)));
}

double pack_reader::float64() {
    if (peek() != pack_kind::float64) wrong("a 64-bit float");
    ++at_;
    return std::bit_cast<double>(big_endian(8));
}

std::string_view pack_reader::text() {
    if (peek() != pack_kind::text) wrong("a string");
    const auto c = byte();
    if (c <= 0xbf) return take(c & 0x1f);
    const std::size_t width = std::size_t{1} << (c >= 0xd9 ? c - 0xd9 : c - 0xc4);
    return take(static_cast<std::size_t>(big_endian(width)));
}

std::size_t pack_reader::array() {
    if (peek() != pack_kind::array) wrong("an array");
    const auto c = byte();
    return counted(c <= 0x9f ? c & 0x0f : big_endian(c == 0xdc ? 2 : 4), 1);
}

std::size_t pack_reader::map() {
    if (peek() != pack_kind::map) wrong("a map");
    const auto c = byte();
    return counted(c <= 0x8f ? c & 0x0f : big_endian(c == 0xde ? 2 : 4), 2);
}

void pack_reader::skip() {
    std::uint64_t left = 1;
    while (left-- > 0) {
        switch (peek()) {
            case pack_kind::array: left += array(); break;
            case pack_kind::map: left += 2 * map(); break;
            case pack_kind::text: text(); break;
            case pack_kind::extension: {
                const auto c = byte();
                if (c >= 0xd4) take((std::size_t{1} << (c - 0xd4)) + 1);  // fixext 1, 2, 4, 8, 16 and the type
                else take(static_cast<std::size_t>(big_endian(std::size_t{1} << (c - 0xc7))) + 1);
                break;
            }
            case pack_kind::integer: {
                const auto c = byte();
                if (c >= 0xcc && c <= 0xd3) take(std::size_t{1} << ((c - 0xcc) & 3));
                break;
            }
            case pack_kind::float32: take(5); break;
            case pack_kind::float64: take(9); break;
            case pack_kind::nil:
            case pack_kind::boolean: ++at_; break;
        }
    }
}

}  // namespace fermata::wire
