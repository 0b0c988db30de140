// Fuzzes the template engine: any bytes as a template, rendered over a small context under tight limits. Errors are fine;
// crashes, sanitiser reports and renderings that don't come back are not.
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string_view>

#include "frontend/jinja/jinja.hpp"

namespace {

namespace jinja = fermata::jinja;

jinja::value const& context() {
  static jinja::value const made = jinja::value::parse_json(R"({
    "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "Grüße 🌍\n"},
                 {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1.5, "b": [true, null]}}}]},
                 {"role": "tool", "content": [{"type": "text", "text": "t"}]}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "add_generation_prompt": true, "bos_token": "<s>", "n": 7, "f": 2.5, "s": "Hello", "l": [3, 1, 2], "d": {"b": 1, "a": 2},
    "big": 123456789012345678901234567890})");
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  jinja::render_options options;
  options.bounds = {.steps_max = 50'000, .output_bytes_max = 1u << 16, .allocated_bytes_max = 4u << 20, .depth_max = 300};
  options.now = [] { return jinja::local_time{}; };
  try {
    auto const program = jinja::program::parse({reinterpret_cast<char const*>(data), size});
    (void)program.render_with_generation_spans(context(), options);
  } catch (jinja::error const&) {
  }
  return 0;
}
