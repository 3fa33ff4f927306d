"""One run of a program in a trial: its processes, its output, and what is left of it."""
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from trials import DEAD_AFTER

TOKEN = "the token of a campaign's jobs"
PROGRAM = "train_mlp"


class Late(Exception):
    """A job or a rank did not do in time what it should."""


class Setting:
    """What all runs of a campaign share. Read only."""

    def __init__(self, programs, library, folder):
        self.program = Path(programs) / PROGRAM
        self.library = folder / library.name  # LD_PRELOAD takes no path with a space
        if not self.library.exists():
            shutil.copy(library, self.library)
        self.folder = folder
        self.data = {"small": folder / "data", "wide": folder / "wide"}


GIVEN = set()  # ports of this campaign's jobs: two trials at a time must not have the same


def free_port():
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port not in GIVEN:
            GIVEN.add(port)
            return port


class Job:
    """Starts the ranks of a trial, as threads, as processes of a supervisor, or each by itself. One thread uses it."""

    def __init__(self, setting, trial, folder, label, variables=None, more=(), start=None, out=None):
        self.trial, self.label = trial, label
        self.start_kind = start or trial.start
        self.folder = folder
        self.job = folder / "job"
        self.log = self.job / f"{label}.jsonl"
        self.mark = f"CHAOS_TRIAL={folder}"
        self.port = free_port()
        self.out = out
        self.begin = time.monotonic()
        for place in (self.job, folder / "runtime", folder / "temporary"):
            place.mkdir(exist_ok=True, parents=True)
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("TERN_", "CHAOS_"))},
            "CHAOS_TRIAL": str(folder), "CHAOS_FOLDER": str(self.job), "CHAOS_STEP_MS": str(trial.step_ms()),
            "CHAOS_ACTED": str(folder / f"acted-{label}"), "LD_PRELOAD": str(setting.library),
            "TERN_TOKEN": TOKEN, "OMP_WAIT_POLICY": "PASSIVE", "XDG_RUNTIME_DIR": str(folder / "runtime"),
            "TMPDIR": str(folder / "temporary"), **(variables or {})}
        # A sanitizer's library wants to be the first one.
        options = self.environment.get("ASAN_OPTIONS", "")
        self.environment["ASAN_OPTIONS"] = f"{options}:verify_asan_link_order=0".strip(":")
        data = setting.data["wide" if trial.moment == "evaluation" else "small"]
        self.command = [str(setting.program), "--data", "mnist", "--data-dir", str(data), *trial.flags(),
                        "--checkpoint", str(self.job / "run"), "--save", str(self.job / "model.safetensors"),
                        "--log", str(self.log), "--grace", "2", *more]
        self.processes = []
        self.outputs = []

    def start(self):
        connected = ["--wire", self.trial.wire, "--dead-after", f"{DEAD_AFTER:g}"]
        ranks = self.trial.ranks
        if self.start_kind == "inproc":
            self._spawn(["--workers", str(ranks)], {})
        elif self.start_kind == "socket":
            self._spawn(["--workers", str(ranks), "--transport", "socket", "--bind", f"127.0.0.1:{self.port}",
                         *connected], {})
        else:
            for rank in range(ranks):
                self.start_rank(rank)
        return self

    def start_rank(self, rank, more=(), variables=None):
        """Starts one rank of a job "by hand"."""
        self._spawn(["--wire", self.trial.wire, "--dead-after", f"{DEAD_AFTER:g}", *more],
                    {"TERN_RANK": str(rank), "TERN_WORLD_SIZE": str(self.trial.ranks),
                     "TERN_LOCAL_WORLD_SIZE": str(self.trial.ranks), "TERN_MASTER_ADDR": "127.0.0.1",
                     "TERN_MASTER_PORT": str(self.port), **(variables or {})})
        return self.processes[-1]

    def _spawn(self, more, variables):
        name = self.folder / f"{self.label}-{len(self.processes)}"
        self.outputs.append(Path(f"{name}.err"))
        first = not self.processes
        with open(f"{name}.out", "wb") as out, open(f"{name}.err", "wb") as err:
            self.processes.append(subprocess.Popen(
                [*self.command, *more], env={**self.environment, **variables}, stdin=subprocess.DEVNULL,
                stdout=self.out if first and self.out is not None else out, stderr=err, start_new_session=True))

    # Moments

    def running(self):
        return any(process.poll() is None for process in self.processes)

    def steps(self):
        """The last step in the log."""
        try:
            text = self.log.read_bytes()
        except FileNotFoundError:
            return 0
        at = text.rfind(b'"step","step":')
        return int(text[at + 14 : at + 24].split(b",")[0]) if at >= 0 and text.find(b"\n", at) >= 0 else 0

    def _await(self, reached, limit, pause, lack):
        """Waits until `reached()`. Returns false if the job ends before."""
        deadline = time.monotonic() + limit
        while not reached():
            if not self.running():
                return False
            if time.monotonic() > deadline:
                raise Late(f"{self.label}: {lack()}")
            time.sleep(pause)
        return True

    def await_step(self, step, limit=60):
        """Waits until the log has `step`. Returns false if the job ends before."""
        return self._await(lambda: self.steps() >= step, limit, 0.003,
                           lambda: f"found step {self.steps()} after {limit} s, expected step {step}")

    def rank_ids(self):
        """The ids of the processes of the ranks, by rank. Of a supervisor's ranks, those that it has started."""
        if self.start_kind == "socket":
            top = self.processes[0].pid
            try:
                return [int(word) for word in Path(f"/proc/{top}/task/{top}/children").read_text().split()]
            except (FileNotFoundError, ProcessLookupError):
                return []
        return [process.pid for process in self.processes]

    def await_ranks(self, limit=30):
        return self._await(lambda: self.start_kind != "socket" or len(self.rank_ids()) >= self.trial.ranks, limit, 0.001,
                           lambda: f"the supervisor has not started all ranks after {limit} s")

    def send(self, target, number):
        """Sends a signal to a process of the job. Returns false if it has ended."""
        own = [process for process in self.processes if process.pid == target]
        if own:
            own[0].send_signal(number)  # not to another process that has its id by now
            return own[0].returncode is None
        try:
            os.kill(target, number)
        except ProcessLookupError:
            return False
        return True

    # The end

    def wait(self, limit):
        """Waits until all processes have ended. Returns their exit codes; -N is signal N."""
        deadline = time.monotonic() + limit
        for process in self.processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise Late(f"{self.label}: still runs {limit:.0f} s after the fault") from None
        return [process.returncode for process in self.processes]

    def error_texts(self):
        return [path.read_text(errors="replace") for path in self.outputs]

    def orphans(self, patience=2.0):
        """The processes of this trial that still run. Those that are about to end get some time."""
        deadline = time.monotonic() + patience
        while found := self._marked():
            if time.monotonic() > deadline:
                return found
            time.sleep(0.02)
        return []

    def _marked(self):
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                if self.mark.encode() in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                    found.append(int(entry))
            except OSError:
                continue
        return found

    def listens(self):
        """Whether somebody still listens at the port of rank 0."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill_all(self):
        """Ends what is left, after a trial."""
        for process in self._marked():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        for process in self.processes:
            process.wait()
