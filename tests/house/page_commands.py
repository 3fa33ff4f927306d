#!/usr/bin/env python3
"""Runs the commands that README.md, CONTRIBUTING.md and docs/*.md print.

  tests/house/page_commands.py SOURCE_FOLDER APPS_FOLDER

A command is a line "$ COMMAND" of a ```console block. The first of RULES that matches says what happens to it. A command
without a rule is an error. The commands of a page run in their order in one temporary folder. In this folder,
`./dev run APP` starts the program of APPS_FOLDER. Each command must exit with 0.
"""
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

AS_PRINTED = ""
FLAGS_ONLY = " --print-config"  # reads and checks all flags, and trains nothing
BRIEFLY = " --seconds 0.02"  # the time of each measurement
LEFT_OUT = None

APP = r"^\./dev run (?:--cuda )?"
RULES = [  # what happens, the commands
    (FLAGS_ONLY, APP + r"train_extreme .*--labels 670091"),  # needs 8 GB
    (AS_PRINTED, APP + r"train_\w+ .*--iterations (100|\d\d?)\b"),
    (AS_PRINTED, APP + r"train_\w+ .*--(eval-only|print-config|help|version)\b"),
    (AS_PRINTED, APP + r"reproduce list"),
    (FLAGS_ONLY, APP + r"train_\w+"),  # trains for long, or needs data or a GPU
    (BRIEFLY, APP + r"advise"),
    (LEFT_OUT, APP + r"reproduce"),  # takes hours, and tests/apps/reproduce runs it
    (LEFT_OUT, r"train_lenet .*--rank (R|\d)\b"),  # needs other machines
    (LEFT_OUT, r"^advise postmortem"),  # needs a job that failed
    (LEFT_OUT, r"^mpirun "),  # tests/apps/trainer/job/mpi_test.cpp starts such jobs
    (LEFT_OUT, r"two_ranks|TERN_WORLD_SIZE|^build-examples/"),  # examples/ runs these
    (LEFT_OUT, r"^(git|cmake|\./dev (test|data)|tests/gpu/run\.sh)\b"),  # builds, downloads, or needs a GPU
    (LEFT_OUT, r"^ulimit"),  # each command has a shell of its own
]
LEAST = {AS_PRINTED: 8, FLAGS_ONLY: 8, BRIEFLY: 1}  # commands on all pages


def commands(page):
    """The commands of a page, without the text after '#'. A line that ends with a backslash goes on."""
    blocks = re.findall(r"^```console\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in re.sub(r"\\\n\s*", "", block).splitlines()]
    return [re.sub(r"\s+# .*", "", line[2:]) for line in lines if line.startswith("$ ")]


def rule_of(page, command):
    for added, pattern in RULES:
        if re.search(pattern, command):
            return added
    sys.exit(f"{page}: no rule says what to do with the command: {command}")


def run(page, command, folder):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TERN_")}
    environment.update(HOME=str(folder), XDG_RUNTIME_DIR=str(folder), OMP_WAIT_POLICY="PASSIVE")
    begin = time.monotonic()
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    print(f"{page}: {time.monotonic() - begin:.1f} s: {command}", flush=True)
    if done.returncode != 0:
        sys.exit(f"{page}: found exit code {done.returncode}, expected 0: {command}\n{done.stdout}")


def main():
    source, apps = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
    count = dict.fromkeys(LEAST, 0)
    for page in [source / "README.md", source / "CONTRIBUTING.md", *sorted((source / "docs").glob("*.md"))]:
        with tempfile.TemporaryDirectory() as folder:
            dev = Path(folder) / "dev"
            dev.write_text(f'#!/bin/sh\nshift\n[ "$1" != --cuda ] || shift\nexec "{apps}/$@"\n')
            dev.chmod(0o755)
            for command in commands(page):
                added = rule_of(page, command)
                if added is not LEFT_OUT:
                    run(page, command + added, folder)
                    count[added] += 1
    for added, least in LEAST.items():
        if count[added] < least:
            sys.exit(f"found {count[added]} commands that run with '{added}', expected {least} or more")


main()
