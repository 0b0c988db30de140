// printf-style formatting ("%s" % x) and the format mini-language of str.format.
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <optional>

#include "frontend/jinja/numbers.hpp"
#include "frontend/jinja/objects.hpp"
#include "frontend/jinja/operations.hpp"
#include "frontend/jinja/text.hpp"

namespace fermata::jinja {
namespace {

// Widths and precisions beyond this are refused before anything is made of them.
constexpr std::int64_t width_max = 1 << 20;

std::string ascii_only(std::string_view s) {
  std::string out;
  for (std::size_t at = 0; at < s.size();) {
    char32_t const c = text::decode(s, at);
    if (c < 0x80) {
      out.push_back(static_cast<char>(c));
      continue;
    }
    char digits[16];
    std::snprintf(digits, sizeof digits, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", static_cast<unsigned>(c));
    out += digits;
  }
  return out;
}

std::string represented(runtime& rt, value const& v) {
  std::string out;
  append_repr(rt, out, v);
  return out;
}

std::string real_digits(runtime& rt, double d, char type, std::int64_t precision, bool alternate) {
  rt.allocate(static_cast<std::size_t>(precision) + 400);
  std::string format = alternate ? "%#.*" : "%.*";
  format += type;
  std::string out(static_cast<std::size_t>(precision) + 400, '\0');
  auto const n = std::snprintf(out.data(), out.size(), format.c_str(), static_cast<int>(precision), std::fabs(d));
  out.resize(static_cast<std::size_t>(std::max(n, 0)));
  return out;
}

std::string padded(runtime& rt, std::string body, std::int64_t width, char align, std::string_view fill) {
  auto const have = static_cast<std::int64_t>(text::count(body));
  if (width <= have) return body;
  if (width > width_max) fail(error_kind::limit, "format width is larger than " + std::to_string(width_max));
  auto const missing = static_cast<std::size_t>(width - have);
  std::size_t const left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  rt.allocate(missing * fill.size());
  std::string out;
  for (std::size_t i = 0; i < left; ++i) out += fill;
  out += body;
  for (std::size_t i = left; i < missing; ++i) out += fill;
  return out;
}

double number_argument(value const& v) {
  if (v.is_undefined()) refuse_undefined(v);
  if (!is_number(v)) fail(std::string{"float format: a number is required, not "} + type_name(v));
  return to_real(v);
}

// ---- "%..." % values

class percent_formatter {
 public:
  percent_formatter(runtime& rt, value const& format, value const& right)
      : rt_{rt}, format_{format.text()}, markup_{format.is_markup()}, right_{right}, tuple_{right.type() == kind::tuple} {
    mapping_like_ = right.type() == kind::list || right.is_dict() || right.is_undefined() ||
                    (right.is_object() && right.as_object().has_elements());
  }

  std::string run() {
    std::string out;
    while (at_ < format_.size()) {
      std::size_t const percent = std::min(format_.find('%', at_), format_.size());
      out.append(format_, at_, percent - at_);
      rt_.allocate(percent - at_);
      at_ = percent;
      if (at_ < format_.size()) out += directive();
    }
    if (!mapping_like_ && next_ < (tuple_ ? right_.items().size() : 1)) fail("not all arguments converted during string formatting");
    return out;
  }

 private:
  char get() {
    if (at_ >= format_.size()) fail("incomplete format");
    return format_[at_++];
  }
  char peek() const noexcept { return at_ < format_.size() ? format_[at_] : '\0'; }

  value next_argument() {
    if (tuple_ && next_ < right_.items().size()) return right_.items()[next_++];
    if (!tuple_ && next_ == 0) {
      ++next_;
      return right_;
    }
    fail("not enough arguments for format string");
  }

  value keyed_argument() {
    std::size_t const from = at_;
    int open = 1;
    while (open > 0) {
      char const c = get();
      open += c == '(' ? 1 : c == ')' ? -1 : 0;
    }
    if (!mapping_like_) fail("format requires a mapping");
    std::string const key = format_.substr(from, at_ - from - 1);
    if (!right_.is_dict()) fail("format key '" + key + "' needs a dict");
    auto const* found = right_.find(key);
    if (!found) fail("format key '" + key + "' is missing");
    return *found;
  }

  std::int64_t number() {
    if (peek() == '*') {
      ++at_;
      value const v = next_argument();
      if (!v.is_integral()) fail("* wants int");
      if (std::abs(v.integer()) > width_max) fail(error_kind::limit, "format width is too large");
      return v.integer();
    }
    std::int64_t n = 0;
    while (peek() >= '0' && peek() <= '9') {
      n = n * 10 + (get() - '0');
      if (n > width_max) fail(error_kind::limit, "format width is larger than " + std::to_string(width_max));
    }
    return n;
  }

  std::string directive() {
    ++at_;
    if (peek() == '%') {
      ++at_;
      return "%";
    }
    std::optional<value> keyed;
    if (peek() == '(') {
      ++at_;
      keyed = keyed_argument();
    }
    left_ = plus_ = blank_ = alternate_ = zero_ = false;
    for (bool more = true; more;) {
      switch (peek()) {
        case '-': left_ = true; break;
        case '+': plus_ = true; break;
        case ' ': blank_ = true; break;
        case '#': alternate_ = true; break;
        case '0': zero_ = true; break;
        default: more = false;
      }
      if (more) ++at_;
    }
    width_ = number();
    if (width_ < 0) {
      left_ = true;
      width_ = -width_;
    }
    precision_ = -1;
    if (peek() == '.') {
      ++at_;
      precision_ = std::max<std::int64_t>(number(), 0);
    }
    if (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    char const type = get();
    value const v = keyed ? *keyed : next_argument();
    return convert(type, v);
  }

  std::string convert(char type, value const& v) {
    switch (type) {
      case 's':
      case 'r':
      case 'a': {
        std::string s = type == 's' ? to_text(rt_, v) : represented(rt_, v);
        if (type == 'a') s = ascii_only(s);
        if (markup_ && !(type == 's' && v.is_markup())) s = escape_text(s);
        if (precision_ >= 0) s = s.substr(0, text::offset(s, static_cast<std::size_t>(precision_)));
        rt_.allocate(s.size());
        return padded(rt_, std::move(s), width_, left_ ? '<' : '>', " ");
      }
      case 'c': return padded(rt_, character(v), width_, left_ ? '<' : '>', " ");
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X': return integer(type, v);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': return real(type, number_argument(v));
      default: fail(std::string{"unsupported format character '"} + type + "'");
    }
  }

  static std::string character(value const& v) {
    if (v.is_string()) {
      if (v.string().length() != 1) fail("%c requires int or char");
      return v.text();
    }
    auto const c = to_index(v, "%c");
    if (c < 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) fail("%c argument is no character");
    std::string s;
    text::append(s, static_cast<char32_t>(c));
    return s;
  }

  std::string integer(char type, value v) {
    bool const decimal = type == 'd' || type == 'i' || type == 'u';
    if (v.is_undefined()) refuse_undefined(v);
    if (decimal && v.type() == kind::real) v = integer_from_real(v.real());
    if (!is_integer(v))
      fail(std::string{"%"} + type + " format: " + (decimal ? "a real number" : "an integer") + " is required, not " + type_name(v));
    unsigned const base = type == 'o' ? 8 : type == 'x' || type == 'X' ? 16 : 10;
    std::string digits = integer_digits(v, base, type == 'X');
    if (static_cast<std::int64_t>(digits.size()) < precision_)
      digits.insert(0, std::string(static_cast<std::size_t>(precision_) - digits.size(), '0'));
    std::string prefix;
    if (alternate_ && base == 8) prefix = "0o";
    if (alternate_ && base == 16) prefix = type == 'X' ? "0X" : "0x";
    return signed_padded(is_negative(v), prefix, std::move(digits));
  }

  std::string real(char type, double d) {
    return signed_padded(std::signbit(d) && !std::isnan(d), "", real_digits(rt_, d, type, precision_ < 0 ? 6 : precision_, alternate_));
  }

  std::string signed_padded(bool minus, std::string const& prefix, std::string digits) {
    std::string const head = (minus ? "-" : plus_ ? "+" : blank_ ? " " : "") + prefix;
    if (zero_ && !left_ && width_ > static_cast<std::int64_t>(head.size()))
      digits = padded(rt_, std::move(digits), width_ - static_cast<std::int64_t>(head.size()), '>', "0");
    return padded(rt_, head + digits, width_, left_ ? '<' : '>', " ");
  }

  runtime& rt_;
  std::string const& format_;
  bool markup_;
  value const& right_;
  bool tuple_;
  bool mapping_like_ = false;
  std::size_t at_ = 0;
  std::size_t next_ = 0;
  bool left_ = false, plus_ = false, blank_ = false, alternate_ = false, zero_ = false;
  std::int64_t width_ = 0, precision_ = -1;
};

// ---- format specifications: [[fill]align][sign][#][0][width][grouping][.precision][type]

struct format_spec {
  std::string fill = " ";
  char align = '\0';
  char sign = '-';
  bool alternate = false;
  std::int64_t width = 0;
  char grouping = '\0';
  std::int64_t precision = -1;
  char type = '\0';
};

bool is_align(char c) noexcept { return c == '<' || c == '>' || c == '=' || c == '^'; }

format_spec parse_spec(std::string_view s, bool numeric) {
  format_spec spec;
  std::size_t at = 0;
  auto const peek = [&] { return at < s.size() ? s[at] : '\0'; };
  auto const number = [&] {
    std::int64_t n = 0;
    while (peek() >= '0' && peek() <= '9') {
      n = n * 10 + (s[at++] - '0');
      if (n > width_max) fail(error_kind::limit, "format width is larger than " + std::to_string(width_max));
    }
    return n;
  };
  std::size_t const first = s.empty() ? 0 : text::width(s[0]);
  bool fill_given = false, sign_given = false;
  if (first > 0 && first < s.size() && is_align(s[first])) {
    spec.fill = std::string{s.substr(0, first)};
    spec.align = s[first];
    fill_given = true;
    at = first + 1;
  } else if (is_align(peek())) {
    spec.align = s[at++];
  }
  if (peek() == '+' || peek() == '-' || peek() == ' ') {
    spec.sign = s[at++];
    sign_given = true;
  }
  if (peek() == '#') {
    spec.alternate = true;
    ++at;
  }
  if (!fill_given && peek() == '0') {
    ++at;
    spec.fill = "0";
    if (!spec.align && numeric) spec.align = '=';
  }
  spec.width = number();
  if (peek() == ',' || peek() == '_') spec.grouping = s[at++];
  if (peek() == ',' || peek() == '_') fail("cannot specify two groupings in a format");
  if (peek() == '.') {
    ++at;
    if (!(peek() >= '0' && peek() <= '9')) fail("format specifier misses its precision");
    spec.precision = number();
  }
  if (at < s.size()) spec.type = s[at++];
  if (at < s.size()) fail("invalid format specifier '" + std::string{s} + "'");
  if (!numeric) {
    if (sign_given) fail("sign not allowed in string format specifier");
    if (spec.alternate) fail("alternate form (#) not allowed in string format specifier");
    if (spec.align == '=') fail("'=' alignment not allowed in string format specifier");
    if (spec.grouping) fail("cannot specify a grouping with 's'");
  }
  return spec;
}

std::string grouped(std::string const& digits, char separator, std::size_t every) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % every == 0) out += separator;
    out += digits[i];
  }
  return out;
}

// Sign, prefix, digits (with the separators of the whole part) and padding together.
std::string assembled(runtime& rt, format_spec const& spec, bool minus, std::string const& prefix, std::string digits, bool finite,
                      std::size_t group_every) {
  std::size_t const whole = finite ? std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size()) : 0;
  std::size_t const end = prefix.empty() && finite ? std::min(digits.find_first_not_of("0123456789"), digits.size()) : whole;
  std::size_t const split = group_every == 4 ? whole : end;
  std::string head = (minus ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "") + prefix;
  std::string integral = digits.substr(0, split), rest = digits.substr(split);
  bool const zeros = spec.align == '=' && spec.fill == "0";
  if (zeros && spec.grouping && finite) {
    // Zeros in front take part in the grouping, which may make the result one wider than asked for.
    auto const room = spec.width - static_cast<std::int64_t>(head.size() + rest.size());
    rt.allocate(static_cast<std::size_t>(std::max<std::int64_t>(room, 0)));
    while (static_cast<std::int64_t>(grouped(integral, spec.grouping, group_every).size()) < room && static_cast<std::int64_t>(integral.size()) < room) {
      auto const now = static_cast<std::int64_t>(grouped(integral, spec.grouping, group_every).size());
      auto const more = std::max<std::int64_t>((room - now) * 3 / 4, 1);
      integral.insert(0, static_cast<std::size_t>(more), '0');
    }
  }
  if (spec.grouping && finite) integral = grouped(integral, spec.grouping, group_every);
  std::string body = integral + rest;
  if (spec.align == '=') {
    auto const width = spec.width - static_cast<std::int64_t>(head.size());
    return head + padded(rt, std::move(body), width, '>', spec.fill);
  }
  return padded(rt, head + body, spec.width, spec.align ? spec.align : '>', spec.fill);
}

