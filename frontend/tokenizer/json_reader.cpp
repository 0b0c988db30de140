// A tokenizer from the files of a Hugging Face folder: tokenizer.json says how text becomes ids, the other files name
// special tokens, add some, and carry the chat template. All of them are untrusted.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "frontend/tokenizer/byte_alphabet.hpp"
#include "frontend/tokenizer/end_markers.hpp"
#include "frontend/tokenizer/json_pipeline.hpp"
#include "frontend/tokenizer/json_place.hpp"
#include "frontend/tokenizer/json_tables.hpp"
#include "frontend/tokenizer/tokenizer_parts.hpp"

namespace fermata::text {

namespace {

using nlohmann::json;

constexpr const char* file_name = "tokenizer.json: ";

// The vocabulary while it is being read: texts by id, then frozen into the parts.
class json_reader {
public:
    explicit json_reader(const tokenizer_files& files)
        : files_(files),
          json_(read_tokenizer_json(files.tokenizer_json)),
          root_(json_.rest, file_name),
          parts_(std::make_unique<tokenizer::parts>()) {}

    std::unique_ptr<tokenizer::parts> read() {
        parts_->kind = "tokenizer.json";
        const json_place model = root_["model"];
        check_model(model);
        read_vocabulary(model["vocab"]);
        read_added_tokens(root_["added_tokens"]);
        read_normalizer(root_["normalizer"], *parts_);
        read_pre_tokenizer(root_["pre_tokenizer"], *parts_);
        check_decoder(root_["decoder"]);
        read_config();
        freeze_tokens();
        build_model(model);
        read_post_processor(root_["post_processor"], [this](const std::string& text) { return id_of(text); }, *parts_);
        apply_config();
        parts_->index_by_bytes();
        return std::move(parts_);
    }

private:
    struct entry {
        std::string text;
        bool in_model = false, added = false;
    };

    void check_model(const json_place& model) const {
        if (model.is_null()) model.fail("there is no model");
        const json_place type = model["type"];
        // Old files state no type; a list of merges is what tells.
        if (!type.is_null() && type.text() != "BPE") {
            type.refuse("tokenizer '" + shown(type.text()) + "' is not supported; only byte-level BPE is");
        }
        if (type.is_null() && !json_.has_merges) model.refuse("it has no merges; only byte-level BPE is supported");
        if (model["byte_fallback"].flag_or(false)) {
            model["byte_fallback"].refuse("tokenizer 'BPE with byte fallback' (SentencePiece) is not supported");
        }
        const json& dropout = model["dropout"].value();
        if (!dropout.is_null() && dropout != 0) model["dropout"].refuse("merging at random is not supported");
    }

    // A Sequence with ByteLevel in it will do: others (Strip, Fuse) would change what was generated.
    static void check_decoder(const json_place& decoder) {
        if (decoder.is_null()) return;
        const std::string type = decoder.type();
        if (type == "ByteLevel") return;
        if (type == "Sequence") {
            const json_place list = decoder["decoders"];
            for (std::size_t i = 0; i < list.items(); ++i) {
                if (list.at(i).type() == "ByteLevel") return;
            }
        }
        decoder.refuse("decoder '" + shown(type) + "' is not supported; only ByteLevel is");
    }

    void read_vocabulary(const json_place& vocab) {
        if (!json_.has_vocabulary) vocab.fail("an object of tokens and their ids is expected");
        const std::size_t count = json_.ids.size();
        if (count == 0) vocab.fail("it is empty");
        // Ids may leave holes, but a table by id must not grow beyond reason.
        id_limit_ = std::min(tokens_max, 4 * count + 65536);
        for (std::size_t i = 0; i < count; ++i) {
            const std::string_view text = json_.texts[i];
            const std::uint64_t id = json_.ids[i];
            const auto fail = [&](const std::string& what) { json_place(json_.rest, vocab.where() + "['" + shown(text) + "']").fail(what); };
            if (id >= id_limit_) fail(std::to_string(id) + " is too large; less than " + std::to_string(id_limit_) + " is expected");
            entry& e = entry_at(static_cast<std::size_t>(id));
            if (e.in_model) fail("the id " + std::to_string(id) + " belongs to '" + shown(e.text) + "' too");
            e = {std::string(text), true, false};
        }
        index_texts();
    }

