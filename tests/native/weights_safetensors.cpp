// Safetensors files, right and wrong ones. The form and its strictness (no gaps, no overlaps, data to the last byte)
// are those of the reference library.
#include <doctest/doctest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "native/weights/safetensors.hpp"
#include "tests/support/model_error.hpp"
#include "tests/support/random_blocks.hpp"
#include "tests/support/safetensors_builder.hpp"

using namespace fermata;
using namespace fermata::test_support;

namespace {

std::string refuse(const std::string& bytes) {
    const std::vector<char> exact(bytes.begin(), bytes.end());
    return refusal([&] { weights::read_safetensors(std::as_bytes(std::span(exact)), "m.safetensors"); });
}

std::string refuse_header(const std::string& header, std::size_t data_bytes) {
    return refuse(safetensors_builder::assemble(header, std::string(data_bytes, '\0')));
}

}  // namespace

TEST_CASE("safetensors: names, shapes, types and data") {
    safetensors_builder builder;
    const std::string matrix = "0123456789abcdefghijklmn";
    builder.add("m", "F32", {2, 3}, matrix);
    builder.add("h", "BF16", {4}, "ABCDEFGH");
    builder.add("conv", "F16", {2, 3, 1, 1, 2}, std::string(24, 'x'));
    builder.add("scalar", "F32", {}, "wxyz");
    builder.add("ids", "I64", {1}, "01234567");
    builder.add("none", "F32", {0, 8}, "");
    const std::string bytes = builder.build();
    const auto contents = weights::read_safetensors(std::as_bytes(std::span(bytes.data(), bytes.size())), "f");
    REQUIRE(contents.tensors.size() == 6);
    CHECK(contents.metadata == std::vector<std::pair<std::string, std::string>>{{"format", "pt"}});
    const auto find = [&](std::string_view name) -> const weights::file_tensor& {
        for (const auto& tensor : contents.tensors)
            if (tensor.view.name == name) return tensor;
        FAIL("missing tensor");
        return contents.tensors[0];
    };
    CHECK(find("m").view.rows == 2);
    CHECK(find("m").view.columns == 3);
    CHECK(find("m").view.type == dtype::f32);
    CHECK(std::memcmp(find("m").view.data.data(), matrix.data(), 24) == 0);
    CHECK(find("h").view.rows == 1);
    CHECK(find("h").view.type == dtype::bf16);
    CHECK(find("conv").view.rows == 6);
    CHECK(find("conv").view.columns == 2);
    CHECK(find("conv").dimensions == 5);
    CHECK(find("scalar").view.columns == 1);
    CHECK_FALSE(find("ids").readable);
    CHECK(find("ids").type_name == "I64");
    CHECK(find("none").view.data.empty());
    CHECK(find("none").view.rows == 0);
}

TEST_CASE("safetensors: order of the header doesn't matter, nor space around it") {
    const std::string header = R"( )"
                               R"({"b":{"data_offsets":[4,8],"shape":[1],"dtype":"F32"},)"
                               R"("a" : { "dtype":"F32" , "shape":[1] , "data_offsets":[0,4] } }   )";
    // The reference library wants '{' first; so do we.
    CHECK(mentions(refuse_header(header, 8), "at byte 8: the header should begin with '{'"));
    CHECK(refuse_header(header.substr(1), 8).empty());
}

TEST_CASE("safetensors faults: the frame") {
    CHECK(mentions(refuse(""), "at byte 0: the header's length needs 8 bytes, but the file ends after 0"));
    CHECK(mentions(refuse(std::string(8, '\xff')), "claims a header of 18446744073709551615 bytes; at most 100000000"));
    CHECK(mentions(refuse(std::string("\x10\0\0\0\0\0\0\0{}", 10)), "the header needs 16 bytes, but the file ends after 2"));
    CHECK(mentions(refuse(std::string(8, '\0')), "should begin with '{'"));
    CHECK(mentions(refuse_header("\xEF\xBB\xBF{}", 0), "should begin with '{'"));  // a byte order mark
    CHECK(mentions(refuse_header("[]", 0), "should begin with '{'"));
    CHECK(refuse_header("{}", 0).empty());
    CHECK(mentions(refuse_header("{}", 4), "the tensors end at byte 0 of the data, which has 4 bytes"));
}

TEST_CASE("safetensors faults: JSON") {
    CHECK(mentions(refuse_header(R"({"a":)", 0), "the header isn't valid JSON"));
    CHECK(mentions(refuse_header(R"({"a":{"dtype":"F32",}})", 0), "the header isn't valid JSON"));
    CHECK(mentions(refuse_header(R"({} {})", 0), "the header isn't valid JSON"));
    CHECK(mentions(refuse_header("{\"a\xff\":1}", 0), "the header isn't valid JSON"));
    CHECK(mentions(refuse_header("{\"a\":" + std::string(100000, '['), 0), "holds an array where none is allowed"));
    CHECK(mentions(refuse_header("{\"a\":" + std::string(100000, '{'), 0), "isn't valid JSON"));
}

