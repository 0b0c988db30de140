// Reading right GGUF files: versions, alignments, every value type, split sets, every tensor format.
#include <doctest/doctest.h>

#include <cstring>
#include <span>
#include <vector>

#include "native/weights/dequantise.hpp"
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

std::span<const std::byte> as_span(const std::string& bytes) {
    return std::as_bytes(std::span(bytes.data(), bytes.size()));
}

std::string floats(std::initializer_list<float> values) {
    std::string bytes;
    for (const float value : values) append(bytes, value);
    return bytes;
}

}  // namespace

TEST_CASE("gguf: shapes are rows x columns, innermost first in the file") {
    gguf_builder file;
    file.add_string("general.architecture", "llama");
    file.add_tensor("m", {3, 2}, 0, floats({1, 2, 3, 4, 5, 6}));
    file.add_tensor("v", {4}, 0, floats({1, 2, 3, 4}));
    file.add_tensor("e", {2, 3, 4}, 0, std::string(96, '\0'));
    const std::string bytes = file.build();
    const auto contents = weights::read_gguf(as_span(bytes), "f");
    REQUIRE(contents.tensors.size() == 3);
    const auto& matrix = contents.tensors[0];
    CHECK(matrix.view.name == "m");
    CHECK(matrix.view.rows == 2);
    CHECK(matrix.view.columns == 3);
    float second_row[3];
    std::memcpy(second_row, matrix.view.data.data() + 12, 12);
    CHECK(second_row[0] == 4.0f);
    CHECK(contents.tensors[1].view.rows == 1);
    CHECK(contents.tensors[1].view.columns == 4);
    CHECK(contents.tensors[2].view.rows == 12);
    CHECK(contents.tensors[2].shape[0] == 4);
    CHECK(contents.tensors[2].dimensions == 3);
}

TEST_CASE("gguf: versions 2 and 3, alignments 8 to 4096") {
    for (const std::uint32_t version : {2u, 3u}) {
        for (const std::uint64_t alignment : {8u, 16u, 32u, 64u, 256u, 4096u}) {
            CAPTURE(version);
            CAPTURE(alignment);
            gguf_builder file;
            file.version = version;
            file.alignment_bytes = alignment;
            file.add_tensor("a", {1}, 0, floats({1.5f}));
            file.add_tensor("b", {1}, 0, floats({-2.5f}));
            const std::string bytes = file.build();
            const auto contents = weights::read_gguf(as_span(bytes), "f");
            CHECK(contents.version == version);
            CHECK(contents.alignment_bytes == alignment);
            CHECK(contents.data_offset_bytes % alignment == 0);
            float value = 0;
            std::memcpy(&value, contents.tensors[1].view.data.data(), 4);
            CHECK(value == -2.5f);
        }
    }
}

