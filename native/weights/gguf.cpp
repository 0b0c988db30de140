#include "native/weights/gguf.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_set>

#include "native/weights/byte_reader.hpp"
#include "native/weights/checked.hpp"

namespace fermata::weights {
namespace {

struct ggml_type {
    std::uint32_t number;
    std::string_view name;
    std::uint64_t block_elements, block_bytes;
    std::optional<dtype> readable;
};

// The numbers a GGUF may use for tensor types. Those without a dtype have known sizes, so that a file holding some
// can be checked and inspected; asking for such a tensor is the error.
constexpr ggml_type ggml_types[] = {
    {0, "F32", 1, 4, dtype::f32},
    {1, "F16", 1, 2, dtype::f16},
    {2, "Q4_0", 32, 18, dtype::q4_0},
    {3, "Q4_1", 32, 20, dtype::q4_1},
    {6, "Q5_0", 32, 22, dtype::q5_0},
    {7, "Q5_1", 32, 24, dtype::q5_1},
    {8, "Q8_0", 32, 34, dtype::q8_0},
    {9, "Q8_1", 32, 40, std::nullopt},
    {10, "Q2_K", 256, 84, std::nullopt},
    {11, "Q3_K", 256, 110, std::nullopt},
    {12, "Q4_K", 256, 144, dtype::q4_k},
    {13, "Q5_K", 256, 176, dtype::q5_k},
    {14, "Q6_K", 256, 210, dtype::q6_k},
    {15, "Q8_K", 256, 292, std::nullopt},
    {16, "IQ2_XXS", 256, 66, std::nullopt},
    {17, "IQ2_XS", 256, 74, std::nullopt},
    {18, "IQ3_XXS", 256, 98, std::nullopt},
    {19, "IQ1_S", 256, 50, std::nullopt},
    {20, "IQ4_NL", 32, 18, std::nullopt},
    {21, "IQ3_S", 256, 110, std::nullopt},
    {22, "IQ2_S", 256, 82, std::nullopt},
    {23, "IQ4_XS", 256, 136, std::nullopt},
    {24, "I8", 1, 1, std::nullopt},
    {25, "I16", 1, 2, std::nullopt},
    {26, "I32", 1, 4, std::nullopt},
    {27, "I64", 1, 8, std::nullopt},
    {28, "F64", 1, 8, std::nullopt},
    {29, "IQ1_M", 256, 56, std::nullopt},
    {30, "BF16", 1, 2, dtype::bf16},
    {34, "TQ1_0", 256, 54, std::nullopt},
    {35, "TQ2_0", 256, 66, std::nullopt},
    {39, "MXFP4", 32, 17, std::nullopt},
    {40, "NVFP4", 64, 36, std::nullopt},
    {41, "Q1_0", 128, 18, std::nullopt},
};

const ggml_type* find_type(std::uint32_t number) {
    const auto* const found = std::ranges::find(ggml_types, number, &ggml_type::number);
    return found == std::end(ggml_types) ? nullptr : found;
}

metadata_type read_type(byte_reader& reader, std::string_view key) {
    const std::size_t at = reader.offset();
    const auto number = reader.number<std::uint32_t>("a value's type");
    const auto type = static_cast<metadata_type>(number);
    if (name_of(type) == "?")
        reader.error_at(at, "key " + shown(key) + " has value type " + std::to_string(number) +
                                "; GGUF defines the types 0 to 12");
    return type;
}

// Walks over one array (type and count are read here) and returns what it holds. Work is bounded by the bytes left:
// each element takes at least one.
metadata_value read_array(byte_reader& reader, std::string_view key, unsigned nesting) {
    if (nesting > limits::array_nesting_max)
        reader.error("key " + shown(key) + " nests arrays deeper than " + std::to_string(limits::array_nesting_max));
    metadata_value value;
    value.type = metadata_type::array;
    value.element = read_type(reader, key);
    value.count = reader.number<std::uint64_t>("an array's length");
    const std::size_t size = fixed_bytes(value.element);
    // A string takes at least 8 bytes, an array 12.
    const std::uint64_t smallest = size != 0 ? size : (value.element == metadata_type::string ? 8 : 12);
    if (value.count > reader.left() / smallest)
        reader.error("key " + shown(key) + " claims " + std::to_string(value.count) + " elements, but only " +
                     std::to_string(reader.left()) + " bytes are left; the file is truncated or damaged");
    const std::size_t start = reader.offset();
    if (size != 0) {
        value.bytes = reader.take(value.count * size, "an array");
        return value;
    }
    byte_reader scan = reader;
    const std::string what = "a string of key " + shown(key);  // made once: vocabularies have 10^5 strings
    for (std::uint64_t i = 0; i < value.count; ++i) {
        if (value.element == metadata_type::string)
            scan.take(scan.number<std::uint64_t>("a string's length"), what);
        else
            read_array(scan, key, nesting + 1);
    }
    value.bytes = reader.take(scan.offset() - start, "an array");
    return value;
}

metadata_value read_value(byte_reader& reader, std::string_view key) {
    metadata_value value;
    value.type = read_type(reader, key);
    if (value.type == metadata_type::array) return read_array(reader, key, 1);
    const std::uint64_t size = value.type == metadata_type::string ? reader.number<std::uint64_t>("a string's length")
                                                                   : fixed_bytes(value.type);
    value.bytes = reader.take(size, "the value of key " + shown(key));
    return value;
}

void read_metadata(byte_reader& reader, std::uint64_t count, metadata& values) {
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::size_t at = reader.offset();
        const auto length = reader.number<std::uint64_t>("a key's length");
        if (length == 0 || length > limits::key_bytes_max)
            reader.error_at(at, "key " + std::to_string(i) + " has a length of " + std::to_string(length) +
                                    " bytes; 1 to " + std::to_string(limits::key_bytes_max) + " are allowed");
        const std::string_view key = reader.text(length, "a key");
        const metadata_value value = read_value(reader, key);
        if (!values.insert(key, value)) reader.error_at(at, "key " + shown(key) + " appears twice");
    }
}

std::string_view read_tensor_name(byte_reader& reader, std::uint64_t number) {
    const std::size_t at = reader.offset();
    const auto length = reader.number<std::uint64_t>("a tensor name's length");
    if (length == 0 || length > limits::tensor_name_bytes_max)
        reader.error_at(at, "the name of tensor " + std::to_string(number) + " has a length of " +
                                std::to_string(length) + " bytes; 1 to " +
                                std::to_string(limits::tensor_name_bytes_max) + " are allowed");
    return reader.text(length, "a tensor name");
}

struct pending_tensor {
    file_tensor tensor;
    std::uint64_t offset = 0, bytes = 0;  // relative to the data section
    std::size_t header_offset = 0;        // for errors
};

// Shape, type, offset of one tensor; its size in bytes follows from them.
pending_tensor read_tensor_info(byte_reader& reader, std::uint64_t number) {
    pending_tensor result;
    result.header_offset = reader.offset();
    file_tensor& tensor = result.tensor;
    tensor.view.name = read_tensor_name(reader, number);
    const auto refuse = [&](const std::string& what) {
        reader.error_at(result.header_offset, "tensor " + shown(tensor.view.name) + " " + what);
    };
    tensor.dimensions = reader.number<std::uint32_t>("a tensor's number of dimensions");
    if (tensor.dimensions == 0 || tensor.dimensions > limits::gguf_dimensions_max)
        refuse("has " + std::to_string(tensor.dimensions) + " dimensions; 1 to " +
               std::to_string(limits::gguf_dimensions_max) + " are allowed");
    std::uint64_t elements = 1;
    for (unsigned i = 0; i < tensor.dimensions; ++i) {  // the file has the innermost first
        const auto size = reader.number<std::uint64_t>("a tensor's dimension");
        if (size == 0) refuse("has a dimension of 0");
        const auto product = checked_product(elements, size);
        if (!product || *product > limits::elements_max) refuse("has more than 2^50 elements");
        elements = *product;
        tensor.shape[tensor.dimensions - 1 - i] = size;
    }
    const auto type_number = reader.number<std::uint32_t>("a tensor's type");
    const ggml_type* const type = find_type(type_number);
    if (type == nullptr) refuse("has type number " + std::to_string(type_number) + ", which GGUF doesn't define");
    tensor.type_name = type->name;
    tensor.readable = type->readable.has_value();
    tensor.view.type = type->readable.value_or(dtype::f32);
    tensor.view.columns = tensor.shape[tensor.dimensions - 1];
    tensor.view.rows = elements / tensor.view.columns;
    if (tensor.view.columns % type->block_elements != 0)
        refuse("has rows of " + std::to_string(tensor.view.columns) + " elements; " + std::string(type->name) +
               " needs a multiple of " + std::to_string(type->block_elements));
    result.bytes = elements / type->block_elements * type->block_bytes;  // < 2^50 * 8: no overflow
    result.offset = reader.number<std::uint64_t>("a tensor's offset");
    return result;
}

std::uint64_t alignment_of(const metadata& values, std::string_view file) {
    constexpr std::uint64_t default_bytes = 32;
    const std::uint64_t alignment = values.unsigned_integer("general.alignment").value_or(default_bytes);
    if (!std::has_single_bit(alignment) || alignment < limits::alignment_bytes_min ||
        alignment > limits::alignment_bytes_max)
        fail(file, "key general.alignment is " + std::to_string(alignment) + "; it should be a power of two from " +
                       std::to_string(limits::alignment_bytes_min) + " to " +
                       std::to_string(limits::alignment_bytes_max));
    return alignment;
}

// Gives each tensor its bytes. `data` is the data section.
void place_tensors(std::vector<pending_tensor>& tensors, const gguf_contents& contents, std::size_t file_bytes,
                   std::span<const std::byte> data, std::string_view file) {
    for (pending_tensor& pending : tensors) {
        const std::string who = "tensor " + shown(pending.tensor.view.name);
        if (pending.offset % contents.alignment_bytes != 0)
            fail_at(file, pending.header_offset,
                    who + " has offset " + std::to_string(pending.offset) + ", not a multiple of the alignment " +
                        std::to_string(contents.alignment_bytes));
        if (pending.offset > data.size() || pending.bytes > data.size() - pending.offset)
            fail(file, who + " takes " + std::to_string(pending.bytes) + " bytes from offset " +
                           std::to_string(pending.offset) + " of the data at byte " +
                           std::to_string(contents.data_offset_bytes) + ", but the file has " +
                           std::to_string(file_bytes) + " bytes; it is truncated, get it again");
        pending.tensor.view.data = data.subspan(pending.offset, pending.bytes);
    }
    std::vector<std::size_t> order(tensors.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) { return tensors[i].offset; });
    for (std::size_t i = 1; i < order.size(); ++i) {
        const pending_tensor& before = tensors[order[i - 1]];
        const pending_tensor& after = tensors[order[i]];
        if (before.offset + before.bytes > after.offset)
            fail_at(file, after.header_offset,
                    "tensor " + shown(after.tensor.view.name) + " overlaps tensor " + shown(before.tensor.view.name));
    }
}