    entry& entry_at(std::size_t id) {
        if (id >= entries_.size()) entries_.resize(id + 1);
        return entries_[id];
    }

    void index_texts() {
        for (const entry& e : entries_) texts_.append(e.text);
        by_text_.emplace(texts_, entries_.size());
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            if (entries_[i].in_model) by_text_->insert(static_cast<token_id>(i));
        }
    }

    token_id id_in_model(std::string_view text) const { return by_text_->find(text); }
    token_id id_of(const std::string& text) const {
        const auto added = added_ids_.find(text);
        return added != added_ids_.end() ? added->second : id_in_model(text);
    }

    static added_token flags_of(const json_place& from) {
        added_token token;
        token.content = from["content"].text();
        token.special = from["special"].flag_or(false);
        token.normalized = from["normalized"].flag_or(!token.special);
        token.single_word = from["single_word"].flag_or(false);
        token.left_strip = from["lstrip"].flag_or(false);
        token.right_strip = from["rstrip"].flag_or(false);
        return token;
    }

    void read_added_tokens(const json_place& list) {
        if (list.is_null()) return;
        for (std::size_t i = 0; i < list.items(); ++i) {
            const json_place item = list.at(i);
            added_token token = flags_of(item);
            token.id = static_cast<token_id>(item["id"].number_below(id_limit_));
            add(token, item);
        }
    }

    // An added token under an id of the model's vocabulary must be that token. (`tokenizers` would renumber it.)
    void add(const added_token& token, const json_place& from) {
        if (token.content.empty()) return;
        if (added_.size() >= tokens_max) from.fail(too_many("added tokens", added_.size(), tokens_max));
        entry& e = entry_at(static_cast<std::size_t>(token.id));
        if ((e.in_model || e.added) && e.text != token.content) {
            from.fail("the id " + std::to_string(token.id) + " belongs to '" + shown(e.text) + "' too");
        }
        const token_id other = id_of(token.content);
        if (other != no_token && other != token.id) {
            from.fail("'" + shown(token.content) + "' has the id " + std::to_string(other) + " too");
        }
        e.text = token.content;
        e.added = true;
        added_ids_[token.content] = token.id;
        added_.push_back(token);
    }

    // --- The other files. ---

    void read_config() {
        if (!files_.tokenizer_config_json.empty()) {
            config_ = parse_json_file(files_.tokenizer_config_json, "tokenizer_config.json");
        }
        if (!files_.special_tokens_map_json.empty()) {
            special_map_ = parse_json_file(files_.special_tokens_map_json, "special_tokens_map.json");
        }
        const json_place config(config_, "tokenizer_config.json: ");
        if (config_.is_object()) add_listed_tokens(config["added_tokens_decoder"]);
        for (const char* name : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
            const std::string text = special_named(name);
            if (text.empty()) continue;
            if (added_ids_.find(text) != added_ids_.end()) continue;
            const token_id known = id_in_model(text);
            if (known == no_token && entries_.size() >= id_limit_) continue;
            added_token token{known == no_token ? static_cast<token_id>(entries_.size()) : known, text, true, false, false, false, false};
            add(token, config);
        }
    }

    // {"128000": {"content": ..., "special": ...}, ...}: what tokenizer.json lacks is added.
    void add_listed_tokens(const json_place& listed) {
        if (listed.is_null()) return;
        if (!listed.value().is_object()) listed.fail("an object is expected");
        for (const auto& [key, value] : listed.value().items()) {
            const json_place item(value, listed.where() + "['" + shown(key) + "']");
            added_token token = flags_of(item);
            if (added_ids_.find(token.content) != added_ids_.end()) continue;
            const bool digits = !key.empty() && key.size() <= 9 && std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
            if (!digits || std::stoul(key) >= id_limit_) item.fail("a token id below " + std::to_string(id_limit_) + " is expected as the name");
            token.id = static_cast<token_id>(std::stoul(key));
            add(token, item);
        }
    }

