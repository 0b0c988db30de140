#include "native/weights/safetensors.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "native/weights/byte_reader.hpp"
#include "native/weights/checked.hpp"

namespace fermata::weights {
namespace {

struct element_type {
    std::string_view name;
    std::uint64_t bits;
    std::optional<dtype> readable;
};

// What the reference library can write. Those without a dtype can be skipped and inspected, not used.
constexpr element_type element_types[] = {
    {"F32", 32, dtype::f32},        {"F16", 16, dtype::f16},        {"BF16", 16, dtype::bf16},
    {"F64", 64, std::nullopt},      {"I64", 64, std::nullopt},      {"U64", 64, std::nullopt},
    {"I32", 32, std::nullopt},      {"U32", 32, std::nullopt},      {"I16", 16, std::nullopt},
    {"U16", 16, std::nullopt},      {"I8", 8, std::nullopt},        {"U8", 8, std::nullopt},
    {"BOOL", 8, std::nullopt},      {"F8_E4M3", 8, std::nullopt},   {"F8_E5M2", 8, std::nullopt},
    {"F8_E8M0", 8, std::nullopt},   {"F8_E4M3FNUZ", 8, std::nullopt}, {"F8_E5M2FNUZ", 8, std::nullopt},
    {"F4", 4, std::nullopt},        {"F6_E2M3", 6, std::nullopt},   {"F6_E3M2", 6, std::nullopt},
    {"C64", 64, std::nullopt},
};

struct pending_tensor {
    std::string name;
    const element_type* type = nullptr;
    std::array<std::uint64_t, limits::dimensions_max> shape{};
    unsigned dimensions = 0;
    bool has_shape = false;
    std::array<std::uint64_t, 2> offsets{};
    unsigned offset_count = 0;
    bool has_offsets = false;
};

// Receives the header's JSON event by event and accepts exactly the form of a safetensors header. `error` is set when
// it stops.
class header_handler {
public:
    using number_integer_t = nlohmann::json::number_integer_t;
    using number_unsigned_t = nlohmann::json::number_unsigned_t;
    using number_float_t = nlohmann::json::number_float_t;
    using string_t = nlohmann::json::string_t;
    using binary_t = nlohmann::json::binary_t;

    std::vector<pending_tensor> tensors;
    std::vector<std::pair<std::string, std::string>> metadata;
    std::string error;
    std::size_t error_offset = 0;  // of a syntax error
    bool syntax_error = false;

    bool null() { return refuse("holds null where none is allowed"); }
    bool boolean(bool) { return refuse("holds true or false where none is allowed"); }
    bool number_integer(number_integer_t) { return refuse("holds a negative number"); }
    bool number_float(number_float_t, const string_t&) { return refuse("holds a number that isn't an integer"); }
    bool binary(binary_t&) { return refuse("holds binary data"); }

    bool number_unsigned(number_unsigned_t value) {
        pending_tensor* const tensor = state_ == state::list ? &tensors.back() : nullptr;
        if (tensor == nullptr) return refuse("holds a number where none is allowed");
        if (field_ == field::shape) {
            if (tensor->dimensions == limits::dimensions_max)
                return refuse("has more than " + std::to_string(limits::dimensions_max) + " dimensions");
            tensor->shape[tensor->dimensions++] = value;
        } else {
            if (tensor->offset_count == 2) return refuse("has more than two data_offsets");
            tensor->offsets[tensor->offset_count++] = value;
        }
        return true;
    }

    bool string(string_t& value) {
        if (state_ == state::metadata) {
            metadata.emplace_back(metadata_key_, std::move(value));
            return true;
        }
        if (state_ != state::tensor || field_ != field::type) return refuse("holds a string where none is allowed");
        const auto* const type = std::ranges::find(element_types, std::string_view(value), &element_type::name);
        if (type == std::end(element_types)) return refuse("has dtype " + shown(value) + ", which isn't known");
        if (tensors.back().type != nullptr) return refuse("has dtype twice");
        tensors.back().type = type;
        return true;
    }