TEST_CASE("gguf: every type of value") {
    gguf_builder file;
    file.add_raw("u8", 0, std::string("\xff", 1));
    file.add_raw("i8", 1, std::string("\xff", 1));
    file.add_raw("u16", 2, std::string("\xfe\xff", 2));
    file.add_raw("i16", 3, std::string("\xfe\xff", 2));
    file.add_u32("u32", 4000000000u);
    file.add_i32("i32", -7);
    file.add_f32("f32", 0.25f);
    file.add_bool("yes", true);
    file.add_bool("no", false);
    file.add_string("text", std::string_view("a\0b", 3));
    file.add_u64("u64", 1ull << 63);
    file.add_raw("i64", 11, std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8));
    const double half = 0.5;
    file.add_raw("f64", 12, std::string_view(reinterpret_cast<const char*>(&half), 8));
    file.add_strings("texts", {"", "x", "yz"});
    file.add_i32s("numbers", {-1, 0, 2147483647});
    std::string nested;  // [[1], []] of u8
    append<std::uint32_t>(nested, 9);
    append<std::uint64_t>(nested, 2);
    append<std::uint32_t>(nested, 0);
    append<std::uint64_t>(nested, 1);
    nested += '\1';
    append<std::uint32_t>(nested, 0);
    append<std::uint64_t>(nested, 0);
    file.add_raw("nested", 9, nested);
    file.add_u32("after", 5);
    const std::string bytes = file.build();
    const auto values = weights::read_gguf(as_span(bytes), "f").values;
    CHECK(values.unsigned_integer("u8") == 255);
    CHECK(values.number("i8") == -1.0);
    CHECK(values.unsigned_integer("u16") == 65534);
    CHECK(values.number("i16") == -2.0);
    CHECK(values.unsigned_integer("u32") == 4000000000u);
    CHECK(values.number("i32") == -7.0);
    CHECK(values.number("f32") == 0.25);
    CHECK(values.boolean("yes") == true);
    CHECK(values.boolean("no") == false);
    CHECK(values.string("text") == std::string_view("a\0b", 3));
    CHECK(values.unsigned_integer("u64") == 1ull << 63);
    CHECK(values.unsigned_integer("i64") == (1ull << 63) - 1);
    CHECK(values.number("f64") == 0.5);
    CHECK(*values.strings("texts") == std::vector<std::string_view>{"", "x", "yz"});
    CHECK(*values.integers("numbers") == std::vector<std::int64_t>{-1, 0, 2147483647});
    CHECK(values.find("nested")->count == 2);
    CHECK(values.unsigned_integer("after") == 5);
    CHECK_FALSE(values.number("absent").has_value());
    // Of the wrong type, or out of range: the key is named.
    CHECK(mentions(refusal([&] { values.unsigned_integer("i32"); }), "key i32 is -7, it should be 0 or more"));
    CHECK(mentions(refusal([&] { values.unsigned_integer("f32"); }), "key f32 is of type f32, it should be an integer"));
    CHECK(mentions(refusal([&] { values.string("u32"); }), "it should be a string"));
    CHECK(mentions(refusal([&] { values.boolean("u8"); }), "it should be bool"));
    CHECK(mentions(refusal([&] { values.strings("numbers"); }), "is of type array of i32, it should be an array of strings"));
    CHECK(mentions(refusal([&] { values.integers("texts"); }), "it should be an array of integers"));
}

TEST_CASE("gguf: a file of a vocabulary and no tensors opens") {
    const temporary_folder folder;
    random_model_options options;
    options.with_tensors = false;
    write_random_gguf(folder / "v.gguf", options);
    const auto file = model_file::open(folder / "v.gguf");
    CHECK(file.tensors().empty());
    CHECK(file.parameters() == 0);
    CHECK(file.metadata().contains("tokenizer.ggml.tokens"));
}

TEST_CASE("gguf: every readable format comes back as written") {
    const temporary_folder folder;
    for (const dtype type : all_dtypes()) {
        CAPTURE(traits_of(type).name);
        random_source random(7);
        const std::string data = random_tensor(type, 512 * 3, 0.1f, random);
        gguf_builder builder;
        builder.add_tensor("w", {512, 3}, gguf_type_number(type), data);
        write_file(folder / "f.gguf", builder.build());
        const auto file = model_file::open(folder / "f.gguf");
        const tensor_view& tensor = file.require("w", 3, 512);
        CHECK(tensor.type == type);
        REQUIRE(tensor.data.size() == data.size());
        CHECK(std::memcmp(tensor.data.data(), data.data(), data.size()) == 0);
        CHECK(file.entry("w")->type_name == traits_of(type).name);
    }
}