std::string format_real(runtime& rt, double d, format_spec const& spec) {
  bool const minus = std::signbit(d) && !std::isnan(d);
  bool const finite = std::isfinite(d);
  std::string digits;
  char type = spec.type;
  if (type == 'n') type = 'g';
  if (type == '\0' && spec.precision < 0) {
    digits = real_to_text(std::fabs(d));
  } else if (type == '\0') {
    // As 'g', but with an exponent one digit earlier and always a digit behind the point.
    auto const precision = std::max<std::int64_t>(spec.precision, 1);
    digits = real_digits(rt, d, 'g', precision, false);
    if (finite && digits.find('e') == std::string::npos && digits.find('.') == std::string::npos) {
      if (static_cast<std::int64_t>(digits.size()) >= precision && digits != "0") {
        digits = real_digits(rt, d, 'e', precision - 1, false);
        auto const e = digits.find('e');
        auto mantissa = digits.substr(0, e);
        if (mantissa.find('.') != std::string::npos) {
          while (mantissa.back() == '0') mantissa.pop_back();
          if (mantissa.back() == '.') mantissa.pop_back();
        }
        digits = mantissa + digits.substr(e);
      } else {
        digits += ".0";
      }
    }
  } else if (type == '%') {
    digits = real_digits(rt, d * 100, 'f', spec.precision < 0 ? 6 : spec.precision, spec.alternate) + "%";
  } else if (std::string_view{"eEfFgG"}.find(type) != std::string_view::npos) {
    digits = real_digits(rt, d, type, spec.precision < 0 ? 6 : spec.precision, spec.alternate);
  } else {
    fail(std::string{"unknown format code '"} + type + "' for object of type 'float'");
  }
  return assembled(rt, spec, minus, "", std::move(digits), finite, 3);
}