    bool start_object(std::size_t) {
        if (state_ == state::start) {
            state_ = state::top;
        } else if (state_ == state::top) {
            if (in_metadata_) {
                state_ = state::metadata;
            } else {
                state_ = state::tensor;
                field_ = field::none;
            }
        } else {
            return refuse("holds an object where none is allowed");
        }
        return true;
    }

    bool key(string_t& value) {
        if (state_ == state::top) return top_key(value);
        if (state_ == state::metadata) {
            metadata_key_ = value;
            return true;
        }
        if (value == "dtype") {
            field_ = field::type;
        } else if (value == "shape") {
            field_ = field::shape;
        } else if (value == "data_offsets") {
            field_ = field::offsets;
        } else {
            return refuse("has the field " + shown(value) + "; dtype, shape and data_offsets are allowed");
        }
        return true;
    }

    bool end_object() {
        if (state_ == state::tensor) {
            const pending_tensor& tensor = tensors.back();
            if (tensor.type == nullptr) return refuse("has no dtype");
            if (!tensor.has_shape) return refuse("has no shape");
            if (tensor.offset_count != 2) return refuse("needs two data_offsets");
        }
        state_ = state_ == state::top ? state::end : state::top;
        return true;
    }

    bool start_array(std::size_t) {
        if (state_ != state::tensor || (field_ != field::shape && field_ != field::offsets))
            return refuse("holds an array where none is allowed");
        bool& seen = field_ == field::shape ? tensors.back().has_shape : tensors.back().has_offsets;
        if (seen) return refuse(field_ == field::shape ? "has shape twice" : "has data_offsets twice");
        seen = true;
        state_ = state::list;
        return true;
    }

    bool end_array() {
        state_ = state::tensor;
        return true;
    }

    bool parse_error(std::size_t position, const std::string& token, const nlohmann::json::exception&) {
        syntax_error = true;
        error_offset = position;
        error = "the header isn't valid JSON near " + shown(token);
        return false;
    }

private:
    enum class state { start, top, tensor, list, metadata, end };
    enum class field { none, type, shape, offsets };

    bool top_key(string_t& value) {
        in_metadata_ = value == "__metadata__";
        if (in_metadata_) {
            if (seen_metadata_) return refuse_header("has __metadata__ twice");
            seen_metadata_ = true;
            return true;
        }
        if (value.empty() || value.size() > limits::tensor_name_bytes_max)
            return refuse_header("has a tensor name of " + std::to_string(value.size()) + " bytes; 1 to " +
                                 std::to_string(limits::tensor_name_bytes_max) + " are allowed");
        if (tensors.size() == limits::tensors_max)
            return refuse_header("has more than " + std::to_string(limits::tensors_max) + " tensors");
        tensors.emplace_back().name = std::move(value);
        return true;
    }

    bool refuse_header(const std::string& what) {
        error = "the header " + what;
        return false;
    }

    bool refuse(const std::string& what) {
        const bool of_tensor = (state_ == state::top || state_ == state::tensor || state_ == state::list) &&
                               !in_metadata_ && !tensors.empty();
        if (!of_tensor) return refuse_header(what);
        error = "tensor " + shown(tensors.back().name) + " " + what;
        return false;
    }

