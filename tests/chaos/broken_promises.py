#!/usr/bin/env python3
"""Checks that the campaign notices a broken promise.

  tests/chaos/broken_promises.py --programs FOLDER --library FILE

Each stand-in for train_mlp runs the real program and breaks one promise. A trial with it must fail, and say why.
"""
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

import files
from campaign import References, parse
from job import PROGRAM, Setting
from judging import Judge
from trials import Trial

# The details of trials that the stand-ins go through.
CLOSED = {"fault": "output closed", "moment": "step", "details": {"rank": 0, "step": 6}}
DISK = {"fault": "k-th write fails", "moment": "checkpoint", "details": {"rank": 0, "k": 12, "errno": 5}}
KILLED = {"fault": "SIGKILL", "moment": "step", "start": "by hand", "details": {"rank": 1, "step": 8}}
SUPERVISED = {**CLOSED, "start": "socket"}
DAMAGED = {"fault": "checkpoint damaged", "moment": "step",
           "details": {"step": 12, "how": "flip", "part": 0, "place": 0.5, "stopped_by": "SIGTERM"}}

# Python that listens at a port for some seconds, after its caller has gone on.
LISTEN = ("import os, socket, sys, time; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); "
          "s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen(); os.fork() and os._exit(0); time.sleep(10)")

# Each: a stand-in's lines of bash, the trial, and words of what the campaign must say. "$@" are the program's flags,
# $model is the file of --save, $real is the program.
STAND_INS = {
    "keeps all promises": ('exec "$real" "$@"', CLOSED, None),
    "keeps all promises on a broken disk": ('exec "$real" "$@"', DISK, None),
    "keeps all promises when a rank is killed": ('exec "$real" "$@"', KILLED, None),
    "exits with 0 without a model": ('"$real" "$@"; code=$?; rm "$model"; exit $code', CLOSED, "a result is missing"),
    "has other parameters": ('"$real" "$@"; code=$?; printf x >>"$model"; exit $code', CLOSED, "results differ"),
    "leaves a process": ('sleep 60 & exec "$real" "$@"', CLOSED, "processes outlive"),
    "leaves a listener": (f'"$real" "$@"; code=$?; port=${{flags##*:}}; '
                          f'env -u CHAOS_TRIAL python3 -c "{LISTEN}" "${{port%% *}}"; exit $code', SUPERVISED,
                          "still listens"),
    "leaves a temporary file": ('touch "$model.tmp-1"; exec "$real" "$@"', CLOSED, "files are left"),
    "has another exit code": ('"$real" "$@" || exit 1', DISK, "exit codes [1]"),
    "does not name the cause": ('"$real" "$@" 2>/dev/null', DISK, "expected the file"),
    "does not name the lost rank": ('exec "$real" "$@" 2> >(sed "s/rank 1 (/rank 2 (/" >&2)', KILLED, "sentences on"),
    "forgets the operation": ('exec "$real" "$@" 2> >(sed "s/ (seen by .*//" >&2)', KILLED, "and operation"),
    "ends too late": ('[ $TERN_RANK = 1 ] && exec "$real" "$@"; "$real" "$@"; code=$?; sleep 60; exit $code', KILLED,
                      "still runs"),
    "keeps all promises on a damaged checkpoint": ('exec "$real" "$@"', DAMAGED, None),
    "takes a damaged checkpoint": ('[[ $flags == *" --resume"* ]] || exec "$real" "$@"', DAMAGED, "exit codes [0]"),
    "goes on after a fault": ('"$real" "$@"; exit 0', DISK, "exit codes [0]"),
}


def broken_by(stand_in, trial, options, folder):
    """What the campaign says about a trial with this stand-in."""
    programs = folder / "programs"
    shutil.rmtree(programs, ignore_errors=True)
    programs.mkdir()
    program = programs / PROGRAM
    program.write_text(f'#!/usr/bin/env bash\nreal={shlex.quote(str(options.programs.resolve() / PROGRAM))}\nflags=" $*"\n'
                       f'model=${{flags##* --save }}; model=${{model%% *}}\n{stand_in}\n')
    program.chmod(0o755)
    whole = Setting(options.programs.resolve(), options.library.resolve(), folder)
    reference = References(whole).folder_of(trial, 10)
    place = folder / "trial"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    return Judge(Setting(programs, options.library.resolve(), folder), trial, place, reference, 1.0).judge()


def main():
    options = parse()
    failures = 0
    with tempfile.TemporaryDirectory(prefix="tern-chaos-") as name:
        folder = Path(name)
        files.write_data(folder / "data", 64)
        for words, (stand_in, kind, expected) in STAND_INS.items():
            broken = broken_by(stand_in, Trial(0, 0, method="data-parallel", ranks=3, **kind), options, folder)
            holds = not broken if expected is None else any(expected in sentence for sentence in broken)
            failures += not holds
            print(f"{'held' if holds else 'failed'}: a program that {words}: {broken}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
