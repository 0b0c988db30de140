"""test_program.py PROGRAM: exit status, messages and signals of `fermata`. Exit status 2 means wrong usage, with one line that names
the option; 1 means that it failed; nothing that could not be written counts as done."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
PATIENCE_S = 120  # only a failing test waits this long


def fermata(*words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL):
    return subprocess.run([PROGRAM, *words], stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)


def lines_until(stream, text):
    """Reads lines up to the one that holds `text`."""
    lines = []
    for line in stream:
        lines.append(line)
        if text in line:
            return lines
    raise AssertionError(f"no line with {text!r} in:\n{''.join(lines)}")


class WrongUsage(unittest.TestCase):
    def refused(self, text, *words):
        done = fermata(*words)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(text, done.stderr)

    def test_a_number_beyond_64_bits(self):
        self.refused("--seed: '99999999999999999999' is too large", "run", "--model", "oracle", "-t", "1", "--seed", "99999999999999999999")
        self.refused("--kv-capacity", "run", "--model", "oracle", "-t", "1", "--kv-capacity", "99999999999999999999")
        self.refused("too large", "serve", "--model", "oracle", "--port", "0", "--seed", "18446744073709551616")

    def test_no_number(self):
        self.refused("--seed: '12x' is no whole number", "run", "--model", "oracle", "-t", "1", "--seed", "12x")
        self.refused("--seed: ' 1' is no whole number", "run", "--model", "oracle", "-t", "1", "--seed", " 1")

    def test_the_largest_seed_is_taken(self):
        done = fermata("run", "--model", "oracle", "-t", "1,2", "-n", "2", "--seed", "18446744073709551615")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_caf_door_for_everybody_needs_insecure(self):
        with tempfile.NamedTemporaryFile("w") as keys:
            keys.write("k\n")
            keys.flush()
            # Keys guard HTTP alone: they don't make the CAF door safe.
            self.refused("--caf-host 0.0.0.0", "serve", "--model", "oracle", "--port", "0", "--api-key-file", keys.name, "--caf-port", "0",
                         "--caf-host", "0.0.0.0")


class Output(unittest.TestCase):
    def test_a_full_disk_is_a_failure(self):
        with open("/dev/full", "w") as full, tempfile.TemporaryDirectory() as folder:
            text, values = os.path.join(folder, "t.jinja"), os.path.join(folder, "v.json")
            for name, content in ((text, "hello"), (values, "{}")):
                with open(name, "w") as file:
                    file.write(content)
            for words in (["template", "--file", text, "--input", values],
                          ["run", "--model", "oracle", "-t", "1,2", "-n", "4"],
                          ["run", "--model", "oracle", "-t", "1,2", "-n", "4", "--json"]):
                done = fermata(*words, stdout=full)
                self.assertEqual(done.returncode, 1, words)
                self.assertIn("standard output: No space left on device", done.stderr)


class Serving(unittest.TestCase):
    def serve(self, *words):
        return subprocess.Popen([PROGRAM, "serve", "--model", "oracle", "--port", "0", *words], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def test_caf_listens_on_loopback_whatever_host_http_has(self):
        with tempfile.NamedTemporaryFile("w") as keys:
            keys.write("k\n")
            keys.flush()
            with self.serve("--host", "0.0.0.0", "--api-key-file", keys.name, "--caf-port", "0") as node:
                said = lines_until(node.stderr, "CAF endpoint")[-1]
                port = int(said.rsplit(":", 1)[1])
                node.send_signal(signal.SIGTERM)
                self.assertIn("127.0.0.1:", said)
                self.assertGreater(port, 0)
                node.stderr.read()
                self.assertEqual(node.wait(PATIENCE_S), 0)

    def test_a_signal_while_the_model_loads_ends_it(self):
        # A pipe that nobody writes to holds the loading for ever.
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "template.jinja")
            os.mkfifo(pipe)
            for each in (signal.SIGTERM, signal.SIGINT):
                with self.serve("--chat-template", pipe) as node:
                    lines_until(node.stderr, "loading the model")
                    node.send_signal(each)
                    try:
                        self.assertEqual(node.wait(PATIENCE_S), 0)
                    except subprocess.TimeoutExpired:
                        node.kill()
                        raise

    def test_a_model_that_is_missing_ends_it_too(self):
        done = fermata("serve", "--model", "/nonexistent.gguf", "--port", "0")
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_sigterm_at_rest_ends_with_0(self):
        with self.serve() as node:
            lines_until(node.stderr, "http://")
            node.send_signal(signal.SIGTERM)
            rest = node.stderr.read()
            self.assertEqual(node.wait(PATIENCE_S), 0)
            self.assertIn("stopped", rest)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
