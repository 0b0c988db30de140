#include "tests/support/random_model.hpp"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "tests/support/random_blocks.hpp"
#include "tests/support/safetensors_builder.hpp"

namespace fermata::test_support {

const char* const random_model_template =
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

namespace {

using json = nlohmann::ordered_json;

std::string utf8(unsigned code_point) {
    if (code_point < 0x80) return {static_cast<char>(code_point)};
    return {static_cast<char>(0xc0u | code_point >> 6), static_cast<char>(0x80u | (code_point & 63u))};
}

// GPT-2's alphabet: printable bytes stand for themselves, the others for the code points from 256 on, in order.
std::vector<std::string> byte_alphabet() {
    std::vector<std::string> result;
    unsigned others = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
        const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
        result.push_back(utf8(printable ? byte : others++));
    }
    return result;
}

random_vocabulary make_vocabulary() {
    const std::string space = "\xC4\xA0";  // how the alphabet writes a space
    random_vocabulary result;
    result.tokens = byte_alphabet();
    const std::pair<std::string, std::string> merges[] = {
        {"t", "h"},        {"i", "n"},   {"e", "r"},        {"a", "n"},   {"o", "n"},         {"r", "e"},
        {space, "th"},     {"in", "g"},  {space + "th", "e"}, {"an", "d"}, {space, "a"},      {space, "and"},
        {"l", "l"},        {"o", "u"},   {space, "w"},      {"e", "s"},   {space, "in"},      {"o", "r"},
        {space + "w", "or"}, {"l", "d"}, {"e", "ll"},       {"h", "ell"}, {"hell", "o"},      {space + "wor", "ld"},
    };
    for (const auto& [left, right] : merges) {
        result.merges.push_back(left + " " + right);
        result.tokens.push_back(left + right);
    }
    result.end_of_text = static_cast<std::int32_t>(result.tokens.size());
    result.turn_start = result.end_of_text + 1;
    result.turn_end = result.end_of_text + 2;
    for (const char* const special : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) result.tokens.emplace_back(special);
    return result;
}

struct named_tensor {
    std::string gguf_name, folder_name;
    std::uint64_t rows, columns;  // rows 0: a vector
    dtype type;
    std::string data;
};

// All tensors of a model, in the order in which their random numbers are drawn.
class tensor_maker {
public:
    explicit tensor_maker(const random_model_options& options) : options_(options), random_(options.seed) {}

    std::vector<named_tensor> make(std::uint32_t vocabulary) {
        const dtype outer = options_.embedding_as_format ? options_.format : options_.embedding_format;
        matrix("token_embd.weight", "model.embed_tokens.weight", vocabulary, options_.width, outer, deviation(options_.width));
        for (std::uint32_t layer = 0; layer < options_.layers; ++layer) make_layer(layer);
        vector("output_norm.weight", "model.norm.weight", options_.width, 1.0f, 0.2f);
        if (!options_.tied_head)
            matrix("output.weight", "lm_head.weight", vocabulary, options_.width, outer, deviation(options_.width));
        if (options_.rope_divisors) divisors();
        return std::move(tensors_);
    }

private:
    static float deviation(std::uint32_t inputs) { return 1.0f / std::sqrt(static_cast<float>(inputs)); }

    void matrix(const std::string& gguf, const std::string& folder, std::uint64_t rows, std::uint64_t columns,
                dtype type, float deviation) {
        tensors_.push_back({gguf, folder, rows, columns, type,
                            random_tensor(type, static_cast<std::size_t>(rows * columns), deviation, random_)});
    }
    void vector(const std::string& gguf, const std::string& folder, std::uint64_t size, float center, float spread) {
        tensors_.push_back({gguf, folder, 0, size, dtype::f32,
                            random_vector(static_cast<std::size_t>(size), center, spread, random_)});
    }

    // Frequencies are divided by 1 at first, by 8 at last, as Llama 3's are.
    void divisors() {
        std::string data;
        const std::uint32_t pairs = options_.head_width / 2;
        for (std::uint32_t i = 0; i < pairs; ++i) append<float>(data, i < pairs / 2 ? 1.0f : 8.0f);
        tensors_.push_back({"rope_freqs.weight", "", 0, pairs, dtype::f32, data});
    }

