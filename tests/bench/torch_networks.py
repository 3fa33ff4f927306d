#!/usr/bin/env python3
"""Measures training steps of tern beside PyTorch's on the CPU, both in turn: 16 pictures of 224×224 in fp32.

usage: OMP_WAIT_POLICY=PASSIVE torch_networks.py BENCH [--turns N] [--threads N,N] [NETWORK...]

BENCH is tern's benchmark program, which `./dev build` puts into build/tests/bench. Of PyTorch's two memory formats, the
faster counts. The table has the medians of all turns and their ratio, tern's time by PyTorch's.
"""
import argparse
import pathlib
import statistics
import sys

import torch
import torch.nn.functional as F

from torch_operations import tern_median, times_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
from make_models import BN_INCEPTION, GOOGLENET, GoogLeNet, Vgg  # tests compare tern's networks with these

BATCH, CLASSES = 16, 1000
NETWORKS = {
    "vgg_a": lambda: Vgg("A", 1, 64, 4096, 49, CLASSES, 0.5),
    "vgg12": lambda: Vgg(12, 2, 64, 4096, 49, CLASSES, 0.5),
    "vgg16": lambda: Vgg(16, 1, 64, 4096, 49, CLASSES, 0.5),
    "vgg19": lambda: Vgg(19, 0, 64, 4096, 49, CLASSES, 0.5),
    "googlenet": lambda: GoogLeNet(GOOGLENET, CLASSES, 0.2),
    "bn_inception": lambda: GoogLeNet(BN_INCEPTION, CLASSES),
}


def step_of(make, layout):
    """A function that trains a model for a step: forward, loss, backward and momentum update."""
    torch.manual_seed(1)
    model = make().to(memory_format=layout)
    x = torch.randn(BATCH, 3, 224, 224).contiguous(memory_format=layout)
    labels = torch.arange(BATCH) % CLASSES
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("networks", nargs="*", metavar="NETWORK", default=list(NETWORKS))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", default="1,2")
    options = parser.parse_intermixed_args()
    print(f"PyTorch {torch.__version__}, {options.turns} turns, medians in ms\n")
    print(f"{'network':<14} {'threads':>7} {'tern':>9} {'PyTorch':>9} {'ratio':>6}  PyTorch's formats")
    for name in options.networks:
        for threads in map(int, options.threads.split(",")):
            torch.set_num_threads(threads)
            own, others = [], {"nchw": [], "nhwc": []}
            for _ in range(options.turns):
                own.append(tern_median(options.bench, f"train_step/{name}/b{BATCH}/t{threads}/fp32"))
                for word, layout in (("nchw", torch.contiguous_format), ("nhwc", torch.channels_last)):
                    others[word].append(statistics.median(times_of(step_of(NETWORKS[name], layout))))
            medians = {word: statistics.median(times) for word, times in others.items()}
            ours, theirs = statistics.median(own), min(medians.values())
            formats = ", ".join(f"{word} {median:.0f}" for word, median in medians.items())
            print(f"{name:<14} {threads:>7} {ours:>9.1f} {theirs:>9.1f} {ours / theirs:>6.2f}  {formats}", flush=True)


if __name__ == "__main__":
    main()
