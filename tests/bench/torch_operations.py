#!/usr/bin/env python3
"""Measures operations of tern beside PyTorch's on the CPU, forward and backward, both in turn.

usage: OMP_WAIT_POLICY=PASSIVE torch_operations.py BENCH [--turns N] [--filter TEXT]

BENCH is tern's benchmark program, which `./dev build` puts into build/tests/bench. The table has the medians of all
turns and their ratio, tern's time by PyTorch's.
"""
import argparse
import json
import statistics
import subprocess
import tempfile
import time

import torch
import torch.nn.functional as F

ROUND_SECONDS = 0.33


def leaf(*shape, layout=torch.contiguous_format):
    return torch.randn(*shape).contiguous(memory_format=layout).requires_grad_()


def passes(operation, *leaves):
    """A function that runs `operation` on the leaves forward and backward."""
    dy = torch.randn_like(operation(*leaves))

    def run():
        for each in leaves:
            each.grad = None
        operation(*leaves).backward(dy)

    return run


def lstm():
    model = torch.nn.LSTM(512, 1024, num_layers=3, proj_size=512)
    x = leaf(100, 16, 512)
    run = passes(lambda x: model(x)[0], x)

    def with_weights():
        model.zero_grad(set_to_none=True)
        run()

    return with_weights


def attention():
    return passes(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
                  *(leaf(8, 8, 512, 64) for _ in range(3)))


def layer_norm():
    return passes(lambda x, w, b: F.layer_norm(x, (1024,), w, b), leaf(4096, 1024), leaf(1024), leaf(1024))


def gelu():
    return passes(F.gelu, leaf(4096, 1024))


def embedding():
    tokens = torch.arange(4096) * 7919 % 50000
    return passes(lambda w: F.embedding(tokens, w), leaf(50000, 256))


def cross_entropy(**options):
    labels = torch.arange(4096) * 7919 % 2000
    return passes(lambda x: F.cross_entropy(x, labels, **options), leaf(4096, 2000))


def depthwise(layout):
    return passes(lambda x, w: F.conv2d(x, w, padding=1, groups=256), leaf(16, 256, 28, 28, layout=layout),
                  leaf(256, 1, 3, 3, layout=layout))


# Of several forms of PyTorch, the fastest counts.
OPERATIONS = {
    "lstm": [lstm],
    "attention": [attention],
    "layer_norm": [layer_norm],
    "gelu": [gelu],
    "embedding": [embedding],
    "cross_entropy": [cross_entropy],
    "cross_entropy_ignored": [lambda: cross_entropy(ignore_index=0)],
    "cross_entropy_weighted": [lambda: cross_entropy(weight=torch.full((2000,), 0.5))],
    "cross_entropy_sum": [lambda: cross_entropy(reduction="sum")],
    "depthwise": [lambda: depthwise(torch.contiguous_format), lambda: depthwise(torch.channels_last)],
}


def milliseconds(run):
    begin = time.perf_counter()
    run()
    return 1e3 * (time.perf_counter() - begin)


def times_of(run):
    run()
    guess = milliseconds(run)
    repeats = int(min(200, max(2, 1e3 * ROUND_SECONDS / guess)))
    return [milliseconds(run) for _ in range(repeats)]


def tern_median(bench, case):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([bench, "--filter", f"^{case}$", "--rounds", "1", "--json", file.name],
                       check=True, stdout=subprocess.DEVNULL)
        return json.load(open(file.name))[0]["median_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--filter", default="", help="only operations whose name has this text")
    options = parser.parse_args()
    print(f"PyTorch {torch.__version__}, {options.turns} turns, medians in ms\n")
    print(f"{'operation':<22} {'threads':>7} {'tern':>9} {'PyTorch':>9} {'ratio':>6}")
    for name, forms in OPERATIONS.items():
        if options.filter not in name:
            continue
        for threads in (1, 2):
            torch.set_num_threads(threads)
            runs = [form() for form in forms]
            own, others = [], [[] for _ in runs]
            for _ in range(options.turns):
                own.append(tern_median(options.bench, f"operation/{name}/t{threads}"))
                for run, times in zip(runs, others):
                    times.append(statistics.median(times_of(run)))
            ours, theirs = statistics.median(own), min(statistics.median(times) for times in others)
            print(f"{name:<22} {threads:>7} {ours:>9.2f} {theirs:>9.2f} {ours / theirs:>6.2f}", flush=True)


if __name__ == "__main__":
    main()
