#!/usr/bin/env python3
"""Many streaming clients at once, some of which vanish: all others must get a whole answer, and afterwards every gauge
must be back where it was.

    python3 bench/load_test.py --fermata build/fermata --model FILE.gguf [--minutes 10] [--clients 64] [--leavers 0.2]
    python3 bench/load_test.py --url http://127.0.0.1:8080 [--pid PID]

Each client asks in a loop: a conversation of a few turns or a fresh prompt, an answer of at most 64 tokens. A leaver closes its
socket (now with a goodbye, now with a reset) at a random moment: at once, while it waits, or in the middle of the answer.
Exit status 0 only if nobody else was let down and nothing leaked. Standard library only."""
import argparse
import asyncio
import json
import random
import re
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time
import urllib.request

WORDS = "river stone lamp orchard winter engine violin harbour letter copper sparrow meadow signal thunder candle bridge".split()
ANSWER_TOKENS = 64
PATIENCE_S = 600  # for one answer, on a machine that is shared


def metrics(url):
    with urllib.request.urlopen(url + "/metrics", timeout=60) as answer:
        text = answer.read().decode()
    gauges = set(re.findall(r"^# TYPE (\w+) gauge$", text, re.M))
    values = {}
    for name, labels, value in re.findall(r"^(\w+)(\{[^}]*\})? (\S+)$", text, re.M):
        values[name + labels] = (float(value), name in gauges)
    return values


def memory(pid):
    """RssAnon + RssShmem in MiB."""
    with open(f"/proc/{pid}/status") as f:
        return sum(int(line.split()[1]) for line in f if line.startswith(("RssAnon", "RssShmem"))) / 1024


