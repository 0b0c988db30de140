"""A `fermata serve` for client tests: started on a free loopback port, ready when the context is entered, stopped after.

FERMATA_BIN names the program, FERMATA_MODEL the demo model's file. Without them the tests that need them are skipped.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

PROGRAM = os.environ.get("FERMATA_BIN", "")
MODEL = os.environ.get("FERMATA_MODEL", "")
PATIENCE_S = 300  # only a failing test waits this long


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Node:
    def __init__(self, model, *options):
        if not PROGRAM or not os.access(PROGRAM, os.X_OK):
            raise unittest.SkipTest("FERMATA_BIN is not a program")
        if model == MODEL and not os.path.exists(model):
            raise unittest.SkipTest("FERMATA_MODEL is not a file")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = tempfile.TemporaryFile()
        self.command = [PROGRAM, "serve", "--model", model, "--port", str(self.port), *options]
        self.process = None

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log)
        limit = time.monotonic() + PATIENCE_S
        while self.status("/ready") != 200:
            if self.process.poll() is not None or time.monotonic() > limit:
                self.process.kill()
                raise AssertionError(f"{' '.join(self.command)} did not become ready:\n{self.output()}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError("the server did not stop")
        output = self.output()
        self.log.close()
        if code != 0 and sys.exc_info()[0] is None:
            raise AssertionError(f"the server ended with {code}:\n{output}")

    def output(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")[-4000:]

    def status(self, path):
        try:
            with urllib.request.urlopen(self.url + path, timeout=PATIENCE_S) as answer:
                return answer.status
        except urllib.error.HTTPError as e:
            return e.code
        except OSError:
            return 0

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def metrics(self):
        """Series (name with labels) to value."""
        with urllib.request.urlopen(self.url + "/metrics", timeout=PATIENCE_S) as answer:
            text = answer.read().decode()
        return {m[1]: float(m[2]) for m in re.finditer(r"^(\w+(?:\{[^}]*\})?) (\S+)$", text, re.M)}

    def settled(self):
        """The metrics once nothing is under way."""
        limit = time.monotonic() + PATIENCE_S
        while True:
            m = self.metrics()
            busy = {k: v for k, v in m.items() if k.startswith("fermata_requests{") and v != 0}
            busy.update({k: v for k, v in m.items() if k == 'fermata_lanes{state="used"}' and v != 0})
            if not busy:
                return m
            if time.monotonic() > limit:
                raise AssertionError(f"still busy: {busy}")
            time.sleep(0.02)
