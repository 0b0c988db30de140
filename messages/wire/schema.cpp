// Text form of all field lists, and its hash.
#include "messages/wire/schema.hpp"

#include "messages/wire/reflect.hpp"

namespace fermata::wire {
namespace {

template <class T>
std::string type_text() {
    if constexpr (std::same_as<T, bool>) {
        return "bool";
    } else if constexpr (plain_integer<T>) {
        return (std::is_signed_v<T> ? "i" : "u") + std::to_string(8 * sizeof(T));
    } else if constexpr (std::floating_point<T>) {
        return "f" + std::to_string(8 * sizeof(T));
    } else if constexpr (std::same_as<T, std::string>) {
        return "bytes";
    } else if constexpr (std::same_as<T, token_run>) {
        return "run";
    } else if constexpr (strong<T>) {
        return std::string(id_name<T>()) + "/" + type_text<typename T::rep>();
    } else if constexpr (enumeration<T>) {
        std::string text = "(";
        for (auto name : enum_names<T>) text.append(name).append("|");
        return text + ")";
    } else if constexpr (vector_of<T>) {
        return "[" + type_text<typename T::value_type>() + "]";
    } else if constexpr (optional_of<T>) {
        return type_text<typename T::value_type>() + "?";
    } else if constexpr (shared_const<T>) {
        return type_text<typename is_shared<T>::element>() + "*";
    } else {
        static_assert(message<T>, "no adapter knows this kind of member");
        return std::string(T::type_name);
    }
}

template <class List>
void append(std::string& text, List list) {
    for_each_type(list, [&]<class T>(std::type_identity<T>) {
        static_assert(check_field_list<T> != nullptr);
        text.append(T::type_name).append("{");
        for_each_field<T>([&]<class S, class M>(const field_descriptor<S, M>& each) {
            text.append(each.name).append(":").append(type_text<M>()).append(",");
        });
        text.append("}\n");
    });
}

}  // namespace

const std::string& schema_text() {
    static const std::string text = [] {
        std::string all;
        append(all, message_parts{});
        append(all, bus_messages{});
        return all;
    }();
    return text;
}

std::uint64_t schema_hash() {
    static const std::uint64_t hash = [] {
        std::uint64_t h = 0xcbf29ce484222325u;
        for (char c : schema_text()) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
        return h;
    }();
    return hash;
}

}  // namespace fermata::wire
