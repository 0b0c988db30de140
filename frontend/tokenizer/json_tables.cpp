#include "frontend/tokenizer/json_tables.hpp"

#include <algorithm>

#include "frontend/tokenizer/json_place.hpp"
#include "frontend/tokenizer/reading.hpp"

namespace fermata::text {

namespace {

using nlohmann::json;

class table_builder final : public json::json_sax_t {
public:
    explicit table_builder(tokenizer_json& out) : out_(out) {}

    std::size_t error_byte = 0;

    bool null() override { return value(nullptr, "null"); }
    bool boolean(bool v) override { return value(v, "true or false"); }
    bool number_integer(number_integer_t v) override { return value(v, "a negative number"); }
    bool number_float(number_float_t v, const string_t&) override { return value(v, "a number with a fraction"); }
    bool binary(binary_t&) override { return false; }

    bool number_unsigned(number_unsigned_t v) override {
        if (in_ != table::vocabulary) return value(v, "a number");
        if (out_.ids.size() == tokens_max) fail_vocabulary(too_many("tokens", out_.ids.size() + 1, tokens_max));
        out_.texts.append(key_);
        out_.ids.push_back(v);
        return true;
    }

    bool string(string_t& v) override {
        if (in_ == table::merges) return merge_line(v);
        if (in_ == table::merge_pair) return merge_half(v);
        return value(std::move(v), "a string");
    }

    bool key(string_t& v) override {
        key_ = std::move(v);
        return true;
    }

    bool start_object(std::size_t) override {
        if (in_ == table::none && at_model("vocab")) {
            in_ = table::vocabulary;
            out_.has_vocabulary = true;
            return true;
        }
        return open(json::object(), "an object");
    }

    bool start_array(std::size_t) override {
        if (in_ == table::none && at_model("merges")) {
            in_ = table::merges;
            out_.has_merges = true;
            return true;
        }
        if (in_ == table::merges) {
            in_ = table::merge_pair;
            halves_ = 0;
            return true;
        }
        return open(json::array(), "a list");
    }

    bool end_object() override {
        if (in_ == table::vocabulary) {
            in_ = table::none;
        } else {
            open_.pop_back();
        }
        return true;
    }

    bool end_array() override {
        if (in_ == table::merge_pair) {
            if (halves_ != 2) fail_merge();
            halves_ = 0;
            in_ = table::merges;
        } else if (in_ == table::merges) {
            in_ = table::none;
        } else {
            open_.pop_back();
        }
        return true;
    }

    bool parse_error(std::size_t byte, const std::string&, const json::exception&) override {
        error_byte = byte;
        return false;
    }

private:
    enum class table { none, vocabulary, merges, merge_pair };

    // Whether the value to come is model.<name>.
    bool at_model(std::string_view name) const {
        return open_.size() == 2 && model_is_open_ && open_.back()->is_object() && key_ == name;
    }

    [[noreturn]] void fail_vocabulary(const std::string& what) const {
        throw tokenizer_error("tokenizer.json: model.vocab['" + shown(key_) + "']: " + what);
    }

    [[noreturn]] void fail_merge() const {
        const std::size_t of_this = static_cast<std::size_t>(std::min(halves_, 2));
        throw tokenizer_error("tokenizer.json: model.merges[" + std::to_string((out_.merges.size() - of_this) / 2) +
                              "]: two tokens are expected, as a list or with a space between");
    }

    bool merge_line(std::string_view line) {
        const auto space = line.find(' ');
        if (space == line.npos || line.find(' ', space + 1) != line.npos) fail_merge();
        check_merges();
        out_.merges.append(line.substr(0, space));
        out_.merges.append(line.substr(space + 1));
        return true;
    }

    bool merge_half(std::string_view half) {
        if (++halves_ > 2) fail_merge();
        if (halves_ == 1) check_merges();
        out_.merges.append(half);
        return true;
    }

    void check_merges() const {
        if (out_.merges.size() < 2 * merges_max) return;
        throw tokenizer_error("tokenizer.json: model.merges: " + too_many("merges", merges_max + 1, merges_max));
    }

    // A value that is no table: into the object or list that is open.
    json* place(json&& v) {
        if (open_.empty()) {
            out_.rest = std::move(v);
            return &out_.rest;
        }
        json& parent = *open_.back();
        if (parent.is_array()) {
            parent.push_back(std::move(v));
            return &parent.back();
        }
        json& member = parent[key_];
        member = std::move(v);
        return &member;
    }

    bool value(json&& v, const char* what) {
        if (in_ == table::vocabulary) fail_vocabulary(std::string("a whole number of at least 0 is expected, not ") + what);
        if (in_ != table::none) fail_merge();
        place(std::move(v));
        return true;
    }

    bool open(json&& v, const char* what) {
        if (in_ == table::vocabulary) fail_vocabulary(std::string("a whole number of at least 0 is expected, not ") + what);
        if (in_ != table::none) fail_merge();
        if (open_.size() == json_depth_max) {
            throw tokenizer_error("tokenizer.json: more than " + std::to_string(json_depth_max) + " levels deep");
        }
        if (open_.size() == 1) model_is_open_ = key_ == "model";
        open_.push_back(place(std::move(v)));
        return true;
    }

    tokenizer_json& out_;
    std::vector<json*> open_;  // lists and objects around the next value; none moves while it is open
    string_t key_;
    table in_ = table::none;
    bool model_is_open_ = false;
    int halves_ = 0;
};

}  // namespace

tokenizer_json read_tokenizer_json(std::string_view text) {
    if (text.size() > token_bytes_max) throw tokenizer_error("tokenizer.json: " + too_many("bytes", text.size(), token_bytes_max));
    tokenizer_json out;
    table_builder builder(out);
    if (!json::sax_parse(text.begin(), text.end(), &builder)) {
        throw tokenizer_error("tokenizer.json: " + json_position(text, builder.error_byte) + ": this is not valid JSON");
    }
    return out;
}

}  // namespace fermata::text
