"""What must hold for each fault, as docs/distributed.md and docs/training.md promise it."""
import os
import re

import files
from faults import Disturbed, damage, stop
from job import PROGRAM, Job, Late
from member import Member
from trials import CONNECTION, DEAD_AFTER, DISK, LINK_PATIENCE, OUTPUT, STEPS, STRANGERS, signal_of

DONE, BAD_INPUT, LOST, INTERRUPTED = 0, 2, 3, 130
SLACK_S = 6.0  # on a busy machine
PATIENCE_S = DEAD_AFTER + 2 * DEAD_AFTER / 5 + 1  # of the supervisor, for ranks to end after another
JOIN_S = 60.0  # in which all ranks must join
RUN_S = 30.0  # for a whole run

# What a survivor says of a rank that is lost, or of a connection that is hurt.
CAUSE = (r"(closed its connection|cannot be reached: .*|sent nothing for [\d.]+ s|has left.*|"
         r"sent .* that (was|were) changed on the way.*|found bytes from here that were changed on the way.*|"
         r"sent \d+ bytes to rank \d+ that do not arrive: .*|"
         r"no frame of tern's: .*|speaks version .*|frame of unknown .*|frame with .* in reserved bytes|"
         r"sends \d+ bytes in .*|sent a (control )?frame of .*|is in epoch .*)")
SEEN = r" \(seen by rank \d+ in [\w ]+\)"


class Verdict:
    """Collects what did not hold."""

    def __init__(self):
        self.broken = []

    def must(self, holds, *sentence):
        if not holds:
            self.broken.append(" ".join(str(part) for part in sentence))
        return holds


def limit_after(run, scale):
    """The seconds in which a job must end after its fault."""
    trial = run.trial
    fault, slack = trial.fault, SLACK_S * scale
    by_hand = trial.start == "by hand" and fault in ("SIGKILL", "SIGSTOP")
    if trial.moment == "start" and (fault in CONNECTION or by_hand):
        return JOIN_S + DEAD_AFTER + RUN_S * scale  # the others may wait for a rank that gives up before it has joined
    if run.acted is None or trial.restarts or fault in OUTPUT | STRANGERS | {"clock jumps"}:
        return RUN_S * scale + slack
    if fault == "SIGSTOP":
        return RUN_S * scale if run.details["for_s"] or trial.start == "inproc" else DEAD_AFTER + PATIENCE_S + slack
    if fault in CONNECTION and fault != "delayed":
        return DEAD_AFTER + slack
    if fault == "delayed":
        return run.details["for_s"] + LINK_PATIENCE + RUN_S * scale
    return DEAD_AFTER + slack