std::string format_integer(runtime& rt, value const& v, format_spec const& spec) {
  if (spec.type && std::string_view{"eEfFgG%"}.find(spec.type) != std::string_view::npos) return format_real(rt, to_real(v), spec);
  if (spec.precision >= 0) fail("precision not allowed in integer format specifier");
  if (spec.type == 'c') {
    auto const i = to_index(v, "%c argument");
    if (i < 0 || i > 0x10ffff || (i >= 0xd800 && i < 0xe000)) fail("%c argument is no character");
    std::string s;
    text::append(s, static_cast<char32_t>(i));
    return padded(rt, std::move(s), spec.width, spec.align ? spec.align : '<', spec.fill);
  }
  unsigned base = 10;
  std::string prefix;
  switch (spec.type) {
    case '\0':
    case 'd':
    case 'n': break;
    case 'b': base = 2, prefix = "0b"; break;
    case 'o': base = 8, prefix = "0o"; break;
    case 'x': base = 16, prefix = "0x"; break;
    case 'X': base = 16, prefix = "0X"; break;
    default: fail(std::string{"unknown format code '"} + spec.type + "' for object of type 'int'");
  }
  if (spec.grouping == ',' && base != 10) fail("cannot specify ',' with this format code");
  return assembled(rt, spec, is_negative(v), spec.alternate ? prefix : "", integer_digits(v, base, spec.type == 'X'), true, base == 10 ? 3 : 4);
}

}  // namespace

