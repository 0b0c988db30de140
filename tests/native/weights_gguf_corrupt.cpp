// Hostile, damaged and truncated GGUF files: each class of fault has its message, and nothing crashes.
#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

#include "native/weights/gguf.hpp"
#include "native/weights/model_file.hpp"
#include "tests/support/gguf_builder.hpp"
#include "tests/support/model_error.hpp"
#include "tests/support/random_blocks.hpp"
#include "tests/support/random_model.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace fermata;
using namespace fermata::test_support;

namespace {

std::string refuse(const std::string& bytes) {
    // A copy of exactly this size on the heap, so that an address sanitiser sees the first byte too many.
    const std::vector<char> exact(bytes.begin(), bytes.end());
    return refusal([&] { weights::read_gguf(std::as_bytes(std::span(exact)), "file.gguf"); });
}

template <typename T>
std::string with(std::string bytes, std::size_t offset, T value) {
    bytes.replace(offset, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
    return bytes;
}

// A header with one key of a chosen type and payload.
std::string one_key(std::uint32_t type, const std::string& payload) {
    gguf_builder file;
    file.add_raw("some.key", type, payload);
    return file.build();
}

std::string one_tensor(const std::vector<std::uint64_t>& shape, std::uint32_t type, const std::string& data) {
    gguf_builder file;
    file.add_tensor("w", shape, type, data);
    return file.build();
}

std::string u32_u64(std::uint32_t a, std::uint64_t b) {
    std::string bytes;
    append(bytes, a);
    append(bytes, b);
    return bytes;
}

// `count` arrays inside one another.
std::string nested_arrays(unsigned count) {
    std::string bytes;
    for (unsigned i = 0; i + 1 < count; ++i) bytes += u32_u64(9, 1);
    return bytes + u32_u64(0, 0);
}

// Two tensors of one F32 each at offsets 0 and 32: the second's offset field ends the header.
struct two_tensors {
    std::string bytes;
    std::size_t second_offset_field;
};

two_tensors make_two() {
    gguf_builder file;
    file.add_tensor("a", {16}, 0, std::string(64, '\0'));
    file.add_tensor("b", {1}, 0, std::string(4, '\0'));
    const std::string bytes = file.build();
    // header: 24, a: 8+1+4+8+4+8 = 33, b: the same with its offset in the last 8
    return {bytes, 24 + 33 + 33 - 8};
}

// Where the only tensor's fields are in one_tensor(): 24 header, 8+1 name, 4 dimensions, 8 each, 4 type, 8 offset.
constexpr std::size_t dimensions_at = 33, shape_at = 37;

}  // namespace

TEST_CASE("gguf faults: the fixed part of the header") {
    const std::string good = one_tensor({1}, 0, std::string(4, '\0'));
    REQUIRE(refuse(good).empty());
    CHECK(refuse("") == "file.gguf: at byte 0: isn't a GGUF file (it doesn't begin with the letters GGUF)");
    CHECK(mentions(refuse("GGML" + good.substr(4)), "isn't a GGUF file"));
    CHECK(mentions(refuse(with<std::uint32_t>(good, 4, 1)), "at byte 4: has GGUF version 1; versions 2 and 3"));
    CHECK(mentions(refuse(with<std::uint32_t>(good, 4, 0)), "has GGUF version 0"));
    CHECK(mentions(refuse(with<std::uint32_t>(good, 4, 0x03000000)), "big-endian"));
    CHECK(mentions(refuse(with<std::uint64_t>(good, 8, ~0ull)), "at byte 8: claims 18446744073709551615 tensors"));
    // Claimed tensors that aren't there: the next is read from what follows.
    CHECK(mentions(refuse(with<std::uint64_t>(good, 8, 2)), "the name of tensor 1 has a length of 0 bytes"));
    CHECK(mentions(refuse(with<std::uint64_t>(good.substr(0, 60), 8, 2)), "but the file ends after"));
    CHECK(mentions(refuse(with<std::uint64_t>(good, 16, 1ull << 40)), "at byte 16: claims 1099511627776 keys"));
}

TEST_CASE("gguf faults: keys and values") {
    CHECK(mentions(refuse(one_key(13, "")), "key 'some.key' has value type 13; GGUF defines the types 0 to 12"));
    CHECK(mentions(refuse(one_key(0xffffffffu, "")), "has value type 4294967295"));
    CHECK(mentions(refuse(one_key(4, "ab")), "the value of key 'some.key' needs 4 bytes, but the file ends after 2"));
    std::string long_string;
    append<std::uint64_t>(long_string, ~0ull);
    CHECK(mentions(refuse(one_key(8, long_string)), "needs 18446744073709551615 bytes, but the file ends after 0"));
    // Arrays: lengths beyond the file, products that overflow 64 bits, unknown types, too deep.
    CHECK(mentions(refuse(one_key(9, u32_u64(0, 5))), "claims 5 elements, but only 0 bytes are left"));
    CHECK(mentions(refuse(one_key(9, u32_u64(10, 1ull << 61))), "claims 2305843009213693952 elements"));
    CHECK(mentions(refuse(one_key(9, u32_u64(8, 1ull << 62))), "claims 4611686018427387904 elements"));
    CHECK(mentions(refuse(one_key(9, u32_u64(77, 0))), "value type 77"));
    CHECK(mentions(refuse(one_key(9, u32_u64(8, 1) + long_string)), "a string of key 'some.key' needs"));
    CHECK(refuse(one_key(9, nested_arrays(4))).empty());
    CHECK(mentions(refuse(one_key(9, nested_arrays(5))), "nests arrays deeper than 4"));
    CHECK(mentions(refuse(one_key(9, nested_arrays(100000))), "nests arrays deeper than 4"));

    gguf_builder twice;
    twice.add_u32("k", 1);
    twice.add_u32("k", 1);
    CHECK(mentions(refuse(twice.build()), "at byte 41: key 'k' appears twice"));
    gguf_builder nameless;
    nameless.add_u32("", 1);
    CHECK(mentions(refuse(nameless.build()), "key 0 has a length of 0 bytes"));
    gguf_builder endless;
    endless.add_u32(std::string(70000, 'k'), 1);
    CHECK(mentions(refuse(endless.build()), "key 0 has a length of 70000 bytes; 1 to 65535"));
    // What is shown of a name can't harm a terminal or a log.
    gguf_builder ugly;
    ugly.add_raw("a\n\x1b[31m\xff", 99, "");
    CHECK(mentions(refuse(ugly.build()), "key 'a\\x0a\\x1b[31m\\xff' has value type 99"));
}

TEST_CASE("gguf faults: a getter's message stays one line whatever the key") {
    gguf_builder file;
    file.add_string("two\nlines", "x");
    const std::string bytes = file.build();
    const auto values = weights::read_gguf(std::as_bytes(std::span(bytes.data(), bytes.size())), "file.gguf").values;
    CHECK(refusal([&] { values.number("two\nlines"); }) ==
          "file.gguf: key two\\x0alines is of type string, it should be a number");
}

TEST_CASE("gguf faults: alignment") {
    for (const std::uint32_t alignment : {0u, 1u, 4u, 12u, 33u, 1u << 21, 0xffffffffu}) {
        CAPTURE(alignment);
        gguf_builder file;
        file.add_u32("general.alignment", alignment);
        CHECK(mentions(refuse(file.build()), "key general.alignment is " + std::to_string(alignment) +
                                                 "; it should be a power of two from 8 to 1048576"));
    }
    gguf_builder text;
    text.add_string("general.alignment", "32");
    CHECK(mentions(refuse(text.build()), "key general.alignment is of type string, it should be an integer"));
}

TEST_CASE("gguf faults: shapes and types of tensors") {
    const std::string good = one_tensor({64}, 0, std::string(256, '\0'));
    CHECK(mentions(refuse(with<std::uint32_t>(good, dimensions_at, 0)), "tensor 'w' has 0 dimensions; 1 to 4"));
    CHECK(mentions(refuse(with<std::uint32_t>(good, dimensions_at, 5)), "has 5 dimensions"));
    CHECK(mentions(refuse(with<std::uint64_t>(good, shape_at, 0)), "has a dimension of 0"));
    CHECK(mentions(refuse(one_tensor({1ull << 40, 1ull << 40}, 0, "")), "has more than 2^50 elements"));
    CHECK(mentions(refuse(one_tensor({1ull << 32, 1ull << 32, 2}, 0, "")), "has more than 2^50 elements"));
    CHECK(mentions(refuse(one_tensor({~0ull}, 0, "")), "has more than 2^50 elements"));
    CHECK(mentions(refuse(one_tensor({1ull << 50}, 0, "")), "takes 4503599627370496 bytes"));
    CHECK(mentions(refuse(one_tensor({64}, 4, "")), "has type number 4, which GGUF doesn't define"));
    CHECK(mentions(refuse(one_tensor({33}, 2, "")), "has rows of 33 elements; Q4_0 needs a multiple of 32"));
    CHECK(mentions(refuse(one_tensor({128, 2}, 12, "")), "has rows of 128 elements; Q4_K needs a multiple of 256"));
    CHECK(mentions(refuse(good.substr(0, good.size() - 1)), "it is truncated, get it again"));

    gguf_builder twice;
    twice.add_tensor("w", {1}, 0, "abcd");
    twice.add_tensor("w", {1}, 0, "abcd");
    CHECK(mentions(refuse(twice.build()), "tensor 'w' appears twice"));
    gguf_builder nameless;
    nameless.add_tensor("", {1}, 0, "abcd");
    CHECK(mentions(refuse(nameless.build()), "the name of tensor 0 has a length of 0 bytes"));
    gguf_builder endless;
    endless.add_tensor(std::string(600, 'w'), {1}, 0, "abcd");
    CHECK(mentions(refuse(endless.build()), "has a length of 600 bytes; 1 to 512"));
}

TEST_CASE("gguf faults: places of tensors") {
    const two_tensors two = make_two();
    REQUIRE(refuse(two.bytes).empty());
    const auto moved = [&](std::uint64_t offset) { return refuse(with(two.bytes, two.second_offset_field, offset)); };
    CHECK(mentions(moved(33), "tensor 'b' has offset 33, not a multiple of the alignment 32"));
    CHECK(mentions(moved(0), "overlaps tensor"));
    CHECK(mentions(moved(32), "tensor 'b' overlaps tensor 'a'"));
    CHECK(mentions(moved(1 << 20), "tensor 'b' takes 4 bytes from offset 1048576 of the data"));
    CHECK(mentions(moved(~0ull - 31), "it is truncated, get it again"));  // offset + size overflows 64 bits
}

TEST_CASE("gguf faults: truncation at every byte of a whole model") {
    random_model_options options;
    options.layers = 1;
    options.width = 32;
    options.heads = 2;
    options.kv_heads = 1;
    options.head_width = 16;
    options.feed_forward_width = 32;
    options.format = dtype::q4_0;
    const std::string whole = random_gguf(options);
    REQUIRE(refuse(whole).empty());
    // Past the header lengths step by a prime: what follows is one check of sizes.
    std::size_t header = 0;
    {
        const std::vector<char> exact(whole.begin(), whole.end());
        header = weights::read_gguf(std::as_bytes(std::span(exact)), "f").data_offset_bytes;
    }
    unsigned accepted = 0, long_lines = 0;
    for (std::size_t size = 0; size < whole.size(); size += size < header ? 1 : 97) {
        const std::string message = refuse(whole.substr(0, size));
        if (message.empty()) accepted += 1;
        long_lines += message.find('\n') != std::string::npos;
    }
    // The last tensor's padding may go.
    CHECK(accepted <= 1);
    CHECK(long_lines == 0);
}

TEST_CASE("gguf faults: random damage to the header never does worse than a message") {
    random_model_options options;
    options.layers = 1;
    options.width = 32;
    options.heads = 2;
    options.kv_heads = 1;
    options.head_width = 16;
    options.feed_forward_width = 32;
    const std::string whole = random_gguf(options);
    random_source random(11);
    for (int round = 0; round < 3000; ++round) {
        std::string damaged = whole;
        for (std::uint32_t flips = 1 + random.below(4); flips != 0; --flips)
            damaged[random.below(9000)] = static_cast<char>(random.below(256));
        refuse(damaged);
    }
    CHECK(refuse(whole).empty());
}

TEST_CASE("gguf faults: paths that hold no model") {
    const temporary_folder folder;
    const auto open = [](const std::string& path) { return refusal([&] { model_file::open(path); }); };
    CHECK(open(folder / "absent.gguf") ==
          (folder / "absent.gguf") + ": no such file or folder; 'bash tools/model.sh' gets the demo model into models/");
    write_file(folder / "empty.gguf", "");
    CHECK(mentions(open(folder / "empty.gguf"), "empty.gguf: is empty"));
    write_file(folder / "text.gguf", "hello, world");
    CHECK(mentions(open(folder / "text.gguf"), "isn't a GGUF file"));
    write_file(folder / "model.safetensors", "hello, world");
    CHECK(mentions(open(folder / "model.safetensors"), "give the folder that holds it beside config.json"));
    CHECK(mentions(open("/dev/zero"), "isn't a regular file"));
    CHECK(mentions(open(folder.path()), "has no config.json; for the GGUF file in it give"));
}