    state state_ = state::start;
    field field_ = field::none;
    bool in_metadata_ = false, seen_metadata_ = false;
    std::string metadata_key_;
};

header_handler parse_header(std::span<const std::byte> header, std::string_view file) {
    constexpr std::size_t length_bytes = 8;
    header_handler handler;
    const auto* const text = reinterpret_cast<const char*>(header.data());
    if (header.empty() || text[0] != '{')
        fail_at(file, length_bytes, "the header should begin with '{'; this isn't a safetensors file");
    nlohmann::json::sax_parse(text, text + header.size(), &handler);
    if (!handler.error.empty()) {
        if (handler.syntax_error) fail_at(file, length_bytes + handler.error_offset, handler.error);
        fail(file, handler.error);
    }
    return handler;
}

// Elements of a shape; throws when there are too many.
std::uint64_t element_count(const pending_tensor& tensor, std::string_view file) {
    std::uint64_t elements = 1;
    for (unsigned i = 0; i < tensor.dimensions; ++i) {
        const auto product = checked_product(elements, tensor.shape[i]);
        // A 0 later in the shape doesn't excuse an overflow before it.
        if (!product || *product > limits::elements_max)
            fail(file, "tensor " + shown(tensor.name) + " has more than 2^50 elements");
        elements = *product;
    }
    return elements;
}

void place(const pending_tensor& pending, std::uint64_t expected_begin, std::span<const std::byte> data,
           std::string_view file, file_tensor& tensor) {
    const auto [begin, end] = pending.offsets;
    const std::string who = "tensor " + shown(pending.name);
    const std::string where = " lies at data_offsets [" + std::to_string(begin) + ", " + std::to_string(end) + "]";
    if (end < begin) fail(file, who + where + ", which end before they begin");
    if (end > data.size())
        fail(file, who + where + ", but the data has " + std::to_string(data.size()) +
                       " bytes; the file is truncated, get it again");
    if (begin < expected_begin) fail(file, who + where + ", overlapping the tensor before it");
    if (begin > expected_begin)
        fail(file, who + where + ", leaving a gap after byte " + std::to_string(expected_begin) + " of the data");
    const std::uint64_t elements = element_count(pending, file);
    const std::uint64_t bits = elements * pending.type->bits;  // < 2^50 * 2^6
    if (bits % 8 != 0 || bits / 8 != end - begin)
        fail(file, who + where + ", but its shape and dtype " + std::string(pending.type->name) + " ask for " +
                       std::to_string((bits + 7) / 8) + " bytes");
    tensor.view.columns = pending.dimensions == 0 ? 1 : pending.shape[pending.dimensions - 1];
    tensor.view.rows = tensor.view.columns == 0 ? 0 : elements / tensor.view.columns;
    tensor.view.data = data.subspan(begin, end - begin);
}

}  // namespace

safetensors_contents read_safetensors(std::span<const std::byte> bytes, std::string_view file) {
    byte_reader reader(bytes, file);
    const auto header_bytes = reader.number<std::uint64_t>("the header's length");
    if (header_bytes > limits::safetensors_header_bytes_max)
        reader.error_at(0, "claims a header of " + std::to_string(header_bytes) + " bytes; at most " +
                               std::to_string(limits::safetensors_header_bytes_max) +
                               " are allowed; is this a safetensors file?");
    header_handler header = parse_header(reader.take(header_bytes, "the header"), file);
    const auto data = bytes.subspan(reader.offset());

    std::ranges::stable_sort(header.tensors, {}, &pending_tensor::offsets);
    safetensors_contents contents;
    contents.metadata = std::move(header.metadata);
    contents.tensors.reserve(header.tensors.size());
    std::unordered_set<std::string_view> names;
    std::uint64_t end = 0;
    for (pending_tensor& pending : header.tensors) {
        file_tensor& tensor = contents.tensors.emplace_back();
        place(pending, end, data, file, tensor);
        end = pending.offsets[1];
        tensor.view.name = contents.names.emplace_back(pending.name);
        if (!names.insert(tensor.view.name).second)
            fail(file, "tensor " + shown(tensor.view.name) + " appears twice");
        tensor.shape = pending.shape;
        tensor.dimensions = pending.dimensions;
        tensor.type_name = pending.type->name;
        tensor.readable = pending.type->readable.has_value();
        tensor.view.type = pending.type->readable.value_or(dtype::f32);
    }
    if (end != data.size())
        fail(file, "the tensors end at byte " + std::to_string(end) + " of the data, which has " +
                       std::to_string(data.size()) + " bytes; the file is damaged");
    return contents;
}

}  // namespace fermata::weights
