#include "native/weights/describe.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

namespace fermata {
namespace {

std::vector<type_usage> usage_by_type(const model_file& file) {
    std::map<std::string_view, type_usage> by_name;
    for (const weights::file_tensor& tensor : file.tensors()) {
        type_usage& usage = by_name[tensor.type_name];
        usage.type = tensor.type_name;
        usage.tensors += 1;
        usage.elements += tensor.view.rows * tensor.view.columns;
        usage.bytes += tensor.view.data.size();
    }
    std::vector<type_usage> result;
    for (auto& [name, usage] : by_name) result.push_back(std::move(usage));
    std::ranges::stable_sort(result, std::ranges::greater{}, &type_usage::bytes);
    return result;
}

void describe_vocabulary(const model_file& file, model_description& result) {
    if (file.format() == model_format::gguf) {
        const weights::metadata& values = file.metadata();
        if (const auto model = values.string("tokenizer.ggml.model")) {
            const auto kind = values.string("tokenizer.ggml.pre").value_or("");
            result.vocabulary_kind = std::string(*model) + (kind.empty() ? "" : "/") + std::string(kind);
        }
        if (const auto* const tokens = values.find("tokenizer.ggml.tokens")) result.vocabulary = tokens->count;
        result.chat_template = values.contains("tokenizer.chat_template");
        return;
    }
    const std::vector<std::string> names = list_folder(file.path());
    const auto has = [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
    if (has("tokenizer.json")) result.vocabulary_kind = "tokenizer.json";
    if (result.sizes) result.vocabulary = result.sizes->vocabulary;
    result.chat_template = has("chat_template.jinja");
    std::string text;
    if (!result.chat_template && read_text_file(file.path(), "tokenizer_config.json", text))
        result.chat_template = text.find("\"chat_template\"") != std::string::npos;
}

std::string grouped(std::uint64_t value) {
    std::string digits = std::to_string(value);
    for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
    return digits;
}

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return text;
}

std::string scaling_text(const rope_scaling& scaling) {
    switch (scaling.kind) {
        case rope_scaling_kind::none: return "";
        case rope_scaling_kind::linear: return ", scaled linearly by " + number(scaling.factor);
        case rope_scaling_kind::llama3: return ", scaled as Llama 3 by " + number(scaling.factor);
        case rope_scaling_kind::divisors: return ", scaled by the tensor rope_freqs.weight";
    }
    return "";
}

std::string sizes_text(const llama_hyperparameters& sizes) {
    std::string text;
    const auto line = [&](std::string_view key, const std::string& value) {
        text += std::string(key) + ": " + value + "\n";
    };
    line("layers", grouped(sizes.layers));
    line("width", grouped(sizes.width));
    line("heads", grouped(sizes.heads) + " of " + std::to_string(sizes.head_width) + ", " + grouped(sizes.kv_heads) +
                      " for keys and values");
    line("feed-forward width", grouped(sizes.feed_forward_width));
    line("context", grouped(sizes.context_tokens) + " tokens");
    line("RoPE", "base " + number(sizes.rope_theta) + ", " + std::to_string(sizes.rope_width) + " dimensions" +
                     scaling_text(sizes.scaling));
    line("RMS epsilon", number(static_cast<double>(sizes.rms_epsilon)));
    line("output head", sizes.tied_head ? "the token embedding" : "its own");
    for (const std::string& note : sizes.notes) line("note", note);
    return text;
}

}  // namespace

model_description describe(const model_file& file) {
    model_description result;
    const bool is_gguf = file.format() == model_format::gguf;
    result.format = is_gguf ? "GGUF " + std::to_string(file.gguf_version()) : "safetensors";
    result.architecture = file.architecture();
    result.name = is_gguf ? std::string(file.metadata().string("general.name").value_or("")) : file.name();
    result.files = file.file_count();
    result.file_bytes = file.file_bytes();
    result.tensors = file.tensors().size();
    result.parameters = file.parameters();
    result.tensor_bytes = file.tensor_bytes();
    result.types = usage_by_type(file);
    if (is_llama_like(result.architecture)) {
        try {
            result.sizes = read_llama_hyperparameters(file);
        } catch (const model_file_error& error) {
            result.sizes_error = error.what();  // a vocabulary alone, or something this version can't compute
        }
    }
    describe_vocabulary(file, result);
    return result;
}

std::string to_text(const model_description& description) {
    std::string text;
    const auto line = [&](std::string_view key, const std::string& value) {
        text += std::string(key) + ": " + value + "\n";
    };
    line("format", description.format + (description.files > 1 ? ", " + grouped(description.files) + " files" : "") +
                       ", " + grouped(description.file_bytes) + " bytes");
    line("architecture", weights::shown(description.architecture));
    if (!description.name.empty()) line("name", weights::shown(description.name));
    line("parameters", grouped(description.parameters) + " in " + grouped(description.tensors) + " tensors");
    for (const type_usage& usage : description.types)
        line("  " + usage.type, grouped(usage.tensors) + " tensors, " + grouped(usage.bytes) + " bytes");
    if (description.sizes) text += sizes_text(*description.sizes);
    if (!description.sizes_error.empty()) line("not loadable", description.sizes_error);
    line("vocabulary", (description.vocabulary_kind.empty() ? "none" : weights::escaped(description.vocabulary_kind)) +
                           (description.vocabulary != 0 ? ", " + grouped(description.vocabulary) + " tokens" : ""));
    line("chat template", description.chat_template ? "yes" : "none");
    return text;
}

}  // namespace fermata
