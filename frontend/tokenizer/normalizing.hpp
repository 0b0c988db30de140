// What is done to text before it is split: Unicode normal forms, lower case, replacements. Every step can keep track
// of where each byte came from, so that tokens can be mapped back onto the text as it was given.
// Bytes that are no UTF-8 pass unchanged.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::text {

// A text and, if asked for, where its bytes came from: byte i from [begin[i], end[i]) of the original.
struct traced_text {
    explicit traced_text(std::string_view original, bool trace);

    std::string bytes;
    bool traced;
    std::vector<std::uint32_t> begin, end;
};

// Builds the text that replaces another, piece by piece.
class text_rewriter {
public:
    explicit text_rewriter(const traced_text& from) : from_(from), to_(std::string_view(), from.traced) {}

    void keep(std::size_t begin, std::size_t end);                           // bytes as they are
    void put(std::string_view bytes, std::size_t begin, std::size_t end);    // instead of [begin, end) of the old text
    std::size_t at() const noexcept { return at_; }
    traced_text take() { return std::move(to_); }

private:
    const traced_text& from_;
    traced_text to_;
    std::size_t at_ = 0;
};

class normalizing_step {
public:
    virtual ~normalizing_step() = default;
    virtual void apply(traced_text& text) const = 0;
};

using normalizing_step_pointer = std::shared_ptr<const normalizing_step>;

enum class normal_form { nfc, nfd, nfkc, nfkd };
normalizing_step_pointer normalize_to(normal_form form);
normalizing_step_pointer normalize_lowercase();
normalizing_step_pointer normalize_replace(std::string_view literal, std::string_view with);
normalizing_step_pointer normalize_replace_regex(std::string_view expression, std::string_view with);
normalizing_step_pointer normalize_prepend(std::string_view what);  // nothing to an empty text
normalizing_step_pointer normalize_strip(bool left, bool right);
normalizing_step_pointer normalize_strip_accents();  // drops combining marks

class normalizer {
public:
    normalizer() = default;
    explicit normalizer(std::vector<normalizing_step_pointer> steps) : steps_(std::move(steps)) {}
    bool empty() const noexcept { return steps_.empty(); }
    void apply(traced_text& text) const {
        for (const auto& step : steps_) step->apply(text);
    }

private:
    std::vector<normalizing_step_pointer> steps_;
};

}  // namespace fermata::text