    void make_layer(std::uint32_t layer) {
        const std::string g = "blk." + std::to_string(layer) + ".";
        const std::string f = "model.layers." + std::to_string(layer) + ".";
        const std::uint32_t width = options_.width, inner = options_.feed_forward_width;
        const std::uint32_t query = options_.heads * options_.head_width, key = options_.kv_heads * options_.head_width;
        const dtype type = options_.format;
        vector(g + "attn_norm.weight", f + "input_layernorm.weight", width, 1.0f, 0.2f);
        matrix(g + "attn_q.weight", f + "self_attn.q_proj.weight", query, width, type, deviation(width));
        matrix(g + "attn_k.weight", f + "self_attn.k_proj.weight", key, width, type, deviation(width));
        matrix(g + "attn_v.weight", f + "self_attn.v_proj.weight", key, width, type, deviation(width));
        matrix(g + "attn_output.weight", f + "self_attn.o_proj.weight", width, query, type, deviation(query));
        if (options_.architecture == "qwen2") {
            vector(g + "attn_q.bias", f + "self_attn.q_proj.bias", query, 0.0f, 0.3f);
            vector(g + "attn_k.bias", f + "self_attn.k_proj.bias", key, 0.0f, 0.3f);
            vector(g + "attn_v.bias", f + "self_attn.v_proj.bias", key, 0.0f, 0.3f);
        }
        if (options_.architecture == "qwen3") {
            vector(g + "attn_q_norm.weight", f + "self_attn.q_norm.weight", options_.head_width, 1.0f, 0.2f);
            vector(g + "attn_k_norm.weight", f + "self_attn.k_norm.weight", options_.head_width, 1.0f, 0.2f);
        }
        vector(g + "ffn_norm.weight", f + "post_attention_layernorm.weight", width, 1.0f, 0.2f);
        matrix(g + "ffn_gate.weight", f + "mlp.gate_proj.weight", inner, width, type, deviation(width));
        matrix(g + "ffn_up.weight", f + "mlp.up_proj.weight", inner, width, type, deviation(width));
        matrix(g + "ffn_down.weight", f + "mlp.down_proj.weight", width, inner, type, deviation(inner));
    }

