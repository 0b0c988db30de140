// A model on disk, in either form: a GGUF file (or a split set of them), or a folder in Hugging Face layout
// (config.json and safetensors, single or sharded). Opening maps the files, checks their headers and copies no
// tensor. Views stay valid until the model_file is destroyed; released ones cost a read when touched again.
//
// Not for concurrent use while opening; const members may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "native/tensor/tensor_view.hpp"
#include "native/weights/error.hpp"
#include "native/weights/file_tensor.hpp"
#include "native/weights/folder.hpp"
#include "native/weights/mapped_file.hpp"
#include "native/weights/metadata.hpp"

namespace fermata {

enum class model_format : std::uint8_t { gguf, safetensors };

class model_file {
public:
    // `path`: a GGUF file (any member of a split set opens the whole set) or a folder. Throws model_file_error.
    static model_file open(const std::string& path);

    model_file(model_file&&) noexcept;
    model_file& operator=(model_file&&) noexcept;
    ~model_file();

    model_format format() const noexcept { return format_; }
    const std::string& path() const noexcept { return path_; }  // as given
    std::string name() const;                                    // last part of the path, without ".gguf"
    std::uint32_t gguf_version() const noexcept { return gguf_version_; }

    // GGUF: general.architecture. Folder: model_type of the text model ("llama", "qwen2", ...).
    std::string architecture() const;

    // GGUF only; empty for a folder.
    const weights::metadata& metadata() const noexcept { return metadata_; }
    // Folder only: config.json, and the part of it that describes the text model (the whole, or its `text_config`).
    const nlohmann::ordered_json& config() const noexcept;
    const nlohmann::ordered_json& text_config() const noexcept;
    // Prefix of errors about the model's keys: the path of the GGUF file or of config.json.
    const std::string& metadata_place() const noexcept { return metadata_place_; }

    const std::vector<weights::file_tensor>& tensors() const noexcept { return tensors_; }
    const weights::file_tensor* entry(std::string_view name) const noexcept;  // null when absent
    // Null when absent; throws when the tensor's type can't be read.
    const tensor_view* find(std::string_view name) const;
    // Throws when absent, of an unreadable type, or not rows x columns.
    const tensor_view& require(std::string_view name, std::size_t rows, std::size_t columns) const;
    // Prefix of errors about a tensor: the file it lies in.
    const std::string& file_of(const weights::file_tensor& tensor) const noexcept;

    std::size_t file_count() const noexcept { return files_.size(); }
    std::uint64_t file_bytes() const noexcept;    // all files together
    std::uint64_t tensor_bytes() const noexcept;  // data of all tensors
    std::uint64_t parameters() const noexcept;    // elements of all tensors

    // Memory: a tensor that has been repacked can be given back; whole pages go, the view stays valid.
    void release(const tensor_view& tensor) const noexcept;
    void release_all() const noexcept;
    // Reads ahead what will be needed next.
    void prefetch(const tensor_view& tensor) const noexcept;

    // XXH3-128 of names, types, shapes and data of all tensors, in file order, and of all metadata or the config:
    // the identity of these weights wherever the files lie. Reads everything once and releases it. 32 hex digits.
    std::string content_digest() const;

private:
    model_file();
    void open_gguf();
    void open_folder();
    void read_config();
    void open_shard(const std::string& path, const std::string& place);
    void add_tensors(const std::vector<weights::file_tensor>& tensors);

    struct folder_config;

    model_format format_ = model_format::gguf;
    std::string path_;
    std::string metadata_place_;
    std::uint32_t gguf_version_ = 0;
    std::vector<weights::mapped_file> files_;
    weights::metadata metadata_;
    std::unique_ptr<folder_config> config_;
    std::deque<std::deque<std::string>> names_;  // owners of names that aren't in a mapping
    std::vector<weights::file_tensor> tensors_;
    std::unordered_map<std::string_view, std::size_t> index_;
};

}  // namespace fermata