TEST_CASE("safetensors faults: fields") {
    const auto entry = [](const std::string& body) { return refuse_header("{\"w\":{" + body + "}}", 4); };
    const std::string type = R"("dtype":"F32")", shape = R"("shape":[1])", place = R"("data_offsets":[0,4])";
    REQUIRE(entry(type + "," + shape + "," + place).empty());
    CHECK(mentions(entry(shape + "," + place), "tensor 'w' has no dtype"));
    CHECK(mentions(entry(type + "," + place), "tensor 'w' has no shape"));
    CHECK(mentions(entry(type + "," + shape), "tensor 'w' needs two data_offsets"));
    CHECK(mentions(entry(type + "," + type + "," + shape + "," + place), "has dtype twice"));
    CHECK(mentions(entry(type + "," + shape + "," + shape + "," + place), "has shape twice"));
    CHECK(mentions(entry(type + "," + shape + "," + place + "," + place), "has data_offsets twice"));
    CHECK(mentions(entry(R"("dtype":"Q9")"), "tensor 'w' has dtype 'Q9', which isn't known"));
    CHECK(mentions(entry(R"("dtype":7)"), "tensor 'w' holds a number where none is allowed"));
    CHECK(mentions(entry(R"("shape":[-1])"), "holds a negative number"));
    CHECK(mentions(entry(R"("shape":[1.5])"), "holds a number that isn't an integer"));
    CHECK(mentions(entry(R"("shape":[18446744073709551616])"), "holds a number that isn't an integer"));
    CHECK(mentions(entry(R"("shape":[[1]])"), "holds an array where none is allowed"));
    CHECK(mentions(entry(R"("shape":[1,1,1,1,1,1,1,1,1])"), "has more than 8 dimensions"));
    CHECK(mentions(entry(R"("shape":null)"), "holds null"));
    CHECK(mentions(entry(R"("shape":true)"), "holds true or false"));
    CHECK(mentions(entry(R"("shape":{})"), "holds an object where none is allowed"));
    CHECK(mentions(entry(R"("data_offsets":[0,4,8])"), "has more than two data_offsets"));
    CHECK(mentions(entry(R"("stride":1)"), "has the field 'stride'"));
    CHECK(mentions(refuse_header(R"({"w":1})", 0), "holds a number where none is allowed"));
    CHECK(mentions(refuse_header(R"({"w":"x"})", 0), "holds a string where none is allowed"));
    CHECK(mentions(refuse_header(R"({"":{}})", 0), "has a tensor name of 0 bytes"));
    CHECK(mentions(refuse_header(R"({"__metadata__":{"a":1}})", 0), "the header holds a number where none is allowed"));
    CHECK(mentions(refuse_header(R"({"__metadata__":{"a":{}}})", 0), "the header holds an object where none is allowed"));
    CHECK(mentions(refuse_header(R"({"__metadata__":{},"__metadata__":{}})", 0), "has __metadata__ twice"));
    CHECK(mentions(refuse_header(R"({"__metadata__":"x"})", 0), "holds a string where none is allowed"));
}

TEST_CASE("safetensors faults: places and sizes") {
    const auto entry = [](const std::string& name, const std::string& shape, const std::string& place) {
        return "\"" + name + R"(":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + place + "}";
    };
    const auto two = [&](const std::string& second, std::size_t bytes) {
        return refuse_header("{" + entry("a", "[2]", "[0,8]") + "," + second + "}", bytes);
    };
    REQUIRE(two(entry("b", "[1]", "[8,12]"), 12).empty());
    CHECK(mentions(two(entry("b", "[1]", "[4,8]"), 8), "tensor 'b' lies at data_offsets [4, 8], overlapping"));
    CHECK(mentions(two(entry("b", "[2]", "[0,8]"), 8), "overlapping the tensor before it"));
    CHECK(mentions(two(entry("b", "[1]", "[12,16]"), 16), "leaving a gap after byte 8 of the data"));
    CHECK(mentions(two(entry("b", "[1]", "[12,8]"), 12), "which end before they begin"));
    CHECK(mentions(two(entry("b", "[1]", "[8,12]"), 11), "but the data has 11 bytes; the file is truncated"));
    CHECK(mentions(two(entry("b", "[1]", "[8,18446744073709551615]"), 12), "but the data has 12 bytes"));
    CHECK(mentions(two(entry("b", "[2]", "[8,12]"), 12), "its shape and dtype F32 ask for 8 bytes"));
    CHECK(mentions(two(entry("b", "[4294967296,4294967296,4294967296]", "[8,12]"), 12), "more than 2^50 elements"));
    CHECK(mentions(two(entry("b", "[1099511627776,1099511627776,0]", "[8,8]"), 8), "more than 2^50 elements"));
    CHECK(mentions(two(entry("a", "[1]", "[8,12]"), 12), "tensor 'a' appears twice"));
    CHECK(mentions(two(entry("b", "[1]", "[8,12]"), 16), "the tensors end at byte 12 of the data, which has 16 bytes"));
}

TEST_CASE("safetensors faults: truncation at every byte, and random damage") {
    safetensors_builder builder;
    builder.add("model.a", "F32", {2, 3}, std::string(24, 'a'));
    builder.add("model.b", "BF16", {4}, std::string(8, 'b'));
    const std::string whole = builder.build();
    REQUIRE(refuse(whole).empty());
    unsigned accepted = 0;
    for (std::size_t size = 0; size < whole.size(); ++size) accepted += refuse(whole.substr(0, size)).empty();
    CHECK(accepted == 0);
    random_source random(5);
    for (int round = 0; round < 5000; ++round) {
        std::string damaged = whole;
        for (std::uint32_t flips = 1 + random.below(3); flips != 0; --flips)
            damaged[random.below(static_cast<std::uint32_t>(damaged.size()))] = static_cast<char>(random.below(256));
        CHECK(refuse(damaged).find('\n') == std::string::npos);
    }
}
