// A request body that grows with what arrives, never with what a header announces, and can be read without being kept.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/optional.hpp>
#include <string>

namespace fermata::http {

struct bounded_body {
    struct value_type {
        std::string text;
        bool discard = false;
    };

    class reader {
    public:
        template <bool is_request, class Fields>
        reader(boost::beast::http::header<is_request, Fields>&, value_type& value) : value_(value) {}

        void init(const boost::optional<std::uint64_t>&, boost::beast::error_code& error) { error = {}; }
        template <class Buffers>
        std::size_t put(const Buffers& buffers, boost::beast::error_code& error) {
            error = {};
            std::size_t total = 0;
            for (auto it = boost::asio::buffer_sequence_begin(buffers); it != boost::asio::buffer_sequence_end(buffers); ++it) {
                const boost::asio::const_buffer piece(*it);
                if (!value_.discard) value_.text.append(static_cast<const char*>(piece.data()), piece.size());
                total += piece.size();
            }
            return total;
        }
        void finish(boost::beast::error_code& error) { error = {}; }

    private:
        value_type& value_;
    };
};

}  // namespace fermata::http