    // A special token is written as its text or as {"content": text}.
    std::string special_named(const char* name) const {
        for (const json* file : {&config_, &special_map_}) {
            if (!file->is_object()) continue;
            const auto found = file->find(name);
            if (found == file->end() || found->is_null()) continue;
            const json_place place(*found, std::string(file == &config_ ? "tokenizer_config.json: " : "special_tokens_map.json: ") + name);
            return found->is_object() ? place["content"].text() : place.text();
        }
        return {};
    }

    void freeze_tokens() {
        parts_->flags.assign(entries_.size(), 0);
        in_alphabet_.assign(entries_.size(), false);
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            const entry& e = entries_[i];
            if (e.in_model || e.added) parts_->flags[i] = tokenizer::parts::present;
            const auto bytes = e.in_model ? bytes_from_alphabet(e.text) : std::nullopt;
            in_alphabet_[i] = bytes.has_value();
            parts_->tokens->append(bytes && !e.added ? *bytes : e.text);
        }
        const bool normalizes = !parts_->normal.empty();
        for (added_token& token : added_) {
            if (token.special) parts_->flags[static_cast<std::size_t>(token.id)] |= tokenizer::parts::special;
            if (!token.normalized || !normalizes) {
                (token.normalized ? parts_->added_normalized : parts_->added).add(token);
                continue;
            }
            traced_text content(token.content, false);
            parts_->normal.apply(content);
            token.content = content.bytes;
            parts_->added_normalized.add(token);
        }
    }

    void build_model(const json_place& model) {
        bpe_model::options options;
        options.ignore_merges = model["ignore_merges"].flag_or(false);
        options.continuing_prefix = model["continuing_subword_prefix"].text_or("");
        options.end_suffix = model["end_of_word_suffix"].text_or("");
        options.fuse_unknown = model["fuse_unk"].flag_or(false);
        const json_place unknown = model["unk_token"];
        if (!unknown.is_null()) {
            options.unknown = id_in_model(unknown.text());
            if (options.unknown == no_token) unknown.fail("'" + shown(unknown.text()) + "' is no token");
        }
        parts_->unknown = options.unknown;
        merge_table merges = read_merges(model["merges"], options.continuing_prefix.size());
        token_index by_bytes = index_of_bytes();
        parts_->model.emplace(model_tokens_, std::move(by_bytes), std::move(merges), std::move(options));
    }

