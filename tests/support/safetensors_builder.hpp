// Writes safetensors files: right ones, and (with a header of one's own) wrong ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::test_support {

class safetensors_builder {
public:
    void add(std::string_view name, std::string_view type, const std::vector<std::uint64_t>& shape,
             std::string_view data);
    // Header length, header (padded with spaces to a multiple of 8, as the reference library does), data.
    std::string build() const;
    // The same form around any header text and data.
    static std::string assemble(std::string_view header, std::string_view data);

private:
    std::string header_ = R"({"__metadata__":{"format":"pt"})";
    std::string data_;
};

}  // namespace fermata::test_support
