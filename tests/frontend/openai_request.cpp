// Bodies of the OpenAI routes: what they come to, and which field a wrong one is blamed on.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "frontend/openai/request.hpp"

using namespace fermata;
using namespace fermata::openai;
using json = nlohmann::ordered_json;

namespace {

model_facts const model{"tiny", 1000};
request_limits const limits;

generation_request chat(std::string const& fields) {
    return parse_chat(R"({"messages":[{"role":"user","content":"hi"}])" + (fields.empty() ? "" : "," + fields) + "}", model, limits);
}
generation_request completion(std::string const& fields) {
    return parse_completion(R"({"prompt":"hi")" + (fields.empty() ? "" : "," + fields) + "}", model, limits);
}
std::string messages(std::string const& list) { return parse_chat(R"({"messages":)" + list + "}", model, limits).parts[0].messages_json; }

template <class Parse>
client_error refused(Parse parse) {
    try {
        parse();
    } catch (request_error const& e) {
        return e.error();
    }
    return {};
}

}  // namespace

TEST_CASE("absence, null and defaults mean the same") {
    auto const plain = chat("").parts[0];
    CHECK(plain.kind == prompt_kind::chat);
    CHECK(plain.sampling == sampling_params{});
    CHECK(plain.n == 1);
    CHECK_FALSE(plain.max_tokens);
    CHECK_FALSE(plain.seed_given);
    for (std::string const name :
         {"n", "stop", "max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "frequency_penalty",
          "presence_penalty", "repetition_penalty", "logit_bias", "logprobs", "top_logprobs", "stream", "stream_options", "tools",
          "tool_choice", "response_format", "model", "user", "metadata", "functions", "audio", "modalities", "fermata", "ignore_eos",
          "stop_token_ids", "min_tokens", "parallel_tool_calls", "store", "prediction", "chat_template_kwargs", "reasoning_effort"}) {
        CAPTURE(name);
        auto const p = chat('"' + name + "\":null").parts[0];
        CHECK(p.sampling == plain.sampling);
        CHECK_FALSE(p.max_tokens);
        CHECK(p.template_arguments_json.empty());
    }
    // What gateways write out in full.
    auto const spelled = chat(R"("n":1,"temperature":1.0,"top_p":1.0,"top_k":-1,"min_p":0,"repetition_penalty":1.0,"frequency_penalty":0,
        "presence_penalty":0,"logprobs":false,"stream":false,"stop":[],"logit_bias":{},"tools":[],"tool_choice":"auto",
        "response_format":{"type":"text"},"modalities":["text"],"parallel_tool_calls":true,"store":false,"service_tier":"auto",
        "no_stop_trim":false,"ignore_eos":false,"continue_final_message":false,"skip_special_tokens":true,"separate_reasoning":true,
        "stream_reasoning":true,"return_hidden_states":false,"include_reasoning":true,"min_tokens":0,"functions":[],"best_of":1,
        "add_generation_prompt":true,"top_logprobs":0,"fermata":{"priority":0,"deadline_ms":0,"fork_of":null})").parts[0];
    CHECK(spelled.sampling == plain.sampling);
    CHECK(spelled.stop.empty());
    CHECK(spelled.tools_json.empty());
    CHECK(spelled.report == plain.report);
    CHECK(spelled.deadline_ms == 0);
}

