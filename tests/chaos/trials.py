"""Draws trials. Trial i of a seed is a function of both, and of nothing else."""
import errno
import random
import signal
from dataclasses import dataclass, field

STEPS = 24
CHECKPOINT_EVERY = 5
EVALUATE_EVERY = 2  # if the moment is an evaluation
DEAD_AFTER = 2.0  # seconds
LINK_PATIENCE = 3 * DEAD_AFTER  # of a data connection that stands still

METHODS = {
    "data-parallel": [],
    "local-sgd": ["--local-steps", "4"],
    "ist": ["--local-steps", "4"],
    "diloco": ["--local-steps", "4"],
    "sparseloco": ["--local-steps", "4"],
    "demo": ["--optimizer", "sgd", "--lr", "0.001"],
    "noloco": ["--local-steps", "4"],
}
FORMS = {  # flags that a trial may add to a method's
    "data-parallel": [[], ["--overlap"], ["--stale", "1"]],
    "ist": [[], ["--ist-momentum", "travel"], ["--ist-download", "bf16"]],
    "diloco": [[], ["--fragments", "2", "--delay", "1", "--mix", "0.3"]],
}
# The exchanges that take a codec (docs/distributed.md). "default" is that which tern chooses.
SENT = ["allgather", "server", "allgather-sent"]
FEEDBACK = {"error-feedback:topk:ratio=0.05": SENT, "error-feedback:randk:ratio=0.05": SENT,
            "topk-block:decay=0.95": SENT}
CODECS = {
    "none": ["ring", "allgather", "server", "powersgd:rank=2"],
    "fp16": ["ring", "allgather", "server"],
    "bf16": ["ring", "allgather", "server"],
    "ternary": ["allgather", "reduce-scatter", "server", "ternary-ring"],
    "qsgd:bits=4": ["allgather", "reduce-scatter", "server"],
    "onebit": ["allgather", "reduce-scatter", "server"],
    "hadamard:bits=2": ["allgather", "server"],
    **FEEDBACK,
}
EXCHANGES = ["default", "ring", "allgather", "reduce-scatter", "server", "allgather-sent", "powersgd:rank=2",
             "ternary-ring", "peer", "coordinator"]
SIGNALS = {"SIGKILL", "SIGSTOP", "SIGTERM", "SIGINT", "SIGHUP", "supervisor killed"}
CONNECTION = {"reset", "half-closed", "delayed", "truncated", "byte flipped", "duplicated"}
DISK = {"disk full", "k-th write fails", "k-th fsync fails", "k-th rename fails"}
STRANGERS = {"stranger flood", "wrong hello"}
OUTPUT = {"output blocked", "output closed"}
FAULTS = [*sorted(SIGNALS), *sorted(CONNECTION), *sorted(STRANGERS), *sorted(DISK), *sorted(OUTPUT), "clock jumps",
          "checkpoint damaged", "checkpoint swapped"]
MOMENTS = ["start", "step", "evaluation", "checkpoint", "end"]
STARTS = ["inproc", "socket", "by hand"]  # "by hand": a script starts a process for each rank


@dataclass
class Trial:
    seed: int
    index: int
    fault: str
    method: str
    ranks: int
    codec: str = "none"
    exchange: str = "default"
    moment: str = "step"
    start: str = "inproc"
    wire: str = "mac"  # unless all ranks are threads
    restarts: bool = False
    form: list = field(default_factory=list)  # more flags of the method
    impossible: list = field(default_factory=list)  # the reasons of the draws before this one
    details: dict = field(default_factory=dict)

    def step_ms(self):
        """How long a step lasts at least, so that a fault can hit it. Signs of life travel less often than data."""
        if self.fault.startswith("checkpoint "):
            return 40
        if self.details.get("kind") != "control":
            return 12
        return 400 if self.details.get("for_s", 0) > DEAD_AFTER else 60

    def flags(self):
        """The flags that decide about the bits of the result."""
        flags = ["--hidden", "64", "--local-batch-size", "4", "--iterations", str(STEPS), "--threads", "1",
                 "--eval-batch-size", "16", "--checkpoint-every", str(CHECKPOINT_EVERY), "--method", self.method,
                 *METHODS[self.method], *self.form]
        if self.codec != "none":
            flags += ["--codec", self.codec]
        if self.exchange != "default":
            flags += ["--exchange", self.exchange]
        if self.moment == "evaluation":
            flags += ["--eval-every", str(EVALUATE_EVERY)]
        return flags

    def __str__(self):
        words = [self.fault, f"at {self.moment}", " ".join([self.method, *self.form]), self.codec, self.exchange,
                 self.start, f"{self.ranks} ranks"]
        if self.start != "inproc":
            words.append(self.wire)
        if self.restarts:
            words.append("--max-restarts 2")
        return ", ".join(words + [f"{key} {value}" for key, value in self.details.items()])


