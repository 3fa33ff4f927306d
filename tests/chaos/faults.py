"""Does harm to a job at the moment that its trial names."""
import os
import shutil
import signal
import time

import files
from job import TOKEN, Job, Late
from member import Member, Strangers
from relay import Relay
from trials import CONNECTION, DISK, OUTPUT, SIGNALS, STEPS, signal_of

REALLY_STOPPED_S = 1.0  # a process of threads is continued after this time, because nobody else watches it


class Disturbed:
    """A run of a trial with its fault. After `run`, it says what happened. One thread uses it."""

    def __init__(self, setting, trial, folder, patience):
        self.patience = patience  # seconds in which survivors end
        self.trial, self.details = trial, trial.details
        self.acted = None  # when the fault happened; None if it never did
        self.at_step = 0  # the last step in the log then
        self.ended = 0.0  # when the job had ended
        self.helper = None  # the relay, the strangers or the member
        self.pipe = []  # its ends that are open
        self.mark = folder / "acted-first"
        self.answered = folder / "member-answered"  # else the ranks may meet before a wrong member has its answer
        out = self._make_output() if trial.fault in OUTPUT else None
        if trial.fault in CONNECTION:
            self.helper = Relay(trial)
        more = ["--max-restarts", "2"] if trial.restarts else []
        self.job = Job(setting, trial, folder, "first", self._variables(), more, out=out)

    def _variables(self):
        """What the preloaded library shall do."""
        trial, details = self.trial, self.details
        rank = "none" if trial.start == "inproc" else str(details["rank"])
        if isinstance(self.helper, Relay):
            return self.helper.variables()
        if trial.fault == "wrong hello" and details["wrong"] != "setting":
            return {"CHAOS_WAIT_FOR": str(self.answered)}
        if "at" in details:
            whole = trial.start == "socket" and (trial.fault == "supervisor killed" or details.get("to") == "job")
            name = "/step-" if trial.moment == "checkpoint" else "/model"
            return {"CHAOS_NAME": name, "CHAOS_RANK": rank, "CHAOS_AT": details["at"],
                    "CHAOS_DO": f"signal {int(signal_of(trial.fault))} {'parent' if whole else 'self'}"}
        if trial.fault == "disk full":
            return {"CHAOS_RANK": rank, "CHAOS_BYTES": str(details["bytes"])}
        if trial.fault in DISK:
            return {"CHAOS_RANK": rank, "CHAOS_AT": f"{trial.fault.split()[1]} {details['k']}",
                    "CHAOS_DO": f"fail {details['errno']}"}
        if trial.fault == "clock jumps":
            return {"CHAOS_CLOCK": str(details["seconds"])}
        return {}

    def _make_output(self):
        """A pipe for the output. Nobody reads it."""
        self.pipe = list(os.pipe())
        if self.trial.fault == "output blocked" and self.trial.moment == "start":
            self._fill_pipe()
        return self.pipe[1]

    def _fill_pipe(self):
        own = os.open(f"/proc/self/fd/{self.pipe[1]}", os.O_WRONLY | os.O_NONBLOCK)  # the job's end stays as it is
        try:
            while True:
                os.write(own, b".")
        except BlockingIOError:
            os.close(own)

    def run(self, limit_of):
        """Runs the job. `limit_of(self)` is the time, in seconds, in which it must end after the fault."""
        try:
            self._start()
            self._harm()
            codes = self.job.wait(limit_of(self))
            self.ended = time.monotonic()
            return codes
        finally:
            if self.helper:
                self.helper.close()
            if isinstance(self.helper, Relay) and self.helper.acted:
                self.acted = self.helper.acted
            for end in self.pipe:
                os.close(end)

    def _start(self):
        trial, job = self.trial, self.job
        if trial.fault not in ("stranger flood", "wrong hello"):
            job.start()
            return
        if trial.start == "socket":
            job.start()
        else:
            job.start_rank(0)
        if self.details.get("wrong") == "setting":
            self.note()
        elif trial.fault == "wrong hello":
            self.helper = Member(trial, job.port, TOKEN)
            self.helper.join(8)
            self.answered.touch()
            if self.helper.met:
                self.note()
        else:
            self.helper = Strangers(trial, job.port)
            time.sleep(0.2)
            self.note()
        if trial.start == "by hand":
            for rank in range(1, trial.ranks):
                differs = self.details.get("wrong") == "setting" and rank == trial.ranks - 1
                job.start_rank(rank, ["--lr", "0.03"] if differs else [])

    def note(self):
        self.acted = time.monotonic()
        self.at_step = self.job.steps()

    # The moments

    def _await_moment(self):
        """Returns false if the job ends before."""
        job, moment = self.job, self.trial.moment
        if moment == "start":
            reached = job.await_ranks()
            time.sleep(self.details["wait_ms"] / 1000)
            return reached and job.running()
        reached = job.await_step(STEPS if moment == "end" else self.details["step"])
        time.sleep(self.details.get("wait_ms", 0) / 1000)
        return reached

    def _await_mark(self):
        """Waits until the preloaded library has acted, or the job has ended."""
        deadline = time.monotonic() + 60
        while not self.mark.exists():
            if not self.job.running():
                return self.mark.exists()
            if time.monotonic() > deadline:
                raise Late("the job neither ends nor comes to its fault within 60 s")
            time.sleep(0.003)
        return True

    # What happens then

    def _harm(self):
        fault, moment = self.trial.fault, self.trial.moment
        if fault in DISK | {"clock jumps"} or "at" in self.details:
            if self._await_mark():
                self.note()
                if fault == "SIGSTOP":
                    self._continue(self._target())
        elif fault in SIGNALS:
            if self._await_moment():
                self._signal()
        elif fault in CONNECTION:
            if moment != "start" and self._await_moment():
                self.helper.arm()
            deadline = time.monotonic() + 60
            while not self.helper.acted and self.job.running() and time.monotonic() < deadline:
                time.sleep(0.003)
            if self.helper.acted:
                self.note()
        elif fault in OUTPUT and self._await_moment():
            self.note()
            if fault == "output closed":
                os.close(self.pipe.pop(0))
            elif moment != "start":
                self._fill_pipe()

    def _target(self):
        """The process of the rank that the fault hits; all are one with threads."""
        ids = self.job.rank_ids()
        rank = 0 if self.trial.start == "inproc" else self.details["rank"]
        return ids[rank] if rank < len(ids) else None

    def _targets(self):
        job, trial = self.job, self.trial
        if trial.fault == "supervisor killed":
            return [job.processes[0].pid]
        alone = trial.fault in ("SIGKILL", "SIGSTOP") or self.details.get("to") == "rank"
        if trial.start == "by hand" and trial.moment == "start" and trial.fault not in ("SIGKILL", "SIGSTOP"):
            alone = False  # the others would wait for it for 60 s
        if alone:
            return [self._target()]
        return [process.pid for process in job.processes]

    def _signal(self):
        targets = self._targets()
        for target in targets:
            if target is not None and self.job.send(target, signal_of(self.trial.fault)):
                self.note()
        if self.trial.fault == "SIGSTOP" and self.acted:
            self._continue(targets[0])

    def _continue(self, target):
        """Continues a stopped process: after its time, or when the others have ended. A supervisor kills it itself."""
        pause = self.details["for_s"]
        if self.trial.start == "inproc" and pause is None:
            pause = REALLY_STOPPED_S
        if pause is None and self.trial.start == "socket":
            return
        if pause is not None:
            time.sleep(pause)
        else:
            others = [process for process in self.job.processes if process.pid != target]
            deadline = time.monotonic() + (90 if self.trial.moment == "start" else self.patience)
            while any(process.poll() is None for process in others):
                if time.monotonic() > deadline:
                    raise Late(f"the ranks that were not stopped still run after {self.patience:.0f} s")
                time.sleep(0.01)
        if target is not None:
            self.job.send(target, signal.SIGCONT)


