#include "native/weights/model_file.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "native/weights/gguf.hpp"
#include "native/weights/json_text.hpp"
#include "native/weights/safetensors.hpp"
#include "native/weights/split_name.hpp"

namespace fermata {

using weights::fail;
using weights::file_tensor;
using weights::shown;

struct model_file::folder_config {
    nlohmann::ordered_json whole;
    const nlohmann::ordered_json* text = nullptr;  // `whole` or a part of it
};

namespace {

std::string shape_text(std::size_t rows, std::size_t columns) {
    return std::to_string(rows) + " x " + std::to_string(columns);
}

[[noreturn]] void unreadable(const std::string& file, const file_tensor& tensor) {
    fail(file, "tensor " + shown(tensor.view.name) + " is of type " + std::string(tensor.type_name) +
                   ", which isn't in this version; F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K and "
                   "Q6_K can be read");
}

// Multimodal checkpoints keep what concerns text in a member of this name.
const nlohmann::ordered_json& text_part(const nlohmann::ordered_json& config, const std::string& place) {
    for (const char* const name : {"text_config", "llm_config"}) {
        const auto part = config.find(name);
        if (part == config.end() || part->is_null()) continue;
        if (!part->is_object()) fail(place, std::string("key ") + name + " should be an object");
        return *part;
    }
    return config;
}

std::string string_member(const nlohmann::ordered_json& object, const char* name) {
    const auto member = object.find(name);
    return member != object.end() && member->is_string() ? member->get<std::string>() : std::string();
}

// What one member of a split set says of itself.
struct split_keys {
    std::uint64_t number = 0, count = 0, tensors = 0;
};

split_keys split_keys_of(const weights::metadata& values) {
    return {values.unsigned_integer("split.no").value_or(0), values.unsigned_integer("split.count").value_or(0),
            values.unsigned_integer("split.tensors.count").value_or(0)};
}

}  // namespace

model_file::model_file() = default;
model_file::model_file(model_file&&) noexcept = default;
model_file& model_file::operator=(model_file&&) noexcept = default;
model_file::~model_file() = default;

model_file model_file::open(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found)
        fail(path, "no such file or folder; 'bash tools/model.sh' gets the demo model into models/");
    model_file result;
    result.path_ = path;
    if (status.type() == fs::file_type::directory) {
        result.format_ = model_format::safetensors;
        result.open_folder();
    } else {
        result.format_ = model_format::gguf;
        result.open_gguf();
    }
    return result;
}

// One file, or all members of a split set: metadata comes from the first, tensors from all.
void model_file::open_gguf() {
    const auto map = [this](const std::string& path) {
        files_.push_back(weights::mapped_file::open(path));
        const auto bytes = files_.back().bytes();
        if (!weights::looks_like_gguf(bytes) && path.ends_with(".safetensors"))
            fail(path, "is a safetensors file; give the folder that holds it beside config.json");
        return weights::read_gguf(bytes, path);
    };
    weights::gguf_contents first = map(path_);
    split_keys split = split_keys_of(first.values);
    const auto set = weights::parse_split_name(path_);
    metadata_place_ = path_;
    if (split.count > 1) {
        if (!set || set->count != split.count)
            fail(path_, "is one of " + std::to_string(split.count) +
                            " parts of a split model; its name should end in -00001-of-0000N.gguf so that the others "
                            "can be found");
        if (split.count > weights::limits::split_files_max)
            fail(path_, "is split into " + std::to_string(split.count) + " parts; at most " +
                            std::to_string(weights::limits::split_files_max) + " are allowed");
        if (set->number != 1) {  // the user named a later part: begin with the first all the same
            files_.clear();
            metadata_place_ = weights::member_path(*set, 1);
            first = map(metadata_place_);
            split = split_keys_of(first.values);
        }
        if (split.number != 0 || split.count != set->count)
            fail(metadata_place_, "says it is part " + std::to_string(split.number + 1) + " of " +
                                      std::to_string(split.count) + ", which isn't what its name says");
    }
    gguf_version_ = first.version;
    metadata_ = std::move(first.values);
    add_tensors(first.tensors);
    for (std::uint32_t number = 2; split.count > 1 && number <= set->count; ++number) {
        const std::string path = weights::member_path(*set, number);
        const weights::gguf_contents part = map(path);
        const split_keys keys = split_keys_of(part.values);
        if (keys.number != number - 1 || keys.count != set->count)
            fail(path, "says it is part " + std::to_string(keys.number + 1) + " of " + std::to_string(keys.count) +
                           ", which isn't what its name says");
        add_tensors(part.tensors);
    }
    if (split.count > 1 && split.tensors != tensors_.size())
        fail(metadata_place_, "key split.tensors.count is " + std::to_string(split.tensors) +
                                  ", but the parts hold " + std::to_string(tensors_.size()) + " tensors");
}

void model_file::open_folder() {
    read_config();
    const weights::shard_index shards = weights::find_shards(path_);
    for (const std::string& name : shards.files) open_shard(weights::join_path(path_, name), shards.place);
    for (const auto& [name, shard] : shards.tensors) {
        const file_tensor* const tensor = entry(name);
        if (tensor == nullptr || tensor->part != shard)
            fail(shards.place, "says tensor " + shown(name) + " is in " + shown(shards.files[shard]) +
                                   ", but it isn't there");
    }
}

