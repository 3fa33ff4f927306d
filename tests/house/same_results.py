#!/usr/bin/env python3
"""Checks that two builds train alike. The losses and payload bytes of each of 50 steps must be equal, bit for bit. The
evaluation of a model that the first build saved must be equal too.

  tests/house/same_results.py OLD_BUILD NEW_BUILD [--steps N]

A build is a folder with the programs in apps/. The data is generated.
Builds before --local-batch-size give each rank of local-sgd and ist the whole --batch-size. Exit code 0: no difference; 1: a difference.
"""
import argparse
import functools
import json
import pathlib
import subprocess
import sys
import tempfile

NETWORKS = {
    "lenet": ["train_lenet", "--data", "digits", "--batch-size", "32"],
    "cifarnet": ["train_cifarnet", "--data", "shapes", "--batch-size", "16"],
    "resnet20": ["train_resnet", "--depth", "20", "--data", "shapes", "--batch-size", "16"],
    "mlp": ["train_mlp", "--norm", "none", "--data", "digits", "--batch-size", "32"],
}
WAYS = {
    "single": [],
    "ternary": ["--workers", "2", "--codec", "ternary", "--exchange", "allgather"],
    "local-sgd": ["--workers", "2", "--method", "local-sgd"],
    "ist": ["--workers", "2", "--method", "ist", "--ist-momentum", "travel", "--exchange", "coordinator"],
}
# ResNet-20 has one linear layer, so independent subnets cut its filters. Workers with their own models keep no average.
EXTRA = {
    ("resnet20", "ist"): ["--ist-scope", "filters"],
    ("cifarnet", "local-sgd"): ["--ema-decay", "0"],
    ("cifarnet", "ist"): ["--ema-decay", "0"],
}


@functools.cache
def has_local_batch_size(program):
    return "--local-batch-size" in subprocess.run([program, "--help"], capture_output=True, text=True).stdout


def run(build, words, more):
    """The events of a run's log."""
    if "--method" in more and has_local_batch_size(str(pathlib.Path(build) / "apps" / words[0])):
        words = ["--local-batch-size" if word == "--batch-size" else word for word in words]
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        command = [str(pathlib.Path(build) / "apps" / words[0]), *words[1:], *more, "--threads", "1", "--quiet"]
        ended = subprocess.run([*command, "--log", str(log)], capture_output=True, text=True)
        if ended.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with code {ended.returncode}: {ended.stderr.strip()}")
        return [json.loads(line) for line in log.read_text().splitlines()]


def course(events):
    """The results in the log that can differ between runs, without times."""
    steps = [(e["step"], e["loss"], e.get("bytes_sent_payload")) for e in events if e["event"] == "step"]
    evaluations = [(e["step"], e["accuracy"], e["loss"]) for e in events if e["event"] == "eval"]
    return steps, evaluations


def differences(name, old, new):
    """One line for the first difference, or no line if there is none."""
    for what, of_old, of_new in zip(("step", "evaluation"), old, new):
        if len(of_old) != len(of_new):
            return [f"{name}: {len(of_old)} {what}s before, {len(of_new)} now"]
        for before, now in zip(of_old, of_new):
            if before != now:
                return [f"{name}: {what} {before} before, {now} now"]
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    found = []
    for network, words in NETWORKS.items():
        for way, flags in WAYS.items():
            more = [*flags, *EXTRA.get((network, way), []), "--iterations", str(options.steps)]
            old, new = (course(run(build, words, more)) for build in (options.old, options.new))
            wrong = differences(f"{network}, {way}", old, new)
            found += wrong
            print(wrong[0] if wrong else f"{network}, {way}: {len(old[0])} steps, the same", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            model = str(pathlib.Path(folder) / "model")
            run(options.old, words, ["--iterations", "10", "--save", model])
            old, new = (course(run(build, words, ["--init", model, "--iterations", "0"]))
                        for build in (options.old, options.new))
            wrong = differences(f"{network}, saved model", old, new)
            found += wrong
            print(wrong[0] if wrong else f"{network}, saved model: evaluated the same", flush=True)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