    const random_model_options& options_;
    random_source random_;
    std::vector<named_tensor> tensors_;
};

std::uint32_t vocabulary_rows(const random_model_options& options) {
    return options.vocabulary != 0 ? options.vocabulary
                                   : static_cast<std::uint32_t>(the_random_vocabulary().tokens.size());
}

void add_sizes(gguf_builder& file, const random_model_options& options) {
    const std::string prefix = options.architecture + ".";
    file.add_string("general.architecture", options.architecture);
    file.add_string("general.name", "random " + std::string(traits_of(options.format).name));
    file.add_u32(prefix + "block_count", options.layers);
    file.add_u32(prefix + "context_length", options.context_tokens);
    file.add_u32(prefix + "embedding_length", options.width);
    file.add_u32(prefix + "feed_forward_length", options.feed_forward_width);
    file.add_u32(prefix + "attention.head_count", options.heads);
    file.add_u32(prefix + "attention.head_count_kv", options.kv_heads);
    file.add_u32(prefix + "attention.key_length", options.head_width);
    file.add_u32(prefix + "attention.value_length", options.head_width);
    file.add_f32(prefix + "attention.layer_norm_rms_epsilon", options.rms_epsilon);
    file.add_f32(prefix + "rope.freq_base", options.rope_theta);
    file.add_u32(prefix + "rope.dimension_count", options.head_width);
    file.add_u32(prefix + "vocab_size", vocabulary_rows(options));
}

void add_vocabulary(gguf_builder& file) {
    const random_vocabulary& vocabulary = the_random_vocabulary();
    std::vector<std::int32_t> types(vocabulary.tokens.size(), 1);
    for (std::int32_t id = vocabulary.end_of_text; id <= vocabulary.turn_end; ++id)
        types[static_cast<std::size_t>(id)] = 3;
    file.add_string("tokenizer.ggml.model", "gpt2");
    file.add_string("tokenizer.ggml.pre", "smollm");
    file.add_strings("tokenizer.ggml.tokens", vocabulary.tokens);
    file.add_i32s("tokenizer.ggml.token_type", types);
    file.add_strings("tokenizer.ggml.merges", vocabulary.merges);
    file.add_u32("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(vocabulary.turn_start));
    file.add_u32("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(vocabulary.turn_end));
    file.add_u32("tokenizer.ggml.unknown_token_id", static_cast<std::uint32_t>(vocabulary.end_of_text));
    file.add_bool("tokenizer.ggml.add_bos_token", false);
    file.add_string("tokenizer.chat_template", random_model_template);
}

void add_tensors(gguf_builder& file, const std::vector<named_tensor>& tensors, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
        const named_tensor& tensor = tensors[i];
        if (tensor.rows == 0)
            file.add_tensor(tensor.gguf_name, {tensor.columns}, gguf_type_number(tensor.type), tensor.data);
        else
            file.add_tensor(tensor.gguf_name, {tensor.columns, tensor.rows}, gguf_type_number(tensor.type), tensor.data);
    }
}

gguf_builder start_gguf(const random_model_options& options) {
    gguf_builder file;
    file.version = options.version;
    file.alignment_bytes = options.alignment_bytes;
    add_sizes(file, options);
    add_vocabulary(file);
    return file;
}

json text_config(const random_model_options& options) {
    json config;
    const bool qwen3_vl = options.multimodal && options.architecture == "qwen3";
    config["model_type"] = qwen3_vl ? "qwen3_vl_text" : options.architecture;
    config["vocab_size"] = vocabulary_rows(options);
    config["hidden_size"] = options.width;
    config["intermediate_size"] = options.feed_forward_width;
    config["num_hidden_layers"] = options.layers;
    config["num_attention_heads"] = options.heads;
    config["num_key_value_heads"] = options.kv_heads;
    config["head_dim"] = options.head_width;
    config["hidden_act"] = "silu";
    config["max_position_embeddings"] = options.context_tokens;
    config["rms_norm_eps"] = static_cast<double>(options.rms_epsilon);
    config["rope_theta"] = static_cast<double>(options.rope_theta);
    if (options.architecture == "mistral") config["sliding_window"] = nullptr;
    if (options.rope_divisors)
        config["rope_scaling"] = {{"rope_type", "llama3"},       {"factor", 8.0},
                                  {"low_freq_factor", 1.0},      {"high_freq_factor", 4.0},
                                  {"original_max_position_embeddings", 1024}};
    config["tie_word_embeddings"] = options.tied_head;
    config["bos_token_id"] = the_random_vocabulary().turn_start;
    config["eos_token_id"] = the_random_vocabulary().turn_end;
    return config;
}

json model_config(const random_model_options& options) {
    json text = text_config(options);
    if (!options.multimodal) {
        std::string name = options.architecture;
        name[0] = static_cast<char>(name[0] - 'a' + 'A');
        text["architectures"] = {name + "ForCausalLM"};
        return text;
    }
    json whole;
    whole["model_type"] = options.architecture == "qwen3" ? "qwen3_vl" : "llava";
    whole["text_config"] = std::move(text);
    whole["vision_config"] = {{"hidden_size", 32}};
    whole["tie_word_embeddings"] = options.tied_head;
    return whole;
}

json tokenizer_json() {
    const random_vocabulary& vocabulary = the_random_vocabulary();
    json result;
    result["version"] = "1.0";
    json added = json::array();
    for (std::int32_t id = vocabulary.end_of_text; id <= vocabulary.turn_end; ++id)
        added.push_back({{"id", id},           {"content", vocabulary.tokens[static_cast<std::size_t>(id)]},
                         {"single_word", false}, {"lstrip", false}, {"rstrip", false}, {"normalized", false},
                         {"special", true}});
    result["added_tokens"] = std::move(added);
    result["normalizer"] = nullptr;
    json split;
    split["type"] = "Sequence";
    split["pretokenizers"] = json::array({{{"type", "Digits"}, {"individual_digits", true}},
                                          {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true},
                                           {"use_regex", true}}});
    result["pre_tokenizer"] = std::move(split);
    result["post_processor"] = nullptr;
    result["decoder"] = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
    json model;
    model["type"] = "BPE";
    model["byte_fallback"] = false;
    model["ignore_merges"] = false;
    json ids;
    for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) ids[vocabulary.tokens[id]] = id;
    model["vocab"] = std::move(ids);
    model["merges"] = vocabulary.merges;
    result["model"] = std::move(model);
    return result;
}