TEST_CASE("fields reach the request") {
    auto const r = chat(R"("n":3,"stop":["a","b"],"max_tokens":7,"temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.05,"seed":-5,
        "frequency_penalty":-2,"presence_penalty":2,"repetition_penalty":1.1,"logit_bias":{"5":-100,"7":3.5,"5":1},"logprobs":true,
        "top_logprobs":20,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true,"stop_token_ids":[3,4],
        "tools":[ {"type":"function","function":{"name":"f","parameters":{"z":1,"a":2}}} ],"tool_choice":"none",
        "chat_template_kwargs":{"enable_thinking":false},"reasoning_effort":"low",
        "fermata":{"session":"s1","deadline_ms":1500,"expected_wait_s":12,"unknown":1},"unknown":{"x":[1]})");
    auto const& p = r.parts.at(0);
    CHECK(r.form.stream);
    CHECK(r.form.include_usage);
    CHECK(r.form.n == 3);
    CHECK(p.n == 3);
    CHECK(p.stop == std::vector<std::string>{"a", "b"});
    CHECK(p.max_tokens == 7);
    CHECK(p.sampling.temperature == 0.5f);
    CHECK(p.sampling.top_p == 0.9f);
    CHECK(p.sampling.top_k == 40);
    CHECK(p.sampling.min_p == 0.05f);
    CHECK(p.seed_given);
    CHECK(p.sampling.seed == static_cast<std::uint64_t>(-5));
    CHECK(p.sampling.frequency_penalty == -2);
    CHECK(p.sampling.presence_penalty == 2);
    CHECK(p.sampling.repetition_penalty == 1.1f);
    CHECK(p.sampling.logit_bias == std::vector<token_bias>{{5, 1}, {7, 3.5f}});
    CHECK(p.report.logprobs);
    CHECK(p.report.top_logprobs == 20);
    CHECK(p.ignore_eos);
    CHECK(p.stop_tokens == std::vector<token_id>{3, 4});
    CHECK(p.tools_json == R"([ {"type":"function","function":{"name":"f","parameters":{"z":1,"a":2}}} ])");  // H5
    CHECK(p.template_arguments_json == R"({"reasoning_effort":"low","enable_thinking":false})");
    CHECK(p.session == "s1");
    CHECK(p.deadline_ms == 1500);
    CHECK(chat(R"("stop":"x")").parts[0].stop == std::vector<std::string>{"x"});
    CHECK(chat(R"("max_tokens":7,"max_completion_tokens":9)").parts[0].max_tokens == 9);
    CHECK(chat(R"("add_generation_prompt":false)").parts[0].template_arguments_json == R"({"add_generation_prompt":false})");
}

TEST_CASE("completions: prompts of every form") {
    auto const parse = [](std::string const& body) { return parse_completion(body, model, limits); };
    CHECK(parse(R"({"prompt":"a\u0062"})").parts[0].prompt_text == "ab");
    auto two = parse(R"({"prompt":["a","b"],"n":2})");
    CHECK(two.parts.size() == 2);
    CHECK(two.form.prompts == 2);
    CHECK(two.parts[1].prompt_text == "b");
    auto tokens = parse(R"({"prompt":[1,2,999]})");
    CHECK(tokens.parts[0].kind == prompt_kind::tokens);
    CHECK(tokens.parts[0].prompt_tokens == token_run({1, 2, 999}));
    CHECK(parse(R"({"prompt":[[1],[2,3]]})").parts[1].prompt_tokens == token_run({2, 3}));
    auto const echo = parse(R"({"prompt":"a","echo":true,"logprobs":0,"max_tokens":0})").parts[0];
    CHECK(echo.echo);
    CHECK(echo.report.logprobs);
    CHECK(echo.report.prompt_logprobs);
    CHECK(echo.max_tokens == 0);
    CHECK_FALSE(parse(R"({"prompt":"a","logprobs":false})").parts[0].report.logprobs);
    CHECK(parse(R"({"prompt":"a","n":3,"best_of":3})").parts[0].n == 3);
}

TEST_CASE("seeds are any 64 bits; the smallest penalty is one") {
    CHECK(chat(R"("seed":18446744073709551615)").parts[0].sampling.seed == 18446744073709551615U);
    CHECK(chat(R"("seed":9223372036854775808)").parts[0].sampling.seed == 9223372036854775808U);
    CHECK(chat(R"("seed":-1)").parts[0].sampling.seed == 18446744073709551615U);
    CHECK(chat(R"("repetition_penalty":1e-38)").parts[0].sampling.repetition_penalty > 0);
}

