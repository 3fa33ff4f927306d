#!/usr/bin/env python3
"""Disturbs small training jobs in many ways, and checks what tern promises (./dev chaos).

  tests/chaos/campaign.py --programs FOLDER --library FILE [OPTIONS]

Trial i of a seed is always the same. A trial that fails leaves its folder and prints a line that repeats it. The exit
code is 1 if a trial failed, or if a fault with several trials never came in time.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import files
import trials
from job import PROGRAM, Job, Late, Setting
from judging import DONE, RUN_S, Judge

BUILD = Path(__file__).resolve().parents[2] / "build"


class References:
    """Runs that nobody disturbs, one for each setting: as threads, because every transport gives the same bits."""

    def __init__(self, setting):
        self.setting = setting
        self.lock = threading.Lock()
        self.locks = collections.defaultdict(threading.Lock)

    def folder_of(self, trial, scale):
        """The folder of the run with the trial's flags, which runs now if it did not before."""
        key = hashlib.sha256(f"{trial.flags()} {trial.ranks}".encode()).hexdigest()[:16]
        folder = self.setting.folder / f"reference-{key}"
        with self.lock:
            lock = self.locks[key]
        with lock:
            if not (folder / "whole").exists():
                shutil.rmtree(folder, ignore_errors=True)
                job = Job(self.setting, trial, folder, "first", start="inproc").start()
                codes = job.wait(4 * RUN_S * scale)
                if codes != [DONE]:
                    raise Late(f"the undisturbed run: found exit codes {codes}: {job.error_texts()}")
                files.results_of(folder / "job")
                (folder / "whole").touch()
        return folder


class Campaign:
    """Runs trials, several at a time, and counts them."""

    def __init__(self, setting, options):
        self.setting, self.options = setting, options
        self.references = References(setting)
        self.lock = threading.Lock()
        self.tried, self.hit, self.held = (collections.Counter() for _ in range(3))
        self.failed = []
        self.impossible = collections.Counter()
        self.seconds = 0.0
        self.scale = 1.0
        self.deadline = time.monotonic() + 60 * options.minutes if options.minutes is not None else float("inf")

    def settle(self):
        """Measures the machine: on a slow one, or with a sanitizer, deadlines are longer."""
        begin = time.monotonic()
        self.references.folder_of(trials.Trial(0, 0, "", "data-parallel", 2), scale=10)
        self.scale = max(1.0, time.monotonic() - begin)

    def run(self, indices):
        """Runs trials until all are done, the time is over, or Ctrl-C. Returns those that failed."""
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            try:
                list(pool.map(self._try, indices))
            except KeyboardInterrupt:
                self.deadline = 0.0  # trials that have begun go on to their end
        return self.failed

    def _try(self, index):
        if time.monotonic() > self.deadline:
            return
        trial = trials.draw(self.options.seed, index, self.options.quick)
        folder = self.setting.folder / f"{trial.seed}-{index}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        begin = time.monotonic()
        try:
            reference = self.references.folder_of(trial, self.scale)
            judge = Judge(self.setting, trial, folder, reference, self.scale)
            broken, hit = judge.judge(), judge.hit
        except Exception as error:  # a mistake of the campaign counts as a failed trial, too
            broken, hit = [f"{type(error).__name__}: {error}"], False
        self._count(trial, folder, broken, hit, time.monotonic() - begin)

    def _count(self, trial, folder, broken, hit, seconds):
        with self.lock:
            self.tried[trial.fault] += 1
            self.hit[trial.fault] += hit
            self.seconds += seconds
            self.impossible.update(trial.impossible)
            quick = " --quick" if self.options.quick else ""
            print(f"{'failed' if broken else 'held'}, {seconds:.1f} s: ./dev chaos --seed {trial.seed} "
                  f"--only {trial.index}{quick}  # {trial}", flush=True)
            if not broken:
                self.held[trial.fault] += 1
                shutil.rmtree(folder, ignore_errors=True)
                return
            self.failed.append(trial.index)
            for sentence in [*broken, f"its files: {folder}"]:
                print(f"  {sentence}", flush=True)

    def never_hit(self):
        """The faults of several trials that held and never happened: the campaign cannot make them here."""
        return [fault for fault, held in self.held.items() if held >= 5 and not self.hit[fault]]

    def print_table(self):
        print(f"\n{'fault':22}{'tried':>7}{'held':>7}{'failed':>7}{'too late':>10}")
        for fault in [*trials.FAULTS, "all"]:
            tried, hit, held = (sum(counts.values()) if fault == "all" else counts[fault]
                                for counts in (self.tried, self.hit, self.held))
            print(f"{fault:22}{tried:7}{held:7}{tried - held:7}{tried - hit:10}")
        print(f"too late: the job ended before its fault, and is counted as held or failed\nseed {self.options.seed}; "
              f"{self.seconds / max(1, tried):.1f} s a trial, {self.options.jobs} at a time\n\n"
              "draws that are impossible, or that the campaign cannot make, and that are not counted:")
        for reason, count in self.impossible.most_common():
            print(f"{count:7}  {reason}")


def number(kind, least):
    """Reads a number of `kind` that is `least` at least."""
    def read(text):
        value = kind(text)
        if not value >= least:
            raise argparse.ArgumentTypeError(f"found {text}, expected {least} or more")
        return value
    read.__name__ = kind.__name__
    return read


def parse():
    parser = argparse.ArgumentParser(prog="./dev chaos", description="Disturb small training jobs, and check what "
                                     "tern promises: exit codes, sentences, nothing left, and the same bits after all.")
    parser.add_argument("--programs", type=Path, metavar="FOLDER", default=BUILD / "apps",
                        help="folder of train_mlp, for example build-asan/apps [build/apps]")
    parser.add_argument("--library", type=Path, default=BUILD / "tests/chaos/libfaulty_system.so",
                        help=argparse.SUPPRESS)
    parser.add_argument("--trials", type=number(int, 1), default=100, metavar="N", help="number of trials [100]")
    parser.add_argument("--seed", type=number(int, 0), default=1, metavar="S", help="seed of the trials [1]")
    parser.add_argument("--minutes", type=number(float, 0), metavar="M", help="begin no trial after this time")
    parser.add_argument("--only", type=number(int, 0), metavar="I", help="only trial I of the seed")
    parser.add_argument("--jobs", type=number(int, 1), default=4, metavar="N", help="trials at a time [4]")
    parser.add_argument("--quick", action="store_true", help="delays of 1 s at most")
    options = parser.parse_args()
    for file in (options.programs / PROGRAM, options.library):
        if not file.is_file():
            parser.error(f"found no {file}, expected a build with it")
    return options


def take_signals():
    """Lets jobs take the signals that this process ignores, for example under nohup. A job would ignore them, too."""
    for number in (signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # at exec, a handler becomes the default


def main():
    options = parse()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # for strangers
    take_signals()
    folder = Path(tempfile.mkdtemp(prefix="tern-chaos-"))
    setting = Setting(options.programs.resolve(), options.library.resolve(), folder)
    files.write_data(setting.data["small"], 64)
    files.write_data(setting.data["wide"], 3000)
    campaign = Campaign(setting, options)
    try:
        campaign.settle()
        campaign.run([options.only] if options.only is not None else range(options.trials))
        campaign.print_table()
        for fault in campaign.never_hit():
            print(f"failed: the fault '{fault}' never came before the end of its job")
    finally:
        for place in folder.glob("reference-*") if campaign.failed else [folder]:
            shutil.rmtree(place, ignore_errors=True)
    return 1 if campaign.failed or campaign.never_hit() else 0


if __name__ == "__main__":
    sys.exit(main())
