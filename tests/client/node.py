"""A `fermata serve` for client tests: started on a free loopback port, ready when the context is entered, stopped after.

FERMATA_BIN names the program, FERMATA_MODEL the demo model's file. Without them the tests that need them fail.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

PROGRAM = os.environ.get("FERMATA_BIN", "")
MODEL = os.environ.get("FERMATA_MODEL", "")
PATIENCE_S = 300  # only a failing test waits this long


class Node:
    def __init__(self, model, *options):
        if not PROGRAM or not os.access(PROGRAM, os.X_OK):
            raise AssertionError("FERMATA_BIN is not a program")
        if model == MODEL and not os.path.exists(model):
            raise AssertionError("FERMATA_MODEL is not a file")
        self.port = self.url = self.process = self.reader = None
        self.lines = []
        self.changed = threading.Condition()
        self.ended = False
        self.command = [PROGRAM, "serve", "--model", model, "--port", "0", *options]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.reader = threading.Thread(target=self.read_log)
        self.reader.start()
        # The server says its address once requests are taken.
        with self.changed:
            self.changed.wait_for(lambda: self.ended or self.port, PATIENCE_S)
        if not self.port:
            self.process.kill()
            self.process.wait()
            self.reader.join()
            raise AssertionError(f"{' '.join(self.command)} did not become ready:\n{self.output()}")
        self.url = f"http://127.0.0.1:{self.port}"
        if self.status("/ready") != 200:
            raise AssertionError("the server said its address, but is not ready")
        return self

    def read_log(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.decode(errors="replace"))
                address = re.search(r"http://127\.0\.0\.1:(\d+)$", self.lines[-1].rstrip())
                if address:
                    self.port = int(address[1])
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError("the server did not stop")
        self.reader.join()
        self.process.stdout.close()
        output = self.output()
        if code != 0 and sys.exc_info()[0] is None:
            raise AssertionError(f"the server ended with {code}:\n{output}")

    def output(self):
        with self.changed:
            return "".join(self.lines)[-4000:]

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