def draw(seed, index, quick):
    """Trial `index` of `seed`. With `quick`, delays are 1 s at most, and nobody waits for a rank that never joins."""
    chance = random.Random(f"{seed}/{index}")
    trial = Trial(seed, index, chance.choice(FAULTS), method=chance.choice(list(METHODS)), ranks=chance.randint(2, 8))
    while True:
        trial.codec, trial.exchange = chance.choice(list(CODECS)), chance.choice(EXCHANGES)
        if not (reason := why_not_sent(trial.method, trial.codec, trial.exchange)):
            break
        trial.impossible.append(reason)
    while True:
        trial.moment, trial.start = chance.choice(MOMENTS), chance.choice(STARTS)
        trial.wire, trial.restarts = chance.choice(["mac", "plain", "tls"]), chance.random() < 0.5
        if not (reason := why_not_disturbed(trial, quick)):
            break
        trial.impossible.append(reason)
    trial.form = chance.choice(FORMS.get(trial.method, [[]]))
    trial.details = draw_details(trial, chance, quick)
    return trial


def why_not_sent(method, codec, exchange):
    """Why tern refuses to exchange what this method needs with this codec in this way. "" if it does not."""
    if method in ("demo", "noloco") and (codec != "none" or exchange != "default"):
        return f"{method} has a code and an exchange of its own"
    if method == "sparseloco" and codec not in FEEDBACK:
        return "sparseloco takes codecs with error feedback"
    if method == "ist" and codec in ("onebit", *list(FEEDBACK)):
        return "ist takes no codec with a residual"
    if (method == "ist") != (exchange in ("peer", "coordinator")) and exchange != "default":
        return "peer and coordinator are the exchanges of ist"
    if method != "ist" and exchange not in ("default", *CODECS[codec]):
        return "the exchange does not take the codec"
    return ""


def why_not_disturbed(trial, quick):
    """Why nobody can start this job with this fault, or why nothing happens in it. "" if it is possible."""
    fault, moment, threads = trial.fault, trial.moment, trial.start == "inproc"
    if trial.restarts and trial.start != "socket":
        return "--max-restarts needs a supervisor: --transport socket"
    if fault == "supervisor killed" and trial.start != "socket":
        return "only --transport socket has a supervisor"
    if threads and fault in CONNECTION | STRANGERS:
        return "threads of one process have no connections"
    if fault == "wrong hello" and trial.wire == "tls":
        return "the campaign's member speaks no TLS with a shared key"
    if fault in STRANGERS | {"clock jumps"} and moment != "start":
        return "strangers come, and clocks begin to jump, at the start"
    if fault in DISK and moment != "checkpoint":
        return "the disk is used at checkpoints; the k-th call is the moment"
    if fault.startswith("checkpoint ") and moment != "step":
        return "a checkpoint is damaged between two runs; the first one ends at a step"
    if fault in OUTPUT and moment not in ("start", "step"):
        return "output is blocked or closed at the start or at a step"
    if fault in CONNECTION and moment == "checkpoint":
        return "connections are hurt at the start, at steps, evaluations and the end"
    if fault in OUTPUT | STRANGERS | DISK | {"clock jumps"} and trial.restarts:
        return "nothing is lost, so nothing restarts"
    if quick and trial.start == "by hand" and moment == "start" and fault in CONNECTION | {"SIGKILL", "SIGSTOP"}:
        return "with --quick, nobody waits 60 s for a rank that never joins"
    return ""


