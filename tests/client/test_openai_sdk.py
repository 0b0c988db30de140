"""The OpenAI SDK as a black-box client of `fermata serve` with the demo model.

    FERMATA_BIN=build/fermata FERMATA_MODEL=models/SmolLM2-135M-Instruct.Q4_1.gguf python -m unittest -v test_openai_sdk
"""

import concurrent.futures
import os
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import openai
from openai import OpenAI

from node import MODEL, PATIENCE_S, Node

QUESTION = [{"role": "user", "content": "Tell me about the sea in five sentences."}]


def client_of(node, key="any", **more):
    return OpenAI(base_url=node.url + "/v1", api_key=key, timeout=PATIENCE_S, max_retries=0, **more)


def strict(client):
    """The same client, refusing what doesn't fit the SDK's own types."""
    return client.with_options(_extra_kwargs={"_strict_response_validation": True})


def setUpModule():
    WithModel.node = Node(MODEL).__enter__()
    WithModel.client = client_of(WithModel.node)
    WithModel.model = WithModel.client.models.list().data[0].id


def tearDownModule():
    WithModel.node.__exit__(None, None, None)


class WithModel(unittest.TestCase):
    """All on one node: what one test leaves behind must not disturb the next."""

    node = client = model = None

    def chat(self, **more):
        return self.client.chat.completions.create(**{"model": self.model, "messages": QUESTION, "temperature": 0, "max_tokens": 24, **more})

    def complete(self, **more):
        return self.client.completions.create(**{"model": self.model, "prompt": "The capital of France is", "temperature": 0, "max_tokens": 16, **more})


class Models(WithModel):
    def test_list_and_retrieve(self):
        models = strict(self.client).models.list()
        self.assertEqual(len(models.data), 1)
        one = self.client.models.retrieve(self.model)
        self.assertEqual(one.owned_by, "fermata")
        self.assertEqual(one.root, os.path.basename(MODEL))
        self.assertGreater(one.max_model_len, 0)
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("nobody")


class Streaming(WithModel):
    def test_a_stream_says_what_one_answer_says(self):
        whole = self.chat()
        chunks = list(self.chat(stream=True, stream_options={"include_usage": True}))
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        finishes = [c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason]
        self.assertEqual(finishes, [whole.choices[0].finish_reason])
        self.assertEqual(len({c.id for c in chunks}), 1)
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)
        self.assertEqual(chunks[-1].usage.prompt_tokens, whole.usage.prompt_tokens)
        self.assertTrue(all(c.usage is None for c in chunks[:-1]))

    def test_without_usage_no_chunk_has_it(self):
        chunks = list(self.chat(stream=True, max_tokens=4))
        self.assertTrue(all(c.usage is None for c in chunks))
        self.assertEqual(chunks[-1].choices[0].finish_reason, "length")
        self.assertIn("request", chunks[-1].model_extra["fermata"])

    def test_completions(self):
        whole = self.complete()
        chunks = list(self.complete(stream=True))
        self.assertEqual("".join(c.choices[0].text for c in chunks), whole.choices[0].text)
        self.assertEqual(whole.object, "text_completion")

    def test_many_at_once_say_what_each_says_alone(self):
        prompts = [f"{i} apples and {i + 1} pears make" for i in range(12)]
        alone = [self.complete(prompt=p).choices[0].text for p in prompts]

        def streamed(p):
            return "".join(c.choices[0].text for c in self.complete(prompt=p, stream=True))

        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            self.assertEqual(list(pool.map(streamed, prompts)), alone)