TEST_CASE("gguf: a format this version can't compute opens for inspection and is named when asked for") {
    const temporary_folder folder;
    gguf_builder builder;
    builder.add_tensor("old", {256}, 10, std::string(84, '\0'));  // Q2_K
    builder.add_tensor("w", {2}, 0, floats({1, 2}));
    write_file(folder / "f.gguf", builder.build());
    const auto file = model_file::open(folder / "f.gguf");
    CHECK(file.find("w") != nullptr);
    CHECK(file.entry("old")->type_name == "Q2_K");
    CHECK_FALSE(file.entry("old")->readable);
    const std::string message = refusal([&] { file.find("old"); });
    CHECK(mentions(message, "f.gguf: tensor 'old' is of type Q2_K, which isn't in this version; F32"));
    CHECK(mentions(refusal([&] { file.require("w", 2, 1); }), "tensor 'w' is 1 x 2, the model's sizes ask for 2 x 1"));
    CHECK(mentions(refusal([&] { file.require("z", 2, 1); }), "has no tensor 'z' (2 x 1 needed)"));
}

TEST_CASE("gguf: a split set opens from any member and equals the whole") {
    const temporary_folder folder;
    random_model_options options;
    options.width = 64;
    options.head_width = 16;
    options.heads = 4;
    options.feed_forward_width = 96;
    write_random_gguf(folder / "whole.gguf", options);
    write_random_split_gguf(folder / "split", options, 3);
    const auto whole = model_file::open(folder / "whole.gguf");
    for (const char* const name : {"split-00001-of-00003.gguf", "split-00003-of-00003.gguf"}) {
        CAPTURE(name);
        const auto split = model_file::open(folder / name);
        CHECK(split.file_count() == 3);
        CHECK(split.architecture() == "llama");
        REQUIRE(split.tensors().size() == whole.tensors().size());
        for (const auto& tensor : whole.tensors()) {
            const tensor_view& twin = split.require(tensor.view.name, tensor.view.rows, tensor.view.columns);
            CHECK(std::memcmp(twin.data.data(), tensor.view.data.data(), twin.data.size()) == 0);
        }
        // The last tensor lies in the last file, and errors about it say so.
        CHECK(mentions(split.file_of(*split.entry("output_norm.weight")), "00003-of-00003.gguf"));
    }
}

TEST_CASE("gguf: faults of a split set") {
    const temporary_folder folder;
    random_model_options options;
    options.width = 64;
    options.head_width = 16;
    options.heads = 4;
    options.feed_forward_width = 96;
    const std::string first = write_random_split_gguf(folder / "s", options, 3);
    const std::string second = folder / "s-00002-of-00003.gguf";
    const auto open = [](const std::string& path) { return refusal([&] { model_file::open(path); }); };

    SUBCASE("a part is missing") {
        std::filesystem::remove(second);
        CHECK(mentions(open(first), "s-00002-of-00003.gguf: no such file"));
    }
    SUBCASE("a part was renamed") {
        std::filesystem::rename(first, folder / "model.gguf");
        CHECK(mentions(open(folder / "model.gguf"), "is one of 3 parts of a split model; its name should end in -00001-of-"));
    }
    SUBCASE("two parts changed places") {
        write_file(second, read_file(folder / "s-00003-of-00003.gguf"));
        CHECK(mentions(open(first), "says it is part 3 of 3, which isn't what its name says"));
    }
    SUBCASE("a part of another set") {
        write_random_split_gguf(folder / "t", options, 4);
        write_file(second, read_file(folder / "t-00002-of-00004.gguf"));
        CHECK(mentions(open(first), "says it is part 2 of 4"));
    }
    SUBCASE("a tensor in two parts") {
        gguf_builder again;
        again.add_u16("split.no", 1);
        again.add_u16("split.count", 3);
        again.add_tensor("token_embd.weight", {1}, 0, floats({1}));
        write_file(second, again.build());
        CHECK(mentions(open(first), "tensor 'token_embd.weight' is also in"));
    }
    SUBCASE("fewer tensors than promised") {
        gguf_builder empty;
        empty.add_u16("split.no", 1);
        empty.add_u16("split.count", 3);
        write_file(second, empty.build());
        CHECK(mentions(open(first), "key split.tensors.count is 20, but the parts hold"));
    }
}