    // Tokens that merging can give, by their bytes. An added token's own bytes may be others (it is written as it
    // is), so the model keeps a store of its own.
    token_index index_of_bytes() {
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            model_tokens_->append(in_alphabet_[i] ? *bytes_from_alphabet(entries_[i].text) : std::string());
        }
        token_index index(*model_tokens_, entries_.size());
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            if (in_alphabet_[i] && !entries_[i].text.empty()) index.insert(static_cast<token_id>(i));
        }
        return index;
    }

    merge_table read_merges(const json_place& list, std::size_t prefix_bytes) const {
        if (!json_.has_merges) list.fail("a list is expected");
        const std::size_t count = json_.merges.size() / 2;
        merge_table merges(count);
        std::string joined;
        for (std::size_t i = 0; i < count; ++i) {
            const std::string_view left = json_.merges[2 * i], right = json_.merges[2 * i + 1];
            const auto fail = [&](const std::string& what) { json_place(json_.rest, list.where() + "[" + std::to_string(i) + "]").fail(what); };
            if (right.size() < prefix_bytes) fail("'" + shown(right) + "' lacks the prefix of continued words");
            joined.assign(left).append(right.substr(prefix_bytes));
            const token_id l = id_in_model(left), r = id_in_model(right), result = id_in_model(joined);
            if (l == no_token) fail("'" + shown(left) + "' is no token");
            if (r == no_token) fail("'" + shown(right) + "' is no token");
            if (result == no_token) fail("'" + shown(joined) + "' is no token");
            merges.insert(l, r, {static_cast<std::uint32_t>(i), result});
        }
        return merges;
    }

    void apply_config() {
        const auto named = [this](const char* name) {
            const std::string text = special_named(name);
            return text.empty() ? no_token : id_of(text);
        };
        parts_->bos = named("bos_token");
        parts_->eos = named("eos_token");
        if (const token_id id = named("unk_token"); id != no_token) parts_->unknown = id;
        const json_place config(config_, "tokenizer_config.json: ");
        if (config_.is_object()) {
            apply_added_ends(config);
            read_templates(config["chat_template"]);
        }
        if (!files_.chat_template_jinja.empty()) set_default_template(std::string(files_.chat_template_jinja));
        read_ends();
    }

    // If the configuration says anything of the two, it alone decides what is put around a text.
    void apply_added_ends(const json_place& config) {
        const json_place add_bos = config["add_bos_token"], add_eos = config["add_eos_token"];
        if (add_bos.is_null() && add_eos.is_null()) return;
        parts_->prefix.clear();
        parts_->suffix.clear();
        if (add_bos.flag_or(false) && parts_->bos != no_token) parts_->prefix.push_back(parts_->bos);
        if (add_eos.flag_or(false) && parts_->eos != no_token) parts_->suffix.push_back(parts_->eos);
    }

    // A text, or a list of {"name": ..., "template": ...}.
    void read_templates(const json_place& from) {
        if (from.is_null()) return;
        if (from.value().is_string()) return set_default_template(from.text());
        for (std::size_t i = 0; i < from.items(); ++i) {
            named_template t{from.at(i)["name"].text(), from.at(i)["template"].text()};
            if (t.name == "default") {
                parts_->templates.insert(parts_->templates.begin(), std::move(t));
            } else {
                parts_->templates.push_back(std::move(t));
            }
        }
    }

    void set_default_template(std::string text) {
        std::erase_if(parts_->templates, [](const named_template& t) { return t.name == "default"; });
        parts_->templates.insert(parts_->templates.begin(), {"default", std::move(text)});
    }

    void read_ends() {
        std::vector<token_id> ends{parts_->eos};
        if (!files_.generation_config_json.empty()) {
            const json generation = parse_json_file(files_.generation_config_json, "generation_config.json");
            const json_place root(generation, "generation_config.json: ");
            const json_place eos = root["eos_token_id"];
            if (eos.value().is_array()) {
                for (std::size_t i = 0; i < eos.items(); ++i) ends.push_back(end_at(eos.at(i)));
            } else if (!eos.is_null()) {
                ends.push_back(end_at(eos));
            }
        }
        std::vector<added_name> added;
        for (const added_token& token : added_) added.push_back({token.id, entries_[static_cast<std::size_t>(token.id)].text});
        parts_->set_end_of_generation(ends_of_answer(std::move(ends), added));
    }

    static token_id end_at(const json_place& from) { return static_cast<token_id>(from.number_below(std::uint64_t{1} << 31)); }

    const tokenizer_files& files_;
    tokenizer_json json_;
    json config_, special_map_;
    json_place root_;
    std::unique_ptr<tokenizer::parts> parts_;
    std::size_t id_limit_ = 0;
    std::vector<entry> entries_;
    token_store texts_;
    std::optional<token_index> by_text_;
    std::shared_ptr<token_store> model_tokens_ = std::make_shared<token_store>();
    std::vector<bool> in_alphabet_;
    std::vector<added_token> added_;
    std::map<std::string, token_id, std::less<>> added_ids_;
};

}  // namespace

std::shared_ptr<const tokenizer> tokenizer::from_files(const tokenizer_files& files) {
    return std::make_shared<const tokenizer>(json_reader(files).read());
}

std::shared_ptr<const tokenizer> tokenizer::from_tokenizer_json(std::string_view json) {
    tokenizer_files files;
    files.tokenizer_json = json;
    return from_files(files);
}

}  // namespace fermata::text