class Choices(WithModel):
    def test_forms_fit_the_types_of_the_sdk(self):
        ask = {"model": self.model, "messages": QUESTION, "max_tokens": 4, "n": 2, "logprobs": True, "top_logprobs": 2}
        strict(self.client).chat.completions.create(**ask)
        list(strict(self.client).chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
        strict(self.client).completions.create(model=self.model, prompt="x", max_tokens=4, logprobs=2)

    def test_two_choices(self):
        answer = self.chat(n=2, temperature=1.0, seed=7, extra_body={"return_token_ids": True})
        self.assertEqual([c.index for c in answer.choices], [0, 1])
        self.assertNotEqual(answer.choices[0].message.content, answer.choices[1].message.content)
        self.assertEqual(answer.usage.completion_tokens, sum(len(c.model_extra["token_ids"]) for c in answer.choices))
        for c in answer.choices:
            self.assertLessEqual(len(c.model_extra["token_ids"]), 24)
            if c.finish_reason == "length":
                self.assertEqual(len(c.model_extra["token_ids"]), 24)
        texts = ["", ""]
        for chunk in self.chat(n=2, temperature=1.0, seed=7, stream=True):
            for choice in chunk.choices:
                texts[choice.index] += choice.delta.content or ""
        self.assertEqual(texts, [c.message.content for c in answer.choices])

    def test_several_prompts(self):
        answer = self.complete(prompt=["One two three", "Monday Tuesday"], n=2, temperature=0)
        self.assertEqual([c.index for c in answer.choices], [0, 1, 2, 3])
        self.assertEqual(answer.choices[0].text, answer.choices[1].text)
        self.assertEqual(answer.choices[2].text, self.complete(prompt="Monday Tuesday").choices[0].text)

    def test_token_prompts(self):
        ids = self.node.post("/tokenize", {"prompt": "The capital of France is"})["tokens"]
        self.assertEqual(self.complete(prompt=ids).choices[0].text, self.complete().choices[0].text)

    def test_seeds(self):
        def say(seed):
            return self.chat(temperature=1.2, seed=seed).choices[0].message.content

        self.assertEqual(say(1), say(1))
        self.assertEqual(say(-9), say(-9))
        self.assertGreater(len({say(s) for s in range(4)}), 1)


class Stops(WithModel):
    def pieces(self):
        answer = self.chat(max_tokens=40, logprobs=True)
        return answer.choices[0].message.content, [bytes(t.bytes) for t in answer.choices[0].logprobs.content]

    def test_stop_strings_across_the_borders_of_tokens(self):
        text, pieces = self.pieces()
        raw = text.encode()
        tried = 0
        for i in range(1, len(pieces) - 2):
            # The end of one token and the start of the next: no token holds the stop string by itself.
            stop = (pieces[i][-2:] + pieces[i + 1][:2]).decode(errors="ignore")
            at = text.find(stop)
            if len(stop) < 3 or at < 1 or raw.decode() != text:
                continue
            tried += 1
            answer = self.chat(max_tokens=40, stop=stop)
            self.assertEqual(answer.choices[0].message.content, text[:at])
            self.assertEqual(answer.choices[0].finish_reason, "stop")
            streamed = "".join(c.choices[0].delta.content or "" for c in self.chat(max_tokens=40, stop=[stop, "never said"], stream=True))
            self.assertEqual(streamed, text[:at])
            if tried == 4:
                break
        self.assertGreater(tried, 0)

    def test_what_only_starts_like_a_stop_string_is_said(self):
        text, _ = self.pieces()
        answer = self.chat(max_tokens=40, stop=[text[3:8] + "\0", text[-1] + "xyz"])
        self.assertEqual(answer.choices[0].message.content, text)

    def test_stop_token_ids_and_ignore_eos(self):
        ids = self.complete(extra_body={"return_token_ids": True}).choices[0].model_extra["token_ids"]
        cut = self.complete(extra_body={"return_token_ids": True, "stop_token_ids": [ids[3]]})
        self.assertEqual(cut.choices[0].finish_reason, "stop")
        self.assertEqual(cut.choices[0].model_extra["token_ids"][:3], ids[:3])
        self.assertEqual(self.chat(max_tokens=200, extra_body={"ignore_eos": True}).usage.completion_tokens, 200)


class LogProbabilities(WithModel):
    def test_chat(self):
        answer = self.chat(logprobs=True, top_logprobs=5)
        choice = answer.choices[0]
        said = b"".join(bytes(t.bytes) for t in choice.logprobs.content)
        self.assertTrue(said.startswith(choice.message.content.encode()))
        self.assertEqual(len(choice.logprobs.content), answer.usage.completion_tokens)
        for t in choice.logprobs.content:
            self.assertLessEqual(t.logprob, 0)
            self.assertEqual(len(t.top_logprobs), 5)
            best = [x.logprob for x in t.top_logprobs]
            self.assertEqual(best, sorted(best, reverse=True))
            self.assertEqual(t.top_logprobs[0].bytes, t.bytes)  # temperature 0 takes the best
        streamed = [t for c in self.chat(logprobs=True, top_logprobs=5, stream=True) if c.choices and c.choices[0].logprobs for t in c.choices[0].logprobs.content]
        self.assertEqual([t.bytes for t in streamed], [t.bytes for t in choice.logprobs.content])
        self.assertEqual([t.logprob for t in streamed], [t.logprob for t in choice.logprobs.content])

    def test_legacy_with_echo(self):
        answer = self.complete(logprobs=3, echo=True, max_tokens=4)
        choice = answer.choices[0]
        self.assertTrue(choice.text.startswith("The capital of France is"))
        n = len(choice.logprobs.tokens)
        self.assertEqual(n, answer.usage.total_tokens)
        self.assertEqual("".join(choice.logprobs.tokens), choice.text)
        self.assertIsNone(choice.logprobs.token_logprobs[0])
        self.assertTrue(all(p <= 0 for p in choice.logprobs.token_logprobs[1:]))
        self.assertEqual(len(choice.logprobs.top_logprobs), n)
        for token, offset in zip(choice.logprobs.tokens, choice.logprobs.text_offset):
            self.assertTrue(choice.text[offset:].startswith(token))

    def test_scoring_a_prompt_without_an_answer(self):
        answer = self.complete(logprobs=1, echo=True, max_tokens=0)
        self.assertEqual(answer.choices[0].text, "The capital of France is")
        self.assertEqual(answer.usage.completion_tokens, 0)
        longer = self.complete(logprobs=1, echo=True, max_tokens=2)
        n = len(answer.choices[0].logprobs.tokens)
        self.assertEqual(answer.choices[0].logprobs.token_logprobs, longer.choices[0].logprobs.token_logprobs[:n])

    def test_logit_bias(self):
        token = self.node.post("/tokenize", {"prompt": " sea", "add_special_tokens": False})["tokens"][0]
        answer = self.complete(logit_bias={str(token): 100}, max_tokens=3, extra_body={"return_token_ids": True})
        self.assertEqual(answer.choices[0].model_extra["token_ids"], [token] * 3)


class Usage(WithModel):
    def test_counts_are_those_of_tokenize(self):
        answer = self.chat()
        count = self.node.post("/tokenize", {"messages": QUESTION})["count"]
        self.assertEqual(answer.usage.prompt_tokens, count)
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)

    def test_reuse_agrees_between_usage_and_metrics(self):
        before = self.node.settled()
        text = "A long story about a lighthouse. " * 40
        first = self.complete(prompt=text, max_tokens=2)
        second = self.complete(prompt=text + "And then", max_tokens=2)
        self.assertGreaterEqual(second.usage.prompt_tokens_details.cached_tokens, 128)
        self.assertEqual(second.model_extra["fermata"]["source"], "device")
        self.assertEqual(second.model_extra["fermata"]["reused_tokens"], second.usage.prompt_tokens_details.cached_tokens)
        after = self.node.settled()
        name = 'fermata_reused_tokens_total{source="device"}'
        told = first.usage.prompt_tokens_details.cached_tokens + second.usage.prompt_tokens_details.cached_tokens
        self.assertEqual(after[name] - before[name], told)

    def test_forty_turns(self):
        messages = [{"role": "system", "content": "You are brief."}]
        cached, previous_prompt = [], 0
        for turn in range(40):
            messages.append({"role": "user", "content": f"Turn {turn}: name a fruit, a colour and a river."})
            answer = self.chat(messages=messages, max_tokens=12)
            messages.append({"role": "assistant", "content": answer.choices[0].message.content})
            cached.append(answer.usage.prompt_tokens_details.cached_tokens)
            # What was computed for the last turn's prompt is there, up to a page.
            self.assertGreaterEqual(cached[-1], previous_prompt // 64 * 64)
            self.assertLess(cached[-1], answer.usage.prompt_tokens)
            previous_prompt = answer.usage.prompt_tokens
        self.assertEqual(cached, sorted(cached))
        self.assertGreater(cached[-1], 800)


class Aborts(WithModel):
    def test_closed_streams_give_their_lanes_back(self):
        before = self.node.settled()
        for i in range(8):
            stream = self.chat(stream=True, max_tokens=2000, extra_body={"ignore_eos": True})
            for j, _ in enumerate(stream):
                if j == i:
                    break
            stream.close()
        after = self.node.settled()
        gone = 'fermata_requests_total{outcome="cancelled"}'
        self.assertEqual(after[gone] - before[gone], 8)
        self.assertLess(after["fermata_generated_tokens_total"] - before["fermata_generated_tokens_total"], 8 * 1000)
        self.assertEqual(after['fermata_pages{pool="main",state="active"}'], before['fermata_pages{pool="main",state="active"}'])
        self.chat()

    def test_a_client_that_gives_up_on_one_answer(self):
        impatient = client_of(self.node).with_options(timeout=0.5)
        with self.assertRaises(openai.APITimeoutError):
            impatient.chat.completions.create(model=self.model, messages=QUESTION, max_tokens=4000, extra_body={"ignore_eos": True})
        self.node.settled()

    def test_a_deadline_ends_a_stream_with_an_error_event(self):
        stream = self.chat(stream=True, max_tokens=4000, extra_body={"ignore_eos": True, "fermata": {"deadline_ms": 700}})
        said = 0
        with self.assertRaises(openai.APIError):
            for chunk in stream:
                said += 1
        self.assertGreater(said, 0)
        self.node.settled()


class Errors(WithModel):
    def refused(self, kind, **more):
        with self.assertRaises(kind) as caught:
            self.chat(**more)
        return caught.exception

    def test_bad_requests_name_the_field(self):
        for param, value in [("temperature", 3), ("top_p", "x"), ("n", 0), ("max_tokens", -1), ("stop", 5), ("top_logprobs", 3),
                             ("tool_choice", "required"), ("response_format", {"type": "json_object"})]:
            e = self.refused(openai.BadRequestError, **{param: value})
            self.assertEqual(e.param, param)
            self.assertIn(param, e.message)
        self.assertEqual(self.refused(openai.BadRequestError, messages=[{"role": "robot", "content": "x"}]).param, "messages[0].role")
        self.assertEqual(self.refused(openai.BadRequestError, messages=[]).param, "messages")

    def test_a_prompt_beyond_the_context(self):
        e = self.refused(openai.BadRequestError, messages=[{"role": "user", "content": "word " * 20000}])
        self.assertEqual(e.code, "context_length_exceeded")
        e = self.refused(openai.BadRequestError, max_tokens=100000)
        self.assertEqual(e.code, "context_length_exceeded")

    def test_other_kinds(self):
        self.assertEqual(self.refused(openai.NotFoundError, model="nobody").code, "model_not_found")
        with self.assertRaises(openai.InternalServerError) as caught:
            self.client.responses.create(model=self.model, input="x")
        self.assertEqual(caught.exception.status_code, 501)

    def test_streams_are_refused_plainly_too(self):
        self.refused(openai.BadRequestError, stream=True, temperature=-1)

    def test_unknown_fields_are_ignored_everywhere(self):
        answer = self.chat(messages=[{"role": "user", "content": "hi", "what": {"is": ["this"]}}], extra_body={"no_stop_trim": False, "surprise": 1})
        self.assertTrue(answer.choices[0].message.content)

    def test_request_ids(self):
        raw = self.client.chat.completions.with_raw_response.create(model=self.model, messages=QUESTION, max_tokens=1, extra_headers={"x-request-id": "mine-1"})
        self.assertEqual(raw.headers["x-request-id"], "mine-1")
        self.assertTrue(raw.parse().id.startswith("chatcmpl-"))


class Text(WithModel):
    def test_other_scripts_and_tools(self):
        tools = [{"type": "function", "function": {"name": "look", "description": "é", "parameters": {"type": "object", "properties": {"z": {}, "a": {}}}}}]
        messages = [
            {"role": "user", "content": [{"type": "text", "text": "Привет 😀"}, {"type": "text", "text": "日本語"}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"z": 1, "a": "é"}'}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "gefunden"},
        ]
        self.chat(messages=messages, tools=tools, tool_choice="auto")

    def test_tokenize_round_trip(self):
        text = "Zwölf Boxkämpfer 🥊 jagen\n\tEva."
        ids = self.node.post("/tokenize", {"prompt": text, "add_special_tokens": False})
        self.assertEqual(ids["count"], len(ids["tokens"]))
        self.assertEqual(self.node.post("/detokenize", {"tokens": ids["tokens"]})["prompt"], text)


class Keys(unittest.TestCase):
    def test_keys_are_asked_for(self):
        with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
            keys.write("# tests\nright-key\n")
            keys.flush()
            with Node("oracle", "--api-key-file", keys.name) as node:
                ask = {"model": "oracle", "prompt": [1, 2, 3], "max_tokens": 2}
                with self.assertRaises(openai.AuthenticationError):
                    client_of(node, "wrong-key").completions.create(**ask)
                self.assertEqual(client_of(node, "right-key").completions.create(**ask).usage.completion_tokens, 2)


class FullQueue(unittest.TestCase):
    def test_rate_limit_error_with_retry_after(self):
        with Node("oracle:delay_us=20000", "--max-concurrency", "1", "--max-pending", "1") as node:
            ask = {"model": client_of(node).models.list().data[0].id, "prompt": [1, 2, 3], "max_tokens": 400, "extra_body": {"ignore_eos": True}}
            refused = []
            some = threading.Event()

            def one():
                try:
                    client_of(node).completions.create(**ask, timeout=20)
                except openai.RateLimitError as e:
                    refused.append(e)
                    some.set()
                except openai.APITimeoutError:
                    pass

            threads = [threading.Thread(target=one) for _ in range(6)]
            for t in threads:
                t.start()
            self.assertTrue(some.wait(PATIENCE_S))
            self.assertEqual(node.status("/health"), 200)  # a full queue is not ill
            for t in threads:
                t.join()
            self.assertGreaterEqual(len(refused), 1)
            self.assertGreaterEqual(int(refused[0].response.headers["retry-after"]), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