// format(v, spec)
std::string format_value(runtime& rt, value const& v, std::string_view spec_text) {
  if (spec_text.empty()) return to_text(rt, v);
  switch (v.type()) {
    case kind::boolean:
    case kind::integer: return format_integer(rt, v, parse_spec(spec_text, true));
    case kind::real: return format_real(rt, v.real(), parse_spec(spec_text, true));
    case kind::string: {
      auto const spec = parse_spec(spec_text, false);
      if (spec.type && spec.type != 's') fail(std::string{"unknown format code '"} + spec.type + "' for object of type 'str'");
      std::string s = v.text();
      if (spec.precision >= 0) s = s.substr(0, text::offset(s, static_cast<std::size_t>(spec.precision)));
      return padded(rt, std::move(s), spec.width, spec.align ? spec.align : '<', spec.fill);
    }
    default:
      if (is_integer(v)) return format_integer(rt, v, parse_spec(spec_text, true));
      fail(std::string{"unsupported format string passed to "} + type_name(v) + ".__format__");
  }
}

value percent_format(runtime& rt, value const& format, value const& right) {
  std::string out = percent_formatter{rt, format, right}.run();
  return format.is_markup() ? value::markup(std::move(out)) : value{std::move(out)};
}

namespace {

// ---- str.format

class brace_formatter {
 public:
  brace_formatter(runtime& rt, arguments const& args, bool markup) : rt_{rt}, args_{args}, markup_{markup} {}

