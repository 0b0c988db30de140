#!/usr/bin/env python3
"""Talks to a running node with the OpenAI SDK.

    pip install openai
    build/fermata serve --model models/SmolLM2-135M-Instruct.Q4_1.gguf &
    python3 examples/openai_chat.py

Two turns of one conversation, the second streamed: its prompt starts with the first turn, so most of it is taken
from the cache, as `cached_tokens` shows."""
import os

from openai import OpenAI

client = OpenAI(base_url=os.environ.get("FERMATA_URL", "http://127.0.0.1:8080/v1"),
                api_key=os.environ.get("FERMATA_KEY", "any key will do without a key file"))
model = client.models.list().data[0].id
messages = [{"role": "user", "content": "Name three instruments of an orchestra."}]

answer = client.chat.completions.create(model=model, messages=messages, max_tokens=64, temperature=0)
print("node:", answer.choices[0].message.content)
print(f"      ({answer.usage.prompt_tokens} prompt tokens, {answer.usage.completion_tokens} generated)")

messages.append({"role": "assistant", "content": answer.choices[0].message.content})
messages.append({"role": "user", "content": "Which of them is the loudest?"})
print("node: ", end="")
for event in client.chat.completions.create(model=model, messages=messages, max_tokens=64, temperature=0, stream=True,
                                            stream_options={"include_usage": True}):
    if event.choices:
        print(event.choices[0].delta.content or "", end="", flush=True)
    if event.usage:
        cached = event.usage.prompt_tokens_details.cached_tokens
        print(f"\n      ({event.usage.prompt_tokens} prompt tokens, {cached} of them from the cache)")
