#!/usr/bin/env python3
"""What a node holds in memory while it serves: RssAnon + RssShmem beside its bound, over 2,000 requests.

    python3 bench/memory.py --fermata build/fermata --model FILE.gguf [--requests 2000] [--clients 8] [--leavers 0.1]

The bound is the node's own word: the weights of its plan at start, the pages of the pool that were ever used
(fermata_pages_touched, each of the plan's KV bytes / pages) and 100 MiB for everything else. The rest, all that is neither weights nor touched
pages, must stay below the 100 MiB, and in the second half of the run must not grow by more than --growth MiB. (A page that was used for a few
tokens is resident in part only, so at first the rest looks smaller than it is.)
Prompts are short and mixed, a few are fresh conversations, some are chats that go on; a leaver closes its socket in the middle.
--peak N sends N bodies of 16 MiB at once behind that: within a minute what they took must be given back, up to --kept MiB. Exit status 0 only if
all this holds and no request failed. Standard library only."""
import argparse
import asyncio
import json
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

WORDS = "river stone lamp orchard winter engine violin harbour letter copper sparrow meadow signal thunder candle bridge".split()
MIB = 1 << 20
BESIDE_MIB = 100


def resident(pid):
    """RssAnon + RssShmem in MiB."""
    with open(f"/proc/{pid}/status") as f:
        return sum(int(line.split()[1]) for line in f if line.startswith(("RssAnon", "RssShmem"))) / 1024


def metrics(url):
    with urllib.request.urlopen(url + "/metrics", timeout=60) as answer:
        text = answer.read().decode()
    return {name + labels: float(value) for name, labels, value in re.findall(r"^(\w+)(\{[^}]*\})? (\S+)$", text, re.M)}


def plan_of(log):
    """The line of memory that `serve` prints at start: weights in MiB, MiB of one page."""
    found = re.search(r"memory: weights ([\d.]+) MiB, KV ([\d.]+) MiB \((\d+) pages", log)
    if not found:
        raise SystemExit("no plan of memory in the server's log:\n" + log)
    return float(found[1]), float(found[2]) / int(found[3])