TEST_CASE("lists of a request have limits with names") {
    auto const biased = [](int count) {
        std::string map;
        for (int i = 0; i < count; ++i) map += (map.empty() ? "\"" : ",\"") + std::to_string(i % 900) + "\":1";
        return R"("logit_bias":{)" + map + "}";
    };
    request_limits small;
    CHECK(small.logit_bias_max == 1024);
    CHECK(chat(biased(1024)).parts[0].sampling.logit_bias.size() == 900);  // one bias a token
    CHECK(refused([&] { chat(biased(1025)); }).message.find("at most 1024") != std::string::npos);
    auto const stops = [](int count) {
        std::string list = "1";
        for (int i = 1; i < count; ++i) list += ",1";
        return R"("stop_token_ids":[)" + list + "]";
    };
    CHECK(chat(stops(256)).parts[0].stop_tokens.size() == 256);
    CHECK(refused([&] { chat(stops(257)); }).message.find("at most 256") != std::string::npos);
    CHECK(refused([&] { completion(R"("n":0)"); }).message.find("128") != std::string::npos);
    auto const name = refused([&] { chat(R"("model":")" + std::string(1'000'000, 'x') + "\""); });
    CHECK(name.code == "model_not_found");
    CHECK(name.message.size() < 400);
}

TEST_CASE("wrong fields are named") {
    struct row {
        char const* fields;
        char const* param;
    };
    for (row const each : std::initializer_list<row>{
             {R"("temperature":"0.7")", "temperature"}, {R"("temperature":2.1)", "temperature"}, {R"("temperature":-0.1)", "temperature"},
             {R"("temperature":true)", "temperature"}, {R"("temperature":1e999)", "temperature"}, {R"("top_p":1.5)", "top_p"},
             {R"("top_k":-2)", "top_k"}, {R"("top_k":1.5)", "top_k"}, {R"("min_p":2)", "min_p"}, {R"("n":0)", "n"}, {R"("n":129)", "n"},
             {R"("n":"1")", "n"}, {R"("seed":1.5)", "seed"}, {R"("seed":"x")", "seed"}, {R"("seed":99999999999999999999)", "seed"},
             {R"("frequency_penalty":2.5)", "frequency_penalty"}, {R"("presence_penalty":-3)", "presence_penalty"},
             {R"("repetition_penalty":0)", "repetition_penalty"}, {R"("repetition_penalty":-1)", "repetition_penalty"},
             {R"("stop":5)", "stop"}, {R"("stop":["a",5])", "stop[1]"}, {R"("stop":"")", "stop"}, {R"("stop":{"a":1})", "stop"},
             {R"("logit_bias":[1])", "logit_bias"}, {R"("logit_bias":{"x":1})", "logit_bias"}, {R"("logit_bias":{"1000":1})", "logit_bias"},
             {R"("logit_bias":{"-1":1})", "logit_bias"}, {R"("logit_bias":{"5":101})", "logit_bias.5"}, {R"("logit_bias":{"5":"x"})", "logit_bias.5"},
             {R"("stream":"yes")", "stream"}, {R"("stream":1)", "stream"}, {R"("stream_options":{})", "stream_options"},
             {R"("stream":true,"stream_options":5)", "stream_options"}, {R"("stream":true,"stream_options":{"include_usage":1})", "stream_options.include_usage"},
             {R"("model":5)", "model"}, {R"("model":"other")", "model"}, {R"("user":5)", "user"}, {R"("ignore_eos":"x")", "ignore_eos"},
             {R"("stop_token_ids":[1000])", "stop_token_ids[0]"}, {R"("stop_token_ids":5)", "stop_token_ids"}, {R"("min_tokens":1)", "min_tokens"},
             {R"("max_tokens":-1)", "max_tokens"}, {R"("max_tokens":"5")", "max_tokens"}, {R"("max_tokens":1e12)", "max_tokens"},
             {R"("fermata":5)", "fermata"}, {R"("fermata":{"session":5})", "fermata.session"}, {R"("fermata":{"fork_of":"s"})", "fermata.fork_of"},
             {R"("fermata":{"deadline_ms":-1})", "fermata.deadline_ms"}, {R"("fermata":{"priority":"x"})", "fermata.priority"},
             {R"("response_format":{"type":"json_object"})", "response_format"}, {R"("response_format":"json")", "response_format"},
             {R"("response_format":{"type":"yaml"})", "response_format.type"}, {R"("response_format":{})", "response_format.type"},
             {R"("guided_json":{})", "guided_json"}, {R"("structured_outputs":{"json":{}})", "structured_outputs"}, {R"("use_beam_search":true)", "use_beam_search"},
             {R"("service_tier":"flex")", "service_tier"}, {R"("truncate_prompt_tokens":5)", "truncate_prompt_tokens"}, {R"("grammar":"root ::= x")", "grammar"},
             {R"("return_token_ids":5)", "return_token_ids"}}) {
        CAPTURE(each.fields);
        auto const a = refused([&] { chat(each.fields); });
        auto const b = refused([&] { completion(each.fields); });
        CHECK(a.param == each.param);
        CHECK(b.param == each.param);
        CHECK(a.status == (a.code == "model_not_found" ? 404 : 400));
        CHECK(a.message.find(a.code == "model_not_found" ? "other" : std::string(each.param).substr(0, 3)) != std::string::npos);
    }
    for (row const each : std::initializer_list<row>{
             {R"("logprobs":5)", "logprobs"}, {R"("top_logprobs":5)", "top_logprobs"}, {R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
             {R"("logprobs":true,"top_logprobs":-1)", "top_logprobs"}, {R"("max_tokens":0)", "max_tokens"}, {R"("max_completion_tokens":0)", "max_completion_tokens"},
             {R"("tools":5)", "tools"}, {R"("tools":[5])", "tools[0]"}, {R"("tools":[{"type":"custom"}])", "tools[0].type"},
             {R"("tools":[{"type":"function"}])", "tools[0].function"}, {R"("tools":[{"type":"function","function":{}}])", "tools[0].function.name"},
             {R"("tools":[{"type":"function","function":{"name":"f","parameters":"x"}}])", "tools[0].function.parameters"},
             {R"("tool_choice":"required")", "tool_choice"}, {R"("tool_choice":{"type":"function","function":{"name":"f"}})", "tool_choice"},
             {R"("tool_choice":"any")", "tool_choice"}, {R"("tool_choice":5)", "tool_choice"}, {R"("parallel_tool_calls":false)", "parallel_tool_calls"},
             {R"("functions":[{"name":"f"}])", "functions"}, {R"("function_call":{"name":"f"})", "function_call"},
             {R"("modalities":["text","audio"])", "modalities"}, {R"("modalities":"text")", "modalities"}, {R"("audio":{"voice":"x"})", "audio"},
             {R"("prediction":{"type":"content"})", "prediction"}, {R"("web_search_options":{})", "web_search_options"}, {R"("store":true)", "store"},
             {R"("verbosity":"low")", "verbosity"}, {R"("echo":true)", "echo"}, {R"("continue_final_message":true)", "continue_final_message"},
             {R"("chat_template":"x")", "chat_template"}, {R"("chat_template_kwargs":5)", "chat_template_kwargs"},
             {R"("chat_template_kwargs":{"messages":[]})", "chat_template_kwargs.messages"}, {R"("reasoning_effort":5)", "reasoning_effort"}}) {
        CAPTURE(each.fields);
        auto const e = refused([&] { chat(each.fields); });
        CHECK(e.param == each.param);
        CHECK(e.status == 400);
    }
    for (row const each : std::initializer_list<row>{{R"("logprobs":21)", "logprobs"}, {R"("logprobs":-1)", "logprobs"}, {R"("logprobs":true)", "logprobs"},
                                                     {R"("echo":"x")", "echo"}, {R"("suffix":"x")", "suffix"}, {R"("best_of":2)", "best_of"},
                                                     {R"("add_special_tokens":false)", "add_special_tokens"}}) {
        CAPTURE(each.fields);
        CHECK(refused([&] { completion(each.fields); }).param == each.param);
    }
}

TEST_CASE("wrong prompts are named") {
    auto const param = [](std::string const& prompt) {
        return refused([&] { parse_completion(R"({"n":2,"prompt":)" + prompt + "}", model, limits); }).param;
    };
    CHECK(param("5") == "prompt");
    CHECK(param("[]") == "prompt");
    CHECK(param("[[]]") == "prompt[0]");
    CHECK(param("[1,1000]") == "prompt[1]");
    CHECK(param("[1,\"a\"]") == "prompt[1]");
    CHECK(param("[\"a\",1]") == "prompt[1]");
    CHECK(param("[[1],\"a\"]") == "prompt[1]");
    CHECK(param("[[1],[2,-1]]") == "prompt[1][1]");
    CHECK(param("[true]") == "prompt[0]");
    CHECK(param("[1.5]") == "prompt[0]");
    std::string many = "[\"x\"";
    for (int i = 0; i < 64; ++i) many += ",\"x\"";
    CHECK(param(many + "]") == "prompt");
    CHECK(refused([] { parse_completion("{}", model, limits); }).param == "prompt");
}

TEST_CASE("bodies that aren't JSON objects") {
    auto const message = [](std::string const& body) { return refused([&] { parse_chat(body, model, limits); }).message; };
    CHECK(message("") == "the body is empty; it must be a JSON object");
    CHECK(message("[]") == "the body must be a JSON object, not a list");
    CHECK(message("{\n \"a\": nope}") == "the body isn't valid JSON: expected a value at byte 8 (line 2, column 7)");
    CHECK(message("{\"a\":\"\xFF\"}").find("UTF-8") != std::string::npos);
    CHECK(message(R"({"a":"\ud800"})").find("surrogate") != std::string::npos);
    CHECK(message(R"({"a":NaN})").find("NaN") != std::string::npos);
    CHECK(message(std::string(500, '[')).find("nested deeper") != std::string::npos);
    CHECK(refused([] { parse_chat("{}", model, limits); }).param == "messages");
}

TEST_CASE("conversations come to one form") {
    // Untouched where there is nothing to bring to a form: spaces inside values, order, escapes, unknown members (H5).
    CHECK(messages(R"([ {"content" : "a\u00e9" ,"role":"user","x":{"b": 1,"a":2}} ])") == R"([{"content":"a\u00e9","role":"user","x":{"b": 1,"a":2}}])");
    CHECK(messages(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b\n"}]}])") == R"([{"role":"user","content":"a\nb\n"}])");
    CHECK(messages(R"([{"role":"user","content":[]}])") == R"([{"role":"user","content":""}])");
    // fleet: absent and null content are the same
    auto const dropped = messages(R"([{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}])");
    auto const kept = messages(R"([{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}],"content":null}])");
    CHECK(json::parse(dropped) == json::parse(kept));
    CHECK(messages(R"([{"role":"assistant","content":"x","tool_calls":null,"name":null}])") == R"([{"role":"assistant","content":"x"}])");
    CHECK(messages(R"([{"role":"user","content":"a","content":"b"}])") == R"([{"role":"user","content":"b"}])");
}

TEST_CASE("tool calls: the string of arguments becomes the object it spells, in its order") {  // faults 44, 46; H5
    auto const with = [](std::string const& arguments) {
        return messages(R"([{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":)" + arguments + "}}]}]");
    };
    auto const expected = [](std::string const& object) {
        return R"([{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":)" + object + "}}]}]";
    };
    CHECK(with(R"("{\"z\": 1, \"a\": [1.0, \"\\u00e9\"]}")") == expected(R"({"z": 1, "a": [1.0, "\u00e9"]})"));
    CHECK(with(R"({"z":1,"a":2})") == expected(R"({"z":1,"a":2})"));
    CHECK(with(R"("")") == expected("{}"));
    CHECK(with("null") == expected("{}"));
    for (std::string const wrong : {R"("[1]")", R"("{")", R"("text")", R"("5")", "5", "[]", R"("{\"a\":NaN}")"}) {
        auto const e = refused([&] { with(wrong); });
        CHECK(e.status == 400);
        CHECK(e.param == "messages[0].tool_calls[0].function.arguments");
    }
}

TEST_CASE("reasoning in a history: two names, one thing") {
    auto const a = messages(R"([{"role":"assistant","content":"x","reasoning_content":"why"}])");
    auto const b = messages(R"([{"role":"assistant","content":"x","reasoning":"why"}])");
    CHECK(a == b);
    CHECK(json::parse(a)[0]["reasoning_content"] == "why");
    CHECK(messages(R"([{"role":"assistant","content":"x","reasoning":null}])") == R"([{"role":"assistant","content":"x"}])");
}

TEST_CASE("wrong messages are named") {
    auto const param = [](std::string const& list) { return refused([&] { messages(list); }).param; };
    CHECK(param("5") == "messages");
    CHECK(param("[]") == "messages");
    CHECK(param("[5]") == "messages[0]");
    CHECK(param(R"([{"content":"x"}])") == "messages[0].role");
    CHECK(param(R"([{"role":"robot","content":"x"}])") == "messages[0].role");
    CHECK(param(R"([{"role":5,"content":"x"}])") == "messages[0].role");
    CHECK(param(R"([{"role":"user"}])") == "messages[0].content");
    CHECK(param(R"([{"role":"user","content":null}])") == "messages[0].content");
    CHECK(param(R"([{"role":"user","content":5}])") == "messages[0].content");
    CHECK(param(R"([{"role":"user","content":{"a":1}}])") == "messages[0].content");
    CHECK(param(R"([{"role":"user","content":["x"]}])") == "messages[0].content[0]");
    CHECK(param(R"([{"role":"user","content":[{"text":"x"}]}])") == "messages[0].content[0].type");
    CHECK(param(R"([{"role":"user","content":[{"type":"text"}]}])") == "messages[0].content[0].text");
    CHECK(param(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"x"}}]}])") == "messages[0].content[1].type");
    CHECK(param(R"([{"role":"assistant","tool_calls":5}])") == "messages[0].tool_calls");
    CHECK(param(R"([{"role":"assistant","tool_calls":[{}]}])") == "messages[0].tool_calls[0].function");
    CHECK(param(R"([{"role":"assistant","tool_calls":[{"function":{}}]}])") == "messages[0].tool_calls[0].function.name");
    CHECK(param(R"([{"role":"assistant","content":"x","audio":{"id":"1"}}])") == "messages[0].audio");
    CHECK(param(R"([{"role":"user","name":5,"content":"x"}])") == "messages[0].name");
    std::string wide = R"([{"role":"user","content":"x","extra":{"k0":0)";
    for (int i = 1; i < 1100; ++i) wide += ",\"k" + std::to_string(i) + "\":0";
    CHECK(param(wide + "}}]") == "messages[0]");
    for (std::string const role : {"system", "developer", "user", "assistant", "tool", "function"})
        CHECK_NOTHROW(messages(R"([{"role":")" + role + R"(","content":"x"}])"));
}

TEST_CASE("tokenize bodies") {
    auto const parse = [](std::string const& body) { return parse_tokenize(body, model, limits); };
    CHECK(parse(R"({"prompt":"x"})").text.add_bos);
    CHECK_FALSE(parse(R"({"prompt":"x","add_special_tokens":false})").text.add_bos);
    CHECK_FALSE(parse(R"({"messages":[{"role":"user","content":"x"}]})").text.add_bos);
    CHECK(parse(R"({"prompt":"x","return_token_strs":true})").token_strings);
    CHECK(refused([&] { parse(R"({"prompt":5})"); }).param == "prompt");
    CHECK(refused([&] { parse(R"({"prompt":"x","messages":[]})"); }).param == "prompt");
    CHECK(refused([&] { parse(R"({"messages":[]})"); }).param == "messages");
    CHECK(parse_detokenize(R"({"tokens":[1,2]})", model, limits).tokens == token_run({1, 2}));
    CHECK(refused([] { parse_detokenize(R"({"tokens":[1,"a"]})", model, limits); }).param == "tokens[1]");
    CHECK(refused([] { parse_detokenize(R"({})", model, limits); }).param == "tokens");
}