class Judge:
    """Runs one trial and says what did not hold. `reference` is the folder of the undisturbed run."""

    def __init__(self, setting, trial, folder, reference, scale):
        self.setting, self.trial, self.details, self.folder = setting, trial, trial.details, folder
        self.reference, self.scale = reference, scale
        self.verdict = Verdict()
        self.jobs = []
        self.hit = False  # whether the fault happened; a job may end before

    def judge(self):
        """Returns what did not hold."""
        try:
            if self.trial.fault.startswith("checkpoint "):
                self._judge_checkpoint()
            else:
                self._judge_fault()
        except Late as late:
            self.verdict.must(False, late)
        finally:
            for job in self.jobs:
                job.kill_all()
        return self.verdict.broken

    # A fault while the job runs

    def _judge_fault(self):
        run = Disturbed(self.setting, self.trial, self.folder, DEAD_AFTER + SLACK_S * self.scale)
        self.jobs.append(run.job)
        codes = run.run(lambda run: limit_after(run, self.scale))
        self.hit = run.acted is not None
        self._expect_nothing_left(run.job)
        self._expect(run, codes)
        if any(code != DONE for code in codes) or not codes:
            self._resume()
        self._expect_results()

    def _expect(self, run, codes):
        """Checks the exit codes, and the sentences."""
        trial, must = self.trial, self.verdict.must
        texts = run.job.error_texts()
        told = "exit codes", codes, "after", trial.fault, "; stderr:", texts
        late = run.at_step >= STEPS or trial.moment == "end"
        if run.acted is None:
            must(set(codes) == {DONE}, "the fault did not happen, but found", *told)
        elif trial.fault in OUTPUT | {"clock jumps", "stranger flood"}:
            must(set(codes) == {DONE}, "found", *told)
        elif trial.fault == "wrong hello":
            self._expect_wrong_hello(run, codes, texts, told)
        elif trial.fault in DISK:
            self._expect_disk(run, codes, texts, told)
        elif trial.fault in ("SIGTERM", "SIGINT", "SIGHUP"):
            self._expect_interrupted(run, codes, texts, late, told)
        elif trial.fault == "supervisor killed":
            must(codes == [-9] or (late and codes == [DONE]), "found", *told)
        elif trial.start == "inproc":
            expected = [-9] if trial.fault == "SIGKILL" else [DONE]
            must(codes == expected or (late and codes == [DONE]), "found", *told)
        elif trial.restarts:
            must(codes == [DONE], "found", *told)
            if self._ends_job(run) and not late and not self._shows_later(run):
                must("restart 1 of 2, from " in texts[0], "no word of a restart in stderr:", texts[0])
        elif trial.fault in CONNECTION:
            self._expect_hurt_connection(run, codes, texts, late, told)
        else:
            self._expect_lost_rank(run, codes, texts, late, told)

    def _ends_job(self, run):
        """Whether the fault surely ends the job, or a restart."""
        details, fault = self.details, self.trial.fault
        if fault == "SIGSTOP":
            return details["for_s"] is None
        if fault == "SIGKILL":
            return True
        if fault == "delayed":
            longest = DEAD_AFTER if details["kind"] == "control" else LINK_PATIENCE
            return details["kind"] == "control" and details["for_s"] > longest and self.trial.moment != "start"
        if fault == "duplicated":
            return False  # it may be the last message of its direction, or a sign of life on a plain wire
        return self.trial.moment != "start"  # a rank that is turned away comes again

    def _shows_later(self, run):
        """Whether the job may have ended before the fault showed: a damaged sign of life shows with the next one."""
        return self.details.get("kind") == "control" and run.ended - run.acted < DEAD_AFTER

    def _expect_lost_rank(self, run, codes, texts, late, told):
        """SIGKILL or SIGSTOP of one rank."""
        must, lost = self.verdict.must, self.details["rank"]
        if not self._ends_job(run):
            must(set(codes) == {DONE}, "found", *told)
            return
        if late and set(codes) <= {DONE, -9}:
            return
        cause = "sent nothing for 2 s" if self.trial.fault == "SIGSTOP" else "closed its connection"
        if self.trial.start == "socket":
            must(codes == [LOST], "found", *told)
            word = "was ended by signal 9" if self.trial.fault == "SIGKILL" else "is stopped: killing it"
            must(re.search(rf"rank {lost} \(process \d+\) {word}", texts[0]), f"nothing like 'rank {lost} {word}' in",
                 texts[0])
            if self.trial.moment not in ("start", "end") and not late:
                self._expect_one_sentence([texts[0]], lost, cause)
            return
        others = [text for rank, text in enumerate(texts) if rank != lost]
        allowed = {LOST, DONE} if late else {LOST}
        must({code for rank, code in enumerate(codes) if rank != lost} <= allowed, "found", *told)
        must(codes[lost] == -9 if self.trial.fault == "SIGKILL" else codes[lost] in allowed, "found", *told)
        if self.trial.moment == "start":
            for text in others:
                must(f"rank {lost} " in text or "did not join rank" in text or "rank 0 does not answer" in text,
                     f"rank {lost} is not named in", text)
        elif not late:
            self._expect_one_sentence(others, lost, cause)

    def _expect_one_sentence(self, texts, lost, cause):
        """All survivors say the same sentence, which names the rank, the cause, and the operation of who saw it."""
        sentences = {match[0] for text in texts
                     for match in re.finditer(rf"{PROGRAM}: rank {lost} \(\S+, process \d+\) [^\n]*", text)}
        self.verdict.must(len(sentences) == 1 and all(f"{PROGRAM}: rank {lost} (" in text for text in texts),
                          f"found these sentences on rank {lost}, expected the same one from all:", sentences, texts)
        seen = "" if lost == 0 else SEEN
        for sentence in sentences:
            self.verdict.must(re.search(rf"\) {cause}{seen}$", sentence), f"expected cause '{cause}' and operation in:",
                              sentence)

    def _expect_hurt_connection(self, run, codes, texts, late, told):
        must, details, trial = self.verdict.must, self.details, self.trial
        caller, peer = details["rank"], details["peer"]
        if trial.fault == "delayed":
            shortest = DEAD_AFTER if details["kind"] == "control" else LINK_PATIENCE
            if details["for_s"] < shortest and trial.moment != "start":
                must(set(codes) == {DONE}, "found", *told)
                return
        certain = self._ends_job(run) and not late and not self._shows_later(run)
        must(set(codes) == {LOST} or (not certain and set(codes) <= {DONE, LOST}), "found", *told)
        if LOST not in codes or late or trial.moment == "start":
            return
        # If the connection for signs of life is cut, its caller no longer hears what the others say.
        alone = details["kind"] == "control" and trial.start == "by hand"
        hearing = [text for rank, text in enumerate(texts) if not alone or rank != caller]
        sentences = {match[0] for text in hearing for match in re.finditer(rf"{PROGRAM}: rank [^\n]*", text)}
        must(all(re.search(rf"{PROGRAM}: rank ({caller}|{peer}) \(\S+, process \d+\) {CAUSE}", text) for text in texts),
             f"expected rank {caller} or {peer} and a cause from each, found", texts)
        if trial.start == "by hand":
            must(len(sentences) == 1, "found these sentences, expected one:", sentences)
        for sentence in sentences:
            must(f"{PROGRAM}: rank 0 (" in sentence or re.search(rf"{SEEN}$", sentence), "no operation in:", sentence)

    def _expect_interrupted(self, run, codes, texts, late, told):
        must, trial = self.verdict.must, self.trial
        number = int(signal_of(trial.fault))
        early = trial.moment == "start" and trial.start != "socket"
        allowed = {INTERRUPTED} | ({-number, LOST} if early else set()) | ({DONE} if late else set())
        if late and trial.start != "socket":
            allowed.add(-number)  # the process has trained, and is about to end
        if not must(set(codes) <= allowed, "found", *told) or INTERRUPTED not in codes or (early and codes[0] != 130):
            return
        told_step = [re.search(r"interrupted after step (\d+)", text) for text in texts]
        if not must(sum(match is not None for match in told_step) == 1 or late, "expected one 'interrupted after step'",
                    texts):
            return
        step = next((int(match[1]) for match in told_step if match), 0)
        kept = files.checkpoints(run.job.job / "run")
        must(step == 0 or (kept and kept[-1].name == f"step-{step:08}.tern"),
             f"interrupted after step {step}, but the newest checkpoint is", kept[-1:])

    def _expect_disk(self, run, codes, texts, told):
        must, trial, rank = self.verdict.must, self.trial, self.details["rank"]
        reason = os.strerror(self.details.get("errno", 28))
        at_end = run.job.steps() >= STEPS
        sentence = rf"{re.escape(str(run.job.job))}\S*: [^\n]*{re.escape(reason)}"
        if trial.start != "by hand":
            must(codes == [BAD_INPUT], "found", *told)
            told_once = [line for line in texts[0].splitlines() if "note: " not in line]  # notes are on flight records
            must(len(re.findall(sentence, "\n".join(told_once))) == 1, f"expected the file and '{reason}', once, in",
                 texts[0])
            return
        must(codes[rank] == BAD_INPUT, "found", *told)
        must({code for at, code in enumerate(codes) if at != rank} <= ({LOST, DONE} if at_end else {LOST}), "found",
             *told)
        must(re.search(sentence, texts[rank]), f"expected the file and '{reason}' in", texts[rank])
        others = [text for at, text in enumerate(texts) if at != rank]
        if not at_end:
            self._expect_one_sentence(others, rank, rf"ended: .*{re.escape(reason)}.*")

    def _expect_wrong_hello(self, run, codes, texts, told):
        must, wrong, ranks = self.verdict.must, self.details["wrong"], self.trial.ranks
        if wrong == "setting":
            must(set(codes) == {LOST}, "found", *told)
            for text in texts:
                must(f"rank {ranks - 1}: lr=0.03, rank 0: lr=" in text, "expected the setting that differs in", text)
            return
        if wrong == "silent" and run.helper.verdict == "":  # it holds the token, so it takes the place of a rank
            must(LOST in codes and set(codes) <= {LOST}, "found", *told)
            must(any(f"rank {ranks - 1} (" in text for text in texts), f"expected rank {ranks - 1} in", texts)
            return
        must(set(codes) == {DONE}, "found", *told)
        answer = Member.ANSWERS.get(wrong, "joins a second time")
        said = run.helper.verdict
        must(said is None if answer is None else said is not None and answer in said,
             f"the member was told {said!r}, expected {answer!r}")

    # A checkpoint that is damaged between two runs

    def _judge_checkpoint(self):
        must = self.verdict.must
        first = self._start("first")
        first.await_step(self.details["step"])
        stop(first, self.details["stopped_by"])
        codes = first.wait(RUN_S * self.scale)
        killed = self.details["stopped_by"] == "SIGKILL"  # one after the other, so the last ones may see the first end
        must(set(codes) <= ({-9, LOST, DONE} if killed else {INTERRUPTED, DONE}), "found exit codes", codes)
        if first.orphans():
            must(False, "these processes outlive the job:", first.orphans())
        run = first.job / "run"
        newest = files.checkpoints(run)[-1]
        part = damage(first.job, self.reference, self.details)
        self.hit = True
        if not (self.details["how"] == "remove" and self.details["part"] == 0):  # else the one before is the newest
            self._expect_refusal(part)
            newest.unlink(missing_ok=True)
            part.unlink(missing_ok=True)
        self._resume()
        self._expect_results()

    def _expect_refusal(self, part):
        before = sorted(self.folder.glob("job/run/**/*"))
        job = self._start("refused", ["--resume"])
        codes = job.wait(RUN_S * self.scale)
        texts = job.error_texts()
        must = self.verdict.must
        must(BAD_INPUT in codes and set(codes) <= {BAD_INPUT, LOST},
             "--resume from a damaged checkpoint: found exit codes", codes, texts)
        must(any(f"{part.name}: " in text or f"{part}" in text for text in texts), f"expected {part} in", texts)
        must(sorted(self.folder.glob("job/run/**/*")) == before, "the refused run changed the checkpoint's folder")
        self._expect_nothing_left(job)

    # After each trial

    def _start(self, label, more=()):
        """Starts a run of the trial that nobody disturbs."""
        self.jobs.append(Job(self.setting, self.trial, self.folder, label, more=more))
        return self.jobs[-1].start()

    def _resume(self):
        """Goes on as a user would: from the newest checkpoint, or again from the start if there is none."""
        run = self.folder / "job" / "run"
        more = ["--resume"] if files.checkpoints(run) else []
        job = self._start("resumed", more)
        codes = job.wait(RUN_S * self.scale + SLACK_S)
        self.verdict.must(set(codes) == {DONE}, "the resumed run: found exit codes", codes, job.error_texts())
        self._expect_nothing_left(job)

    def _expect_nothing_left(self, job):
        must = self.verdict.must
        orphans = job.orphans()
        must(not orphans, "these processes outlive the job:", orphans)
        must(not job.listens(), "somebody still listens at port", job.port)
        left = [path for place in ("temporary", "runtime") for path in (self.folder / place).iterdir()]
        kills = {"SIGKILL", "SIGSTOP", "supervisor killed", "checkpoint damaged", "checkpoint swapped"}
        if job.label == "resumed" or self.trial.fault not in kills:  # the run after a kill removes its files
            left += files.temporaries(self.folder)
        must(not left, "these files are left:", left)

    def _expect_results(self):
        if self.verdict.broken:
            return
        try:
            found = files.results_of(self.folder / "job")
        except (OSError, IndexError, ValueError) as error:
            self.verdict.must(False, "a result is missing:", error)
            return
        expected = files.results_of(self.reference / "job")
        differ = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
        self.verdict.must(not differ, "these results differ from those of the undisturbed run:", differ)