class Client:
    def __init__(self, host, port, model, seed, leavers):
        self.host, self.port, self.model, self.leavers = host, port, model, leavers
        self.random = random.Random(seed)
        self.history = []

    def words(self, most):
        return " ".join(self.random.choice(WORDS) for _ in range(self.random.randint(1, most)))

    def request(self):
        kind = self.random.random()
        body = {"model": self.model, "stream": self.random.random() < 0.7, "max_tokens": self.random.randint(1, 12),
                "temperature": 0.8, "seed": self.random.randint(0, 1 << 30)}
        if kind < 0.5:
            return "/v1/completions", {**body, "prompt": self.words(40)}
        if kind < 0.6:
            return "/v1/completions", {**body, "prompt": self.words(10), "n": 2, "logprobs": 3}
        if kind < 0.75 or len(self.history) > 6:
            self.history = []
        self.history.append({"role": "user", "content": "Say something about " + self.words(12)})
        return "/v1/chat/completions", {**body, "messages": self.history}

    async def ask(self):
        """True: a whole answer; False: it left."""
        path, body = self.request()
        text = json.dumps(body).encode()
        leaves = self.random.random() < self.leavers
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            writer.write(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n".encode() + text)
            await writer.drain()
            if leaves:
                try:
                    await asyncio.wait_for(reader.read(), self.random.choice([0.001, 0.02, 0.2]))
                except asyncio.TimeoutError:
                    pass
                if self.random.random() < 0.5:
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                if "messages" in body:
                    self.history = []
                return False
            answer = await asyncio.wait_for(reader.read(), 600)
            if b" 200 " not in answer.split(b"\r\n", 1)[0] or b'"error"' in answer:
                raise RuntimeError(answer[:500].decode(errors="replace"))
            if "messages" in body:
                self.history.append({"role": "assistant", "content": self.words(8)})
            return True
        finally:
            writer.close()


class Course:
    """The samples of a run."""

    def __init__(self, url, pid, weights, page):
        self.url, self.pid, self.weights, self.page, self.rest = url, pid, weights, page, []
        print(f"{'requests':>9} {'resident':>10} {'bound':>10} {'weights':>9} {'touched':>9} {'rest':>7}   MiB")

    def sample(self, requests):
        touched = metrics(self.url)['fermata_pages_touched{pool="main"}'] * self.page
        now = resident(self.pid)
        self.rest.append(now - self.weights - touched)
        print(f"{requests:9} {now:10.1f} {self.weights + touched + BESIDE_MIB:10.1f} {self.weights:9.1f} {touched:9.1f} {self.rest[-1]:7.1f}", flush=True)


async def drive(options, host, port, model, course):
    done = {"asked": 0, "whole": 0, "left": 0}
    failures = []
    step = max(1, options.requests // 10)

    async def one(number):
        client = Client(host, port, model, options.seed * 1000 + number, options.leavers)
        while done["asked"] < options.requests:
            done["asked"] += 1
            mark = done["asked"]
            try:
                done["whole" if await client.ask() else "left"] += 1
            except Exception as problem:  # every kind of let-down counts
                failures.append(f"{type(problem).__name__}: {problem}")
            if mark % step == 0:
                await asyncio.to_thread(course.sample, mark)

    await asyncio.gather(*(one(i) for i in range(options.clients)))
    return done, failures


async def peak(options, host, port, model, pid):
    """MiB before, at the highest, and a minute after bodies that are far too long for any context."""
    before, highest, done = resident(pid), resident(pid), asyncio.Event()

    async def one():
        body = json.dumps({"model": model, "prompt": "river stone " * (16 * MIB // 12), "max_tokens": 1}).encode()
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
            await writer.drain()
            return (await asyncio.wait_for(reader.read(), 600)).split(b"\r\n", 1)[0].decode(errors="replace")
        except OSError as problem:
            return type(problem).__name__
        finally:
            writer.close()

    async def watch():
        nonlocal highest
        while not done.is_set():
            highest = max(highest, resident(pid))
            await asyncio.sleep(0.05)

    watching = asyncio.create_task(watch())
    answers = await asyncio.gather(*(one() for _ in range(options.peak)))
    done.set()
    await watching
    limit = time.monotonic() + 60
    while resident(pid) > before + options.kept and time.monotonic() < limit:
        await asyncio.sleep(1)
    return before, highest, resident(pid), sorted(set(answers))


def wait_ready(url, node):
    while True:
        try:
            if urllib.request.urlopen(url + "/ready", timeout=10).status == 200:
                return
        except OSError:
            if node.poll() is not None:
                raise SystemExit("the server ended")
            time.sleep(0.1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fermata", default="build/fermata")
    parser.add_argument("--model", required=True)
    parser.add_argument("--serve", default="", help="more options of serve, in one word")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--leavers", type=float, default=0.1)
    parser.add_argument("--growth", type=float, default=8, help="MiB that the rest may grow by in the second half")
    parser.add_argument("--peak", type=int, default=0, help="large bodies at once, at the end")
    parser.add_argument("--kept", type=float, default=40, help="MiB that may stay of them")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    url, log = f"http://127.0.0.1:{port}", tempfile.TemporaryFile()
    node = subprocess.Popen([options.fermata, "serve", "--model", options.model, "--port", str(port), *options.serve.split()], stderr=log)
    try:
        wait_ready(url, node)
        log.seek(0)
        weights, page = plan_of(log.read().decode(errors="replace"))
        with urllib.request.urlopen(url + "/v1/models", timeout=60) as answer:
            model = json.load(answer)["data"][0]["id"]
        course = Course(url, node.pid, weights, page)
        course.sample(0)
        begun = time.monotonic()
        done, failures = asyncio.run(drive(options, "127.0.0.1", port, model, course))
        course.sample(options.requests)
        print(f"{time.monotonic() - begun:.0f} s: {done['whole']} whole answers, {done['left']} left early, {len(failures)} failed")
        for line in failures[:5]:
            print("  " + line)
        half = len(course.rest) // 2
        grown = max(course.rest[half:]) - course.rest[half]
        print(f"the rest: at most {max(course.rest):.1f} MiB (bound {BESIDE_MIB}), {grown:+.1f} MiB in the second half (bound {options.growth:g})")
        good = not failures and max(course.rest) <= BESIDE_MIB and grown <= options.growth
        if options.peak:
            before, highest, after, answers = asyncio.run(peak(options, "127.0.0.1", port, model, node.pid))
            print(f"{options.peak} bodies of 16 MiB ({', '.join(answers)}): {before:.1f} MiB before, {highest:.1f} at the highest, {after:.1f} after (bound {before + options.kept:.1f})")
            good = good and after <= before + options.kept
        print("passed" if good else "FAILED")
        return 0 if good else 1
    finally:
        if node.poll() is None:
            node.send_signal(signal.SIGTERM)
            node.wait(60)


if __name__ == "__main__":
    sys.exit(main())