def draw_details(trial, chance, quick):
    """What the names of the combination leave open."""
    ranks, fault, moment = trial.ranks, trial.fault, trial.moment
    found = {"rank": chance.randrange(ranks)}
    if moment in ("step", "evaluation"):
        found["step"] = chance.randint(1, STEPS - 4) // 2 * 2 or 1  # even: an evaluation follows
    if moment in ("start", "evaluation", "end"):
        found["wait_ms"] = chance.choice([0, 5, 20, 50, 100, 200, 300]) if moment == "start" else chance.randint(0, 40)
    if fault in SIGNALS and moment == "checkpoint":
        found["at"] = f"{chance.choice(['write', 'fsync', 'rename'])} {chance.randint(1, 4)}"
    if fault in SIGNALS and moment == "end" and chance.random() < 0.5:  # while rank 0 writes the model
        found.update(rank=0, at=chance.choice(["write 1", "write 2", "fsync 1", "rename 1"]))
    if fault in ("SIGTERM", "SIGINT", "SIGHUP"):
        found["to"] = chance.choice(["job", "rank"])
    if fault == "SIGSTOP":
        found["for_s"] = chance.choice([0.3, 0.6, None])
    if fault in CONNECTION:
        found.update(draw_connection(trial, chance, quick))
    if fault == "stranger flood":
        found.update(count=chance.choice([20, 200, 1000]), words=chance.choice(
            ["nothing", "noise", "http", "half a hello", "a hello", "TLS"]))
    if fault == "wrong hello":
        wrong = ["size", "epoch", "rank", "version", "wire", "listener", "token", "silent"]
        found["wrong"] = chance.choice(wrong + ["setting"] if trial.start == "by hand" else wrong)
    if fault == "disk full":
        found["bytes"] = chance.choice([0, 100, 3000, 300_000, 900_000, 1_500_000])
    if fault.startswith("k-th"):
        found["k"] = chance.choice([1, 2, 3, 5, 8, 13, 21])
        found["errno"] = chance.choice([errno.EIO, errno.ENOSPC, errno.EROFS, errno.EDQUOT])
    if fault == "clock jumps":
        found["seconds"] = chance.choice([1, 3600, 10**8, -(10**8)])
    if fault.startswith("checkpoint "):
        found.update(draw_damage(trial, chance))
    return found


def draw_connection(trial, chance, quick):
    """The connection from rank `rank` to rank `peer`, which is below it, and one of its directions."""
    rank = chance.randint(1, trial.ranks - 1)
    kind = chance.choice(["control", "data"])
    found = {"rank": rank, "peer": 0 if kind == "control" else chance.randrange(rank), "kind": kind,
             "direction": chance.choice(["forth", "back"])}
    if trial.moment == "start":
        found["after_bytes"] = chance.choice([0, 1, 60, 124, 150, 200, 400])
    if trial.fault == "delayed":
        short = [0.1, 0.3, 1.0]
        longer = [3.5, 6.0, 10.0] if kind == "control" else [2.0, 3.5, 8.5, 10.0]
        found["for_s"] = chance.choice(short if quick else short + longer)
        if found["for_s"] > DEAD_AFTER and trial.moment != "start":
            found["step"] = 2 * chance.randint(1, 5)
    return found


def draw_damage(trial, chance):
    if trial.fault == "checkpoint damaged":
        how = chance.choice(["flip", "truncate", "empty", "remove"])
    else:
        how = chance.choice(["older", "another run's", "another rank's"])
    first = 1 if how == "another rank's" else 0
    return {"step": chance.randint(12, STEPS - 4), "how": how, "part": chance.randrange(first, trial.ranks),
            "place": round(chance.random(), 4), "stopped_by": chance.choice(["SIGTERM", "SIGKILL"])}


def signal_of(fault):
    return getattr(signal, fault) if fault.startswith("SIG") else signal.SIGKILL