class Run:
    def __init__(self, options, host, port, model, token_prompts):
        self.options, self.host, self.port, self.model, self.token_prompts = options, host, port, model, token_prompts
        self.until = time.monotonic() + options.minutes * 60
        self.whole = self.left = 0
        self.failures = []
        self.first_byte_ms, self.first_text_ms = [], []

    def body(self, rng, history):
        more = {"model": self.model, "stream": True, "max_tokens": rng.randint(1, ANSWER_TOKENS), "seed": rng.randint(0, 1 << 30), "n": 2 if rng.random() < 0.1 else 1}
        if self.token_prompts:
            more["prompt"] = [rng.randint(1, 200) for _ in range(rng.randint(1, 300))]
            return "/v1/completions", more
        if rng.random() < 0.3:
            more["prompt"] = " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 200)))
            return "/v1/completions", more
        if len(history) > 8:
            del history[:]
        history.append({"role": "user", "content": "Say something about " + " and ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 40)))})
        more["messages"] = history
        return "/v1/chat/completions", more

    async def client(self, number):
        rng = random.Random(self.options.seed * 1000 + number)
        history = []
        while time.monotonic() < self.until:
            path, body = self.body(rng, history)
            leaves_after = rng.choice([0, 0.001, 0.01, 0.1, 1, 3]) * rng.random() if rng.random() < self.options.leavers else None
            try:
                said = await asyncio.wait_for(self.ask(path, body, leaves_after, rng), PATIENCE_S)
                if said is not None and "messages" in body:
                    history.append({"role": "assistant", "content": said})
                elif "messages" in body:
                    history.pop()
            except Exception as problem:  # every kind of let-down counts
                self.failures.append(f"client {number}: {type(problem).__name__}: {problem}")
                history.clear()

    async def ask(self, path, body, leaves_after, rng):
        text = json.dumps(body).encode()
        reader, writer = await asyncio.open_connection(self.host, self.port, limit=1 << 20)
        try:
            begun = time.monotonic()
            writer.write(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n".encode() + text)
            await writer.drain()
            if leaves_after is None:
                return await self.read_answer(reader, begun, body)
            try:
                await asyncio.wait_for(self.read_answer(reader, begun, body), leaves_after)
            except asyncio.TimeoutError:
                pass
            self.left += 1
            if rng.random() < 0.5:
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return None
        finally:
            writer.close()

    async def read_answer(self, reader, begun, body):
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise RuntimeError((head.split(b"\r\n")[0] + await reader.read(500)).decode(errors="replace"))
        self.first_byte_ms.append((time.monotonic() - begun) * 1000)
        said, finishes, done = "", 0, False
        async for line in reader:
            if not line.startswith(b"data: "):
                continue
            if line.strip() == b"data: [DONE]":
                done = True
                continue
            event = json.loads(line[6:])
            if "error" in event:
                raise RuntimeError(f"error event: {event['error']}")
            for choice in event["choices"]:
                piece = choice.get("text") or choice.get("delta", {}).get("content") or ""
                if piece and not said:
                    self.first_text_ms.append((time.monotonic() - begun) * 1000)
                said += piece if choice["index"] == 0 else ""
                finishes += choice["finish_reason"] is not None
        if not done or finishes != body["n"]:
            raise RuntimeError(f"the stream ended with {finishes} of {body['n']} finishes, [DONE]: {done}")
        self.whole += 1
        return said

    async def all(self):
        watch = asyncio.create_task(self.watch())
        await asyncio.gather(*(self.client(i) for i in range(self.options.clients)))
        watch.cancel()

    async def watch(self):
        while True:
            await asyncio.sleep(30)
            rss = f", {memory(self.options.pid):.0f} MiB" if self.options.pid else ""
            print(f"  {self.whole} whole, {self.left} left, {len(self.failures)} let down{rss}", flush=True)


def settled(url, before):
    """Gauges that differ from `before` once the node is at rest; those of what is kept for reuse may."""
    kept = ("fermata_pages", "fermata_dead_kv_pages", "fermata_state_slots", "fermata_http_connections")
    limit = time.monotonic() + 60
    while True:
        now = metrics(url)
        off = {k: (before[k][0], v) for k, (v, gauge) in now.items() if gauge and before.get(k, (0, 1))[0] != v}
        active = {k: v for k, v in off.items() if not k.startswith(kept) or 'state="active"' in k}
        pages = sum(v for k, (v, _) in now.items() if k.startswith('fermata_pages{pool="main"'))
        pages_before = sum(v for k, (v, _) in before.items() if k.startswith('fermata_pages{pool="main"'))
        if not active and pages == pages_before:
            return {}
        if time.monotonic() > limit:
            return active or {"pages in all": (pages_before, pages)}
        time.sleep(0.2)


def quantiles(values):
    if len(values) < 10:
        return "too few"
    q = statistics.quantiles(values, n=100)
    return f"p50 {q[49]:.1f}, p90 {q[89]:.1f}, p99 {q[98]:.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fermata", default="build/fermata")
    parser.add_argument("--model")
    parser.add_argument("--serve", default="", help="more options of serve, in one word")
    parser.add_argument("--url")
    parser.add_argument("--pid", type=int)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--leavers", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    node = None
    if not options.url:
        if not options.model:
            parser.error("--model or --url is needed")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        options.url = f"http://127.0.0.1:{port}"
        node = subprocess.Popen([options.fermata, "serve", "--model", options.model, "--port", str(port), "--max-concurrency", "8", "--log-level", "warn", *options.serve.split()])
        options.pid = node.pid
    try:
        for attempt in range(600):  # a minute, a model of some size included
            try:
                if urllib.request.urlopen(options.url + "/ready", timeout=10).status == 200:
                    break
            except OSError:
                if node and node.poll() is not None:
                    return 1
                time.sleep(0.1)
        else:
            print(f"nobody is ready at {options.url}", file=sys.stderr)
            return 1
        with urllib.request.urlopen(options.url + "/v1/models", timeout=60) as answer:
            model = json.load(answer)["data"][0]["id"]
        host, port = re.match(r"http://([^:/]+):(\d+)", options.url).groups()
        before, rss = metrics(options.url), memory(options.pid) if options.pid else 0
        run = Run(options, host, int(port), model, bool(options.model) and options.model.startswith("oracle"))
        begun = time.monotonic()
        asyncio.run(run.all())
        seconds = time.monotonic() - begun
        off = settled(options.url, before)
        after = metrics(options.url)
        tokens = after["fermata_generated_tokens_total"][0] - before["fermata_generated_tokens_total"][0]
        print(f"{options.clients} clients, {seconds:.0f} s: {run.whole} whole answers, {run.left} left early, {len(run.failures)} let down; {tokens / seconds:.0f} tokens/s")
        print(f"first byte ms: {quantiles(run.first_byte_ms)}; first text ms: {quantiles(run.first_text_ms)}")
        if options.pid:
            print(f"RssAnon + RssShmem: {rss:.0f} MiB before, {memory(options.pid):.0f} MiB after")
        for line in run.failures[:10]:
            print("  " + line)
        for name, (was, now) in off.items():
            print(f"  {name} was {was:g} and is {now:g}")
        good = not run.failures and not off and run.whole > 0
        print("passed" if good else "FAILED")
        return 0 if good else 1
    finally:
        if node and node.poll() is None:
            node.send_signal(signal.SIGTERM)
            node.wait(60)


if __name__ == "__main__":
    sys.exit(main())