  std::string run(std::string_view s, int depth) {
    if (depth < 0) fail("max string recursion exceeded");
    std::string out;
    for (std::size_t at = 0; at < s.size();) {
      char const c = s[at];
      if (c != '{' && c != '}') {
        std::size_t const next = std::min(s.find_first_of("{}", at), s.size());
        rt_.allocate(next - at);
        out.append(s, at, next - at);
        at = next;
      } else if (at + 1 < s.size() && s[at + 1] == c) {
        out += c;
        at += 2;
      } else if (c == '}') {
        fail("single '}' encountered in format string");
      } else {
        out += field(s, at, depth);
      }
    }
    return out;
  }

 private:
  // {name!conversion:spec} at `at`, which moves behind it.
  std::string field(std::string_view s, std::size_t& at, int depth) {
    std::size_t const from = ++at;
    std::size_t open = 1;
    bool in_brackets = false;
    std::size_t name_end = std::string_view::npos;
    for (; at < s.size() && open > 0; ++at) {
      char const c = s[at];
      if (c == '{') ++open;
      if (c == '}') --open;
      if (name_end != std::string_view::npos) continue;
      if (c == '[') in_brackets = true;
      if (c == ']') in_brackets = false;
      if (!in_brackets && (c == '!' || c == ':')) name_end = at;
    }
    if (open > 0) fail(from >= s.size() ? "single '{' encountered in format string" : "expected '}' before end of string");
    std::size_t const end = at - 1;
    if (name_end == std::string_view::npos || name_end > end) name_end = end;
    std::string_view const name = s.substr(from, name_end - from);
    if (name.find('{') != std::string_view::npos) fail("unexpected '{' in field name");
    char conversion = '\0';
    std::size_t rest = name_end;
    if (rest < end && s[rest] == '!') {
      if (rest + 1 >= end) fail("end of string while looking for conversion specifier");
      conversion = s[rest + 1];
      rest += 2;
      if (rest < end && s[rest] != ':') fail("expected ':' after conversion specifier");
    }
    value v = lookup(name);
    if (conversion == 's') v = value{to_text(rt_, v)};
    else if (conversion == 'r') v = value{represented(rt_, v)};
    else if (conversion == 'a') v = value{ascii_only(represented(rt_, v))};
    else if (conversion) fail(std::string{"unknown conversion specifier '"} + conversion + "'");
    std::string const spec = rest < end ? run(s.substr(rest + 1, end - rest - 1), depth - 1) : std::string{};
    std::string formatted = format_value(rt_, v, spec);
    rt_.allocate(formatted.size());
    return markup_ && !v.is_markup() ? escape_text(formatted) : formatted;
  }

