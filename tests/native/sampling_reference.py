"""Prints the constants of sampling_sampler.cpp: final distributions of small cases, computed with NumPy in float64.

The order is that of the design: logit_bias, repetition penalty (prompt and generated), frequency and presence
penalties (generated only), temperature, top-k, top-p, min-p. Ties rank by the lower id.
"""
import numpy as np

LOGITS = np.array([2.0, -1.0, 0.5, 2.0, 3.25, -4.0, 1.0, 0.25])
PROMPT = [4, 1, 4]
GENERATED = [0, 0, 2]
CASES = [
    ("plain", {}),
    ("temperature", dict(temperature=0.5)),
    ("top_k with a tie at the cut", dict(top_k=2)),
    ("top_p", dict(top_p=0.8)),
    ("min_p", dict(min_p=0.2)),
    ("top_k then top_p of what is left", dict(top_k=4, top_p=0.7)),
    ("bias", dict(bias={5: 6.5, 4: -100.0})),
    ("repetition", dict(repetition=1.5)),
    ("frequency and presence", dict(frequency=0.75, presence=0.5)),
    ("all at once", dict(bias={1: 2.0}, repetition=1.25, frequency=0.25, presence=0.25, temperature=0.7, top_k=6,
                         top_p=0.9, min_p=0.1)),
]


def distribution(bias=None, repetition=1.0, frequency=0.0, presence=0.0, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0):
    x = LOGITS.copy()
    for token, b in (bias or {}).items():
        x[token] += b
    for token in set(PROMPT) | set(GENERATED):
        x[token] = x[token] / repetition if x[token] > 0 else x[token] * repetition
    for token in set(GENERATED):
        x[token] -= frequency * GENERATED.count(token) + presence
    x = x / temperature
    order = sorted(range(len(x)), key=lambda i: (-x[i], i))
    if top_k:
        order = order[:top_k]
    w = np.exp(x - x.max())
    p = w[order] / w[order].sum()
    if top_p < 1:
        keep = int(np.searchsorted(np.cumsum(p), top_p)) + 1
        order, p = order[:keep], p[:keep]
    kept = [i for i, q in zip(order, p) if q >= min_p * p[0]]
    out = np.zeros(len(x))
    out[kept] = w[kept] / w[kept].sum()
    return out


if __name__ == "__main__":
    for name, how in CASES:
        print(f'    {{"{name}", {{' + ", ".join(f"{v:.9f}" for v in distribution(**how)) + "}},")
    y = LOGITS - LOGITS.max()
    print("log-softmax:", ", ".join(f"{v:.8f}" for v in y - np.log(np.exp(y).sum())))