def stop(job, name):
    """Ends a job that trains, as a user would, or kills all of it."""
    for process in job.processes:
        process.send_signal(getattr(signal, name))  # nothing happens if it has ended


def damage(job_folder, reference, details):
    """Damages one part of the newest checkpoint, or puts another file in its place. Returns its path."""
    run = job_folder / "run"
    folders = files.part_folders(run)
    newest = files.checkpoints(run)[-1].name
    part = folders[details["part"]] / newest
    how = details["how"]
    if how == "flip":
        data = bytearray(part.read_bytes())
        data[int(details["place"] * len(data))] ^= 16
        part.write_bytes(data)
    elif how in ("truncate", "empty"):
        os.truncate(part, int(details["place"] * part.stat().st_size) if how == "truncate" else 0)
    elif how == "remove":
        part.unlink()
    elif how == "older":
        older = [path for path in files.checkpoints(part.parent) if path.name < newest]
        shutil.copy(older[-1], part)
    elif how == "another run's":
        place = part.parent.relative_to(run)
        same = reference / "job" / "run" / place / newest
        shutil.copy(same if same.exists() else files.checkpoints(same.parent)[-1], part)
    else:
        others = [folder for folder in folders[1:] if folder != part.parent] or [run]
        shutil.copy(others[0] / newest, part)
    return part
