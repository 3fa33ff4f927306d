#!/usr/bin/env python3
"""Measures training steps of tern beside PyTorch's on the CPU, both in turn, in fp32.

usage: OMP_WAIT_POLICY=PASSIVE torch_networks.py BENCH [--memory] [--turns N] [--threads N,N] [NETWORK...]

BENCH is tern's benchmark program, which `./dev build` puts into build/tests/bench. Of PyTorch's two memory formats, the
better one counts. The table has the medians of all turns and their ratio, tern's by PyTorch's.

With --memory, the table has MiB instead of ms: the peak of a process that trains for some steps, less the peak of one
that only starts.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys

import torch
import torch.nn.functional as F
from torch import nn

from torch_operations import tern_median, times_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
from make_golden import LeNet  # tests compare tern's networks with these
from make_models import BASIC, BN_INCEPTION, GOOGLENET, CifarNet, GoogLeNet, OneTowerAlexNet, ResNet, Vgg

FORMATS = {"nchw": torch.contiguous_format, "nhwc": torch.channels_last}
PHOTOS = (16, 3, 224, 224), 1000


def mlp():
    return nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Linear(4096, 35))


# Name: how to make it, the shape of a batch, the number of classes.
NETWORKS = {
    "lenet": (lambda: LeNet(2, 49), (64, 1, 28, 28), 10),
    "lenet_caffe": (lambda: LeNet(0, 16), (64, 1, 28, 28), 10),
    "mlp4096": (mlp, (64, 4096), 35),
    "cifarnet": (CifarNet, (64, 3, 24, 24), 10),
    "resnet20": (lambda: ResNet(BASIC, 16, (3, 3, 3), False), (64, 3, 32, 32), 10),
    "resnet18": (lambda: ResNet(BASIC, 64, (2, 2, 2, 2), True), (64, 3, 32, 32), 10),
    "alexnet224": (lambda: OneTowerAlexNet(1000, 0.5), (32, 3, 224, 224), 1000),
    "vgg_a": (lambda: Vgg("A", 1, 64, 4096, 49, 1000, 0.5), *PHOTOS),
    "vgg12": (lambda: Vgg(12, 2, 64, 4096, 49, 1000, 0.5), *PHOTOS),
    "vgg16": (lambda: Vgg(16, 1, 64, 4096, 49, 1000, 0.5), *PHOTOS),
    "vgg19": (lambda: Vgg(19, 0, 64, 4096, 49, 1000, 0.5), *PHOTOS),
    "googlenet": (lambda: GoogLeNet(GOOGLENET, 1000, 0.2), *PHOTOS),
    "bn_inception": (lambda: GoogLeNet(BN_INCEPTION, 1000), *PHOTOS),
}


def step_of(name, layout):
    """A function that trains a model for a step: forward, loss, backward and momentum update."""
    make, shape, classes = NETWORKS[name]
    torch.manual_seed(1)
    model, x = make(), torch.randn(shape)
    if len(shape) == 4:
        model, x = model.to(memory_format=layout), x.contiguous(memory_format=layout)
    labels = torch.arange(shape[0]) % classes
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def case_of(name, threads):
    return f"train_step/{name}/b{NETWORKS[name][1][0]}/t{threads}/fp32"


# The kernel counts what a process has before `exec` too, so each one starts from a small process.
WATCH = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(usage.ru_maxrss)
sys.exit(status != 0)
"""


def peak_mib(*command):
    done = subprocess.run([sys.executable, "-S", "-c", WATCH, *command], check=True, stdout=subprocess.PIPE)
    return int(done.stdout) / 1024


def tern_peak(bench, case):
    return peak_mib(bench, "--filter", f"^{case}$", "--rounds", "1") - peak_mib(bench, "--help")


def train(name, threads, word, steps):
    torch.set_num_threads(threads)
    step = step_of(name, FORMATS[word]) if steps else None
    for _ in range(steps):
        step()


def torch_peak(name, threads, word):
    """Trains in a process of its own, because a peak never falls."""
    def peak(steps):
        here = str(pathlib.Path(__file__).resolve().parent)
        return peak_mib(sys.executable, "-c", f"import sys; sys.path.insert(0, {here!r}); "
                        f"import torch_networks; torch_networks.train({name!r}, {threads}, {word!r}, {steps})")

    return peak(5) - peak(0)


def row(options, name, threads):
    """Medians of tern, and of each of PyTorch's formats."""
    own, others = [], {word: [] for word in FORMATS if len(NETWORKS[name][1]) == 4 or word == "nchw"}
    for _ in range(options.turns):
        if options.memory:
            own.append(tern_peak(options.bench, case_of(name, threads)))
        else:
            torch.set_num_threads(threads)
            own.append(tern_median(options.bench, case_of(name, threads)))
        for word, turns in others.items():
            if options.memory:
                turns.append(torch_peak(name, threads, word))
            else:
                turns.append(statistics.median(times_of(step_of(name, FORMATS[word]))))
    return statistics.median(own), {word: statistics.median(turns) for word, turns in others.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("networks", nargs="*", metavar="NETWORK", default=list(NETWORKS))
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", default="1,2")
    options = parser.parse_intermixed_args()
    print(f"PyTorch {torch.__version__}, {options.turns} turns, medians in {'MiB' if options.memory else 'ms'}\n")
    print(f"{'network':<14} {'threads':>7} {'tern':>9} {'PyTorch':>9} {'ratio':>6}  PyTorch's formats")
    for name in options.networks:
        for threads in map(int, options.threads.split(",")):
            ours, others = row(options, name, threads)
            theirs = min(others.values())
            formats = ", ".join(f"{word} {median:.1f}" for word, median in others.items())
            print(f"{name:<14} {threads:>7} {ours:>9.1f} {theirs:>9.1f} {ours / theirs:>6.2f}  {formats}", flush=True)


if __name__ == "__main__":
    main()
