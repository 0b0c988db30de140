"""What no library would send, to a running `fermata serve`: sockets and bytes only. Runs on the oracle model (token prompts)."""

import json
import os
import socket
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from node import PATIENCE_S, Node


def request(body, path="/v1/completions", headers=""):
    text = json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nHost: t\r\n{headers}Content-Length: {len(text)}\r\n\r\n".encode() + text


def answer(**more):
    return {"prompt": [1, 2, 3], "max_tokens": 4, "ignore_eos": True, **more}


class Raw(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = Node("oracle:delay_us=2000", "--max-concurrency", "2")
        cls.node.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.node.__exit__(None, None, None)

    def connect(self):
        s = socket.create_connection(("127.0.0.1", self.node.port), timeout=PATIENCE_S)
        self.addCleanup(s.close)
        return s

    def read_until(self, s, mark):
        got = b""
        while mark not in got:
            more = s.recv(65536)
            self.assertTrue(more, f"closed before {mark!r}: {got!r}")
            got += more
        return got

    def read_response(self, s):
        got = self.read_until(s, b"\r\n\r\n")
        head, _, body = got.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += s.recv(65536)
        self.assertEqual(len(body), length)
        return int(head.split()[1]), json.loads(body)

    def test_pipelined_requests(self):
        s = self.connect()
        s.sendall(request(answer()))
        status, first = self.read_response(s)
        self.assertEqual(status, 200)
        s.sendall(request(answer(max_tokens=2)))
        self.assertEqual(self.read_response(s)[1]["usage"]["completion_tokens"], 2)
        s.sendall(b"".join(request(answer(max_tokens=n)) for n in (1, 2, 3)))
        got = b""
        counts = []
        while len(counts) < 3:
            got += s.recv(65536)
            counts = [part.split(b",")[0] for part in got.split(b'"completion_tokens":')[1:]]
        self.assertEqual(counts, [b"1", b"2", b"3"])

    def test_leaving_frees_the_lane(self):
        before = self.node.settled()
        for way in ("half", "close", "reset"):
            for stream in (False, True):
                s = self.connect()
                s.sendall(request(answer(max_tokens=5000, stream=stream)))
                if stream:
                    self.read_until(s, b"data: ")
                while self.node.metrics()['fermata_lanes{state="used"}'] == 0:
                    pass  # it has to be there before it can leave
                if way == "half":
                    s.shutdown(socket.SHUT_WR)
                    self.assertEqual(self.read_rest(s)[-14:].count(b"[DONE]"), 0)
                if way == "reset":
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                s.close()
                self.node.settled()
        gone = 'fermata_requests_total{outcome="cancelled"}'
        self.assertEqual(self.node.metrics()[gone] - before[gone], 6)

    def read_rest(self, s):
        got = b""
        while True:
            try:
                more = s.recv(65536)
            except ConnectionResetError:
                return got
            if not more:
                return got
            got += more

    def test_a_waiting_stream_gets_headers_and_comments(self):  # faults 91, 92
        busy = [self.connect() for _ in range(2)]
        for s in busy:
            s.sendall(request(answer(max_tokens=4000, stream=True)))
            self.read_until(s, b"data: ")
        waiting = self.connect()
        waiting.sendall(request(answer(stream=True)))
        self.assertIn(b"200 OK", self.read_until(waiting, b"\r\n\r\n"))
        self.read_until(waiting, b": keep-alive\n\n")
        for s in busy:
            s.close()
        self.read_until(waiting, b"data: [DONE]")

    def test_bad_bytes(self):
        for text, status in [(b"\0\0\0\0\r\n\r\n", 400), (b"GET /health HTTP/9.9\r\n\r\n", 400), (request({"prompt": 5}), 400),
                             (b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\n{\"a\":", 400),
                             (b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\n{\"\xff\"", 400),
                             (b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999999\r\n\r\n", 413),
                             (b"GET / HTTP/1.1\r\nHost: t\r\nX: " + b"x" * 70000 + b"\r\n\r\n", 431)]:
            s = self.connect()
            s.sendall(text)
            got, body = self.read_response(s)
            self.assertEqual(got, status, text[:60])
            self.assertIn("message", body["error"])

    def test_health_answers_while_every_lane_is_busy(self):  # fault 88
        busy = [self.connect() for _ in range(8)]
        for s in busy:
            s.sendall(request(answer(max_tokens=500, stream=True)))
        for _ in range(20):
            self.assertEqual(self.node.status("/health"), 200)
        for s in busy:
            s.close()
        self.node.settled()

    def test_a_client_that_never_reads_holds_nobody_up(self):
        lazy = socket.socket()
        self.addCleanup(lazy.close)
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.connect(("127.0.0.1", self.node.port))
        lazy.sendall(request(answer(max_tokens=3000, stream=True)))
        s = self.connect()
        s.sendall(request(answer()))
        self.assertEqual(self.read_response(s)[0], 200)
        lazy.close()
        self.node.settled()

    def test_random_aborts_leave_nothing_behind(self):  # fault 83
        before = self.node.settled()

        def abort(i):
            s = socket.create_connection(("127.0.0.1", self.node.port), timeout=PATIENCE_S)
            s.sendall(request(answer(max_tokens=50, stream=i % 2 == 0, n=1 + i % 3))[: None if i % 5 else 60])
            for _ in range(i % 17 if i % 3 else 0):
                self.node.status("/health")  # a few round trips later: a different phase each
            s.close()

        threads = [threading.Thread(target=abort, args=(i,)) for i in range(100)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        after = self.node.settled()
        for series in ('fermata_pages{pool="main",state="active"}', 'fermata_lanes{state="used"}', "fermata_queue_length"):
            self.assertEqual(after[series], before[series], series)
        s = self.connect()
        s.sendall(request(answer()))
        self.assertEqual(self.read_response(s)[0], 200)


if __name__ == "__main__":
    unittest.main(verbosity=2)