std::uint32_t read_version(byte_reader& reader) {
    if (reader.left() < 4 || reader.text(4, "the magic") != "GGUF")
        reader.error_at(0, "isn't a GGUF file (it doesn't begin with the letters GGUF)");
    const auto version = reader.number<std::uint32_t>("the version");
    if ((version & 0xffffu) == 0 && version != 0)
        reader.error_at(4, "is a big-endian GGUF file; convert it to little-endian");
    if (version != 2 && version != 3)
        reader.error_at(4, "has GGUF version " + std::to_string(version) + "; versions 2 and 3 can be read");
    return version;
}

}  // namespace

bool looks_like_gguf(std::span<const std::byte> bytes) noexcept {
    return bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0;
}

gguf_contents read_gguf(std::span<const std::byte> bytes, std::string_view file) {
    byte_reader reader(bytes, file);
    gguf_contents contents;
    contents.version = read_version(reader);
    const auto tensor_count = reader.number<std::uint64_t>("the number of tensors");
    const auto key_count = reader.number<std::uint64_t>("the number of keys");
    if (tensor_count > limits::tensors_max)
        reader.error_at(8, "claims " + std::to_string(tensor_count) + " tensors; at most " +
                               std::to_string(limits::tensors_max) + " are allowed");
    if (key_count > limits::metadata_entries_max)
        reader.error_at(16, "claims " + std::to_string(key_count) + " keys; at most " +
                                std::to_string(limits::metadata_entries_max) + " are allowed");
    contents.values = metadata(std::string(file));
    read_metadata(reader, key_count, contents.values);
    contents.alignment_bytes = alignment_of(contents.values, file);

    std::vector<pending_tensor> tensors;
    std::unordered_set<std::string_view> names;
    for (std::uint64_t i = 0; i < tensor_count; ++i) {
        tensors.push_back(read_tensor_info(reader, i));
        if (!names.insert(tensors.back().tensor.view.name).second)
            reader.error_at(tensors.back().header_offset,
                            "tensor " + shown(tensors.back().tensor.view.name) + " appears twice");
    }
    const std::uint64_t mask = contents.alignment_bytes - 1;
    contents.data_offset_bytes = (reader.offset() + mask) & ~mask;
    const auto data = bytes.subspan(std::min<std::size_t>(contents.data_offset_bytes, bytes.size()));
    place_tensors(tensors, contents, bytes.size(), data, file);
    contents.tensors.reserve(tensors.size());
    for (const pending_tensor& pending : tensors) contents.tensors.push_back(pending.tensor);
    return contents;
}

}  // namespace fermata::weights