void write_text_files(const std::string& folder, const random_model_options& options) {
    const random_vocabulary& vocabulary = the_random_vocabulary();
    write_file(folder + "/config.json", model_config(options).dump(2));
    write_file(folder + "/tokenizer.json", tokenizer_json().dump(2));
    const json tokenizer_config = {{"add_bos_token", false},
                                   {"bos_token", "<|im_start|>"},
                                   {"eos_token", "<|im_end|>"},
                                   {"unk_token", "<|endoftext|>"},
                                   {"tokenizer_class", "GPT2Tokenizer"},
                                   {"chat_template", random_model_template}};
    write_file(folder + "/tokenizer_config.json", tokenizer_config.dump(2));
    const json generation = {{"bos_token_id", vocabulary.turn_start},
                             {"eos_token_id", {vocabulary.turn_end, vocabulary.end_of_text}}};
    write_file(folder + "/generation_config.json", generation.dump(2));
}

std::string folder_name_of(const named_tensor& tensor, bool multimodal) {
    if (!multimodal || !tensor.folder_name.starts_with("model.")) return tensor.folder_name;
    return "model.language_model." + tensor.folder_name.substr(6);
}

}  // namespace

const random_vocabulary& the_random_vocabulary() {
    static const random_vocabulary vocabulary = make_vocabulary();
    return vocabulary;
}

byte_string random_gguf(const random_model_options& options) {
    gguf_builder file = start_gguf(options);
    if (options.with_tensors) {
        const auto tensors = tensor_maker(options).make(vocabulary_rows(options));
        add_tensors(file, tensors, 0, tensors.size());
    }
    return file.build();
}

void write_random_gguf(const std::string& path, const random_model_options& options) {
    write_file(path, random_gguf(options));
}

std::string write_random_split_gguf(const std::string& prefix, const random_model_options& options,
                                    std::uint32_t parts) {
    const auto tensors = tensor_maker(options).make(vocabulary_rows(options));
    std::string first;
    for (std::uint32_t part = 0; part < parts; ++part) {
        gguf_builder file;
        if (part == 0) file = start_gguf(options);
        file.version = options.version;
        file.alignment_bytes = options.alignment_bytes;
        file.add_u16("split.no", static_cast<std::uint16_t>(part));
        file.add_u16("split.count", static_cast<std::uint16_t>(parts));
        file.add_i32("split.tensors.count", static_cast<std::int32_t>(tensors.size()));
        add_tensors(file, tensors, tensors.size() * part / parts, tensors.size() * (part + 1) / parts);
        char tail[32];
        std::snprintf(tail, sizeof tail, "-%05u-of-%05u.gguf", part + 1, parts);
        write_file(prefix + tail, file.build());
        if (part == 0) first = prefix + tail;
    }
    return first;
}

void write_random_folder(const std::string& folder, const random_model_options& options) {
    if (traits_of(options.format).quantised) throw std::invalid_argument("safetensors hold F32, F16 or BF16");
    std::filesystem::create_directories(folder);
    write_text_files(folder, options);
    auto tensors = tensor_maker(options).make(vocabulary_rows(options));
    std::erase_if(tensors, [](const named_tensor& tensor) { return tensor.folder_name.empty(); });
    std::vector<safetensors_builder> shards(options.shards);
    json weight_map;
    std::uint64_t bytes = 0;
    const auto shard_name = [&](std::size_t shard) {
        char name[64];
        std::snprintf(name, sizeof name, "model-%05zu-of-%05u.safetensors", shard + 1, options.shards);
        return options.shards == 1 ? std::string("model.safetensors") : std::string(name);
    };
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const std::string name = folder_name_of(tensors[i], options.multimodal);
        const std::size_t shard = i * options.shards / tensors.size();
        std::vector<std::uint64_t> shape;
        if (tensors[i].rows != 0) shape.push_back(tensors[i].rows);
        shape.push_back(tensors[i].columns);
        shards[shard].add(name, std::string(traits_of(tensors[i].type).name), shape, tensors[i].data);
        weight_map[name] = shard_name(shard);
        bytes += tensors[i].data.size();
    }
    if (options.multimodal) {
        shards.back().add("model.visual.patch_embed.proj.weight", "F32", {2, 3, 2, 2}, std::string(96, '\0'));
        weight_map["model.visual.patch_embed.proj.weight"] = shard_name(shards.size() - 1);
    }
    for (std::size_t shard = 0; shard < shards.size(); ++shard)
        write_file(folder + "/" + shard_name(shard), shards[shard].build());
    if (options.shards > 1)
        write_file(folder + "/model.safetensors.index.json",
                   json{{"metadata", {{"total_size", bytes}}}, {"weight_map", weight_map}}.dump(2));
}

}  // namespace fermata::test_support