  value lookup(std::string_view name) {
    std::size_t const end = std::min(name.find_first_of(".["), name.size());
    value v = first(name.substr(0, end), name.empty(), end == name.size());
    std::size_t at = end;
    while (at < name.size()) {
      if (name[at] == '.') {
        std::size_t const stop = std::min(name.find_first_of(".[", at + 1), name.size());
        if (stop == at + 1) fail("empty attribute in format string");
        v = get_attribute(rt_, v, value{name.substr(at + 1, stop - at - 1)});
        at = stop;
      } else if (name[at] == '[') {
        std::size_t const close = name.find(']', at);
        if (close == std::string_view::npos) fail("missing ']' in format string");
        if (close == at + 1) fail("empty attribute in format string");
        std::string_view const index = name.substr(at + 1, close - at - 1);
        value const number = integer_from_digits(index);
        v = get_item(rt_, v, number.is_missing() ? value{index} : number);
        at = close + 1;
      } else {
        fail("only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return v;
  }

  static value integer_from_digits(std::string_view s) {
    if (s.empty() || s.find_first_not_of("0123456789") != std::string_view::npos) return value::missing();
    return integer_from_text(s, 10);
  }

  // string.Formatter counts fields by itself only where the whole field name is empty, and notices explicit numbers only
  // where they are the whole name.
  value first(std::string_view name, bool automatic, bool whole) {
    value index = integer_from_digits(name);
    if (automatic) {
      if (numbering_ == numbering::manual) fail("cannot switch from manual field specification to automatic field numbering");
      numbering_ = numbering::automatic;
      index = value{next_++};
    } else if (whole && !index.is_missing()) {
      if (numbering_ == numbering::automatic) fail("cannot switch from manual field specification to automatic field numbering");
      numbering_ = numbering::manual;
    }
    if (!index.is_missing()) {
      if (index.integer() >= static_cast<std::int64_t>(args_.positional.size()))
        fail("replacement index " + std::to_string(index.integer()) + " out of range for positional arguments");
      return args_.positional[static_cast<std::size_t>(index.integer())];
    }
    for (auto const& [known, v] : args_.named)
      if (known == name) return v;
    fail("format field '" + std::string{name} + "' is missing");
  }

  enum class numbering { open, automatic, manual };
  runtime& rt_;
  arguments const& args_;
  bool markup_;
  numbering numbering_ = numbering::open;
  std::int64_t next_ = 0;
};

}  // namespace

value brace_format(runtime& rt, value const& format, arguments& args) {
  std::string out = brace_formatter{rt, args, format.is_markup()}.run(format.text(), 2);
  return format.is_markup() ? value::markup(std::move(out)) : value{std::move(out)};
}

}  // namespace fermata::jinja