void model_file::read_config() {
    metadata_place_ = weights::join_path(path_, "config.json");
    std::string text;
    if (!read_text_file(path_, "config.json", text, weights::limits::config_bytes_max)) {
        for (const std::string& name : list_folder(path_))
            if (name.ends_with(".gguf"))
                fail(path_, "has no config.json; for the GGUF file in it give " + weights::join_path(path_, name));
        fail(path_, "has no config.json; a folder in Hugging Face layout or a GGUF file is needed");
    }
    config_ = std::make_unique<folder_config>();
    config_->whole = weights::parse_ordered_json(text, metadata_place_);
    if (!config_->whole.is_object()) fail(metadata_place_, "should hold a JSON object");
    config_->text = &text_part(config_->whole, metadata_place_);
}

void model_file::open_shard(const std::string& path, const std::string& place) {
    std::error_code ignored;
    if (std::filesystem::status(path, ignored).type() == std::filesystem::file_type::not_found)
        fail(place, "needs the file " + shown(std::filesystem::path(path).filename().string()) +
                        ", which isn't in the folder; get it too");
    files_.push_back(weights::mapped_file::open(path));
    weights::safetensors_contents contents = weights::read_safetensors(files_.back().bytes(), path);
    names_.push_back(std::move(contents.names));  // moving a deque leaves its elements where they are
    add_tensors(contents.tensors);
}

void model_file::add_tensors(const std::vector<file_tensor>& tensors) {
    const auto part = static_cast<std::uint32_t>(files_.size() - 1);
    tensors_.reserve(tensors_.size() + tensors.size());
    for (const file_tensor& tensor : tensors) {
        const auto [place, fresh] = index_.emplace(tensor.view.name, tensors_.size());
        if (!fresh)
            fail(files_[part].path(), "tensor " + shown(tensor.view.name) + " is also in " +
                                          file_of(tensors_[place->second]));
        tensors_.push_back(tensor);
        tensors_.back().part = part;
    }
}

std::string model_file::name() const {
    std::filesystem::path path(path_);
    if (!path.has_filename()) path = path.parent_path();  // a folder given with a slash at its end
    std::string result = path.filename().string();
    if (result.ends_with(".gguf")) result.resize(result.size() - 5);
    return result;
}

std::string model_file::architecture() const {
    if (format_ == model_format::gguf) {
        const auto value = metadata_.string("general.architecture");
        if (!value) fail(metadata_place_, "has no key general.architecture");
        return std::string(*value);
    }
    std::string type = string_member(text_config(), "model_type");
    // transformers leaves model_type out of a text_config of the default kind.
    if (type.empty() && &text_config() != &config()) return "llama";
    if (type.empty()) fail(metadata_place_, "has no key model_type");
    return type;
}

const nlohmann::ordered_json& model_file::config() const noexcept {
    static const nlohmann::ordered_json none;
    return config_ ? config_->whole : none;
}

const nlohmann::ordered_json& model_file::text_config() const noexcept {
    return config_ ? *config_->text : config();
}

const file_tensor* model_file::entry(std::string_view name) const noexcept {
    const auto found = index_.find(name);
    return found == index_.end() ? nullptr : &tensors_[found->second];
}

const tensor_view* model_file::find(std::string_view name) const {
    const file_tensor* const tensor = entry(name);
    if (tensor == nullptr) return nullptr;
    if (!tensor->readable) unreadable(file_of(*tensor), *tensor);
    return &tensor->view;
}

const tensor_view& model_file::require(std::string_view name, std::size_t rows, std::size_t columns) const {
    const tensor_view* const view = find(name);
    if (view == nullptr)
        fail(path_, "has no tensor " + shown(name) + " (" + shape_text(rows, columns) + " needed)");
    if (view->rows != rows || view->columns != columns)
        fail(file_of(*entry(name)), "tensor " + shown(name) + " is " + shape_text(view->rows, view->columns) +
                                        ", the model's sizes ask for " + shape_text(rows, columns));
    return *view;
}

const std::string& model_file::file_of(const file_tensor& tensor) const noexcept { return files_[tensor.part].path(); }

std::uint64_t model_file::file_bytes() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& file : files_) sum += file.bytes().size();
    return sum;
}

std::uint64_t model_file::tensor_bytes() const noexcept {
    std::uint64_t sum = 0;
    for (const file_tensor& tensor : tensors_) sum += tensor.view.data.size();
    return sum;
}

std::uint64_t model_file::parameters() const noexcept {
    std::uint64_t sum = 0;
    for (const file_tensor& tensor : tensors_) sum += tensor.view.rows * tensor.view.columns;
    return sum;
}

void model_file::release(const tensor_view& tensor) const noexcept {
    for (const auto& file : files_)
        if (file.contains(tensor.data)) return file.release(tensor.data);
}

void model_file::release_all() const noexcept {
    // From the first tensor's data to the last one's: the headers before stay, metadata points into them.
    for (std::size_t i = 0; i < files_.size(); ++i) {
        const std::byte* begin = nullptr;
        const std::byte* end = nullptr;
        for (const file_tensor& tensor : tensors_) {
            if (tensor.part != i || tensor.view.data.empty()) continue;
            const auto data = tensor.view.data;
            if (begin == nullptr || data.data() < begin) begin = data.data();
            if (end == nullptr || data.data() + data.size() > end) end = data.data() + data.size();
        }
        if (begin != nullptr) files_[i].release({begin, static_cast<std::size_t>(end - begin)});
    }
}

void model_file::prefetch(const tensor_view& tensor) const noexcept {
    for (const auto& file : files_)
        if (file.contains(tensor.data)) return file.prefetch(tensor.data);
}

}  // namespace fermata
