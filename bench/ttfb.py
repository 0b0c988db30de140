#!/usr/bin/env python3
"""Time to the first streamed byte of an accepted request at idle, and to its first token.

    python3 bench/ttfb.py --url http://127.0.0.1:8080 [--requests 200]

One client, one request at a time, a fresh connection each (and then all on one), a short prompt. Standard library only."""
import argparse
import json
import re
import socket
import statistics
import time
import urllib.request


def line(name, values):
    q = statistics.quantiles(values, n=100, method="inclusive")
    return f"{name:34} p50 {q[49]:.3f} ms   p90 {q[89]:.3f} ms   p99 {q[98]:.3f} ms   max {max(values):.3f} ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--tokens", action="store_true", help="token prompts (the oracle has no text)")
    options = parser.parse_args()
    host, port = re.match(r"http://([^:/]+):(\d+)", options.url).groups()
    with urllib.request.urlopen(options.url + "/v1/models", timeout=60) as answer:
        model = json.load(answer)["data"][0]["id"]

    def connect():
        s = socket.create_connection((host, int(port)), timeout=60)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def ask(s, i):
        body = json.dumps({"model": model, "prompt": [1 + i % 200, 2, 3] if options.tokens else f"Number {i} is", "max_tokens": 2, "stream": True}).encode()
        begun = time.perf_counter()
        s.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        got = s.recv(65536)
        first_byte = time.perf_counter() - begun
        assert b" 200 " in got, got
        while b"data: " not in got:
            got += s.recv(65536)
        first_event = time.perf_counter() - begun
        while b"[DONE]\n\n\r\n0\r\n\r\n" not in got:
            more = s.recv(65536)
            assert more, got
            got += more
        return first_byte * 1000, first_event * 1000

    for name, fresh in (("fresh connections", True), ("one connection", False)):
        s = connect()
        times = []
        for i in range(options.requests):
            if fresh:
                s.close()
                s = connect()
            times.append(ask(s, i))
        s.close()
        print(line(f"{name}: first byte", [t[0] for t in times]))
        print(line(f"{name}: first event", [t[1] for t in times]))


if __name__ == "__main__":
    main()
