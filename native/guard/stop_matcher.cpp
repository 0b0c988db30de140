// See stop_matcher.hpp.
#include "native/guard/stop_matcher.hpp"

namespace fermata::guard {

stop_matcher::stop_matcher(const std::vector<std::string>& stops) {
    for (const std::string& stop : stops) {
        if (stop.empty()) continue;
        pattern p{stop, std::vector<std::uint32_t>(stop.size() + 1, 0), 0};
        std::uint32_t border = 0;
        for (std::size_t i = 1; i < stop.size(); ++i) {
            while (border > 0 && stop[i] != stop[border]) border = p.fallback[border];
            if (stop[i] == stop[border]) ++border;
            p.fallback[i + 1] = border;
        }
        patterns_.push_back(std::move(p));
    }
}

bool stop_matcher::feed(std::string_view bytes) {
    for (char byte : bytes) {
        bool ended = false;
        for (pattern& p : patterns_) {
            if (p.matched == p.text.size()) p.matched = p.fallback[p.matched];
            while (p.matched > 0 && p.text[p.matched] != byte) p.matched = p.fallback[p.matched];
            if (p.text[p.matched] == byte) ++p.matched;
            ended |= p.matched == p.text.size();
        }
        if (ended) return true;
    }
    return false;
}

}  // namespace fermata::guard
