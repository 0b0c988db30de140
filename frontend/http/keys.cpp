#include "frontend/http/keys.hpp"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cctype>
#include <fstream>
#include <stdexcept>

#include "frontend/http/options.hpp"

namespace fermata::http {
namespace {

bool same_secret(std::string_view key, std::string_view presented) {
    std::size_t difference = key.size() ^ presented.size();
    for (std::size_t i = 0; i < presented.size(); ++i) {
        const auto k = static_cast<unsigned char>(key.empty() ? '\0' : key[i % key.size()]);
        difference |= static_cast<std::size_t>(k ^ static_cast<unsigned char>(presented[i]));
    }
    return difference == 0;
}

}  // namespace

bool is_one_of(const std::vector<std::string>& keys, std::string_view presented) {
    bool found = false;
    for (const auto& key : keys) found |= same_secret(key, presented);  // no early exit
    return found;
}

std::string_view presented_key(std::string_view authorization, std::string_view x_api_key) {
    constexpr std::string_view scheme = "bearer ";
    if (authorization.size() > scheme.size() &&
        std::equal(scheme.begin(), scheme.end(), authorization.begin(),
                   [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); })) {
        authorization.remove_prefix(scheme.size());
        const auto start = authorization.find_first_not_of(' ');
        return start == std::string_view::npos ? std::string_view{} : authorization.substr(start);
    }
    return x_api_key;
}

std::vector<std::string> read_api_keys(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("can't read the API key file " + path);
    std::vector<std::string> keys;
    for (std::string line; std::getline(file, line);) {
        const auto first = line.find_first_not_of(" \t\r");
        if (first == std::string::npos || line[first] == '#') continue;
        keys.push_back(line.substr(first, line.find_last_not_of(" \t\r") - first + 1));
        if (keys.size() > 10'000) throw std::runtime_error("the API key file " + path + " has more than 10000 keys");
    }
    if (keys.empty()) throw std::runtime_error("the API key file " + path + " holds no key (one a line)");
    return keys;
}

bool is_loopback(const std::string& host) {
    if (host == "localhost") return true;
    boost::system::error_code error;
    const auto address = boost::asio::ip::make_address(host, error);
    return !error && address.is_loopback();
}

}  // namespace fermata::http
