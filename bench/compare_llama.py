#!/usr/bin/env python3
"""Fermata beside llama.cpp: the same file, the same threads, turn by turn in one run.

    python3 bench/compare_llama.py --model FILE.gguf --fermata build/fermata --llama DIR [--threads 2] [--rounds 5]

DIR holds llama.cpp's `llama-batched-bench`, built natively (Release, GGML_NATIVE). Each round measures both programs one
after the other, so that a noisy machine disturbs both; the ratio of a round is Fermata / llama.cpp, and the table shows the
median ratio of all rounds with its range. Prefill: 512 cold tokens. Decode: one stream and eight streams, 128 tokens each after a prompt of
512 tokens."""
import argparse
import json
import pathlib
import statistics
import subprocess

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--fermata", default="build/fermata")
parser.add_argument("--llama", required=True, type=pathlib.Path)
parser.add_argument("--threads", default=2, type=int)
parser.add_argument("--rounds", default=5, type=int)
parser.add_argument("--prompt", default=512, type=int)
parser.add_argument("--gen", default=128, type=int)
parser.add_argument("--streams", default=8, type=int)
options = parser.parse_args()


def fermata():
    out = subprocess.run(
        [options.fermata, "bench", "--model", options.model, "--threads", str(options.threads), "--prompt",
         str(options.prompt), "--gen", str(options.gen), "--concurrency", f"1,{options.streams}", "--json"],
        check=True, capture_output=True, text=True).stdout
    one, many = json.loads(out)["results"]
    return {"prefill": one["prefill_tokens_per_s"], "decode 1": one["decode_tokens_per_s"],
            f"decode {options.streams}": many["decode_tokens_per_s"]}


def llama():
    context = options.streams * (options.prompt + options.gen) + 64
    out = subprocess.run(
        [str(options.llama / "llama-batched-bench"), "-m", options.model, "-t", str(options.threads), "-tb",
         str(options.threads), "-c", str(context), "-b", "2048", "-ub", "512", "-npp", str(options.prompt), "-ntg",
         str(options.gen), "-npl", f"1,{options.streams}", "--output-format", "jsonl"],
        check=True, capture_output=True, text=True).stdout
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    one, many = rows[0], rows[-1]
    return {"prefill": one["speed_pp"], "decode 1": one["speed_tg"], f"decode {options.streams}": many["speed_tg"]}


rounds = []
for _ in range(options.rounds):
    rounds.append((fermata(), llama()))
print(f"{'':12} {'fermata t/s':>12} {'llama.cpp t/s':>14} {'ratio':>7} {'lowest':>7} {'highest':>8}")
for what in rounds[0][0]:
    ratios = [f[what] / l[what] for f, l in rounds]
    print(f"{what:12} {statistics.median(f[what] for f, _ in rounds):12.1f} "
          f"{statistics.median(l[what] for _, l in rounds):14.1f} {statistics.median(ratios):7.2f} "
          f"{min(ratios):7.2f} {max(ratios):8.2f}")
