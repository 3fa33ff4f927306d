"""Measures the training steps of steps.cpp in PyTorch. Prints the same columns, and each row as soon as it is measured.

usage: torch_steps.py [--seconds N] [--ways eager,graph,compiled-graph,compiled] [NETWORK...]
       torch_steps.py --check    on the CPU, without a GPU: a small step of every network, and its number of parameters

  eager            both memory formats: eager-nchw, eager-nhwc; the other ways take the faster one
  graph            the eager step as a CUDA graph
  compiled-graph   model and loss compiled (max-autotune-no-cudagraphs), the step as a CUDA graph
  compiled         model and loss compiled

It measures one way for all networks, then the next way. After N seconds it leaves out the rest.
"""
import argparse
import collections
import contextlib
import pathlib
import signal
import statistics
import sys
import time

BEGIN = time.monotonic()  # loading PyTorch takes time too
import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
from make_golden import LeNet  # tests compare tern's networks with these
from make_models import BASIC, AlexNet, CifarNet, ResNet

Case = collections.namedtuple("Case", "name model batch shape classes parameters")
CASES = [
    Case("lenet", lambda: LeNet(0, 16), 64, (1, 28, 28), 10, 431_080),
    Case("cifarnet", CifarNet, 64, (3, 24, 24), 10, 1_068_298),
    Case("resnet20", lambda: ResNet(BASIC, 16, (3, 3, 3), False), 128, (3, 32, 32), 10, 269_722),
    Case("resnet18", lambda: ResNet(BASIC, 64, (2, 2, 2, 2), True), 512, (3, 32, 32), 10, 11_173_962),
    Case("alexnet", lambda: AlexNet(1000, 0.5), 256, (3, 224, 224), 1000, 60_966_600),
]
PRECISIONS = ("bf16", "tf32", "fp32")
FORMATS = {"eager-nchw": torch.contiguous_format, "eager-nhwc": torch.channels_last}
COMPILER_MODES = {"compiled": "default", "compiled-graph": "max-autotune-no-cudagraphs"}
WAYS = ("eager", "graph", "compiled-graph", "compiled")


def make_step(case, precision, memory_format, compiler_mode=None, device="cuda"):
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    model = case.model().to(device).to(memory_format=memory_format)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, fused=True)
    x = torch.randn(case.batch, *case.shape, device=device).to(memory_format=memory_format)
    labels = torch.arange(case.batch, device=device) % case.classes

    def loss_of(x, labels):
        return nn.functional.cross_entropy(model(x), labels)

    if compiler_mode:
        torch._dynamo.reset()  # it compiles a function eight times; after that, it runs it uncompiled without a message
        loss_of = torch.compile(loss_of, mode=compiler_mode)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bf16"):
            loss = loss_of(x, labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def graph_of(step):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def seconds_of(step, steps):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def median_milliseconds(step):
    seconds_of(step, 10)
    steps = max(5, int(0.2 / (seconds_of(step, 5) / 5)))
    return 1e3 * statistics.median(seconds_of(step, steps) for _ in range(5)) / steps


class OutOfTime(Exception):
    pass


@contextlib.contextmanager
def ended_by(deadline):
    """Raises OutOfTime at the deadline, and then every two seconds, because compilers catch exceptions."""
    def ring(*_):
        raise OutOfTime

    left = deadline - time.monotonic()
    if left <= 0:
        raise OutOfTime
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, min(left, 1e6), 2)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def measure(case, precision, way, memory_format):
    step = make_step(case, precision, memory_format, COMPILER_MODES.get(way))
    return median_milliseconds(graph_of(step) if way.endswith("graph") else step)


def print_row(case, precision, way, memory_format, deadline):
    """Prints a row and returns its milliseconds, or None if it failed or was left out."""
    row = f"{case.name:<10} {case.batch:>5} {precision:<5} {way:<15}"
    try:
        with ended_by(deadline):
            ms = measure(case, precision, way, memory_format)
    except Exception as error:  # if one way fails, the others go on
        late = time.monotonic() >= deadline
        print(f"{row} {'left-out' if late else 'failed':>10}", flush=True)
        if not late:
            print(f"# {case.name} {precision} {way}: {type(error).__name__}: {str(error)[:300]}", flush=True)
        return None
    finally:
        torch.cuda.empty_cache()
    print(f"{row} {ms:>10.4f} {1e3 * case.batch / ms:>10.0f}", flush=True)
    return ms


def print_table(cases, ways, deadline):
    print(f"# torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()} on {torch.cuda.get_device_name()}")
    print(f"# {'network':<8} {'batch':>5} {'math':<5} {'way':<15} {'ms':>10} {'images/s':>10}", flush=True)
    faster_format = {}
    for way in ways:
        for case in cases:
            for precision in PRECISIONS:
                if way != "eager":
                    memory_format = faster_format.get((case, precision), torch.channels_last)
                    print_row(case, precision, way, memory_format, deadline)
                    continue
                times = {memory_format: print_row(case, precision, name, memory_format, deadline)
                         for name, memory_format in FORMATS.items()}
                times = {memory_format: ms for memory_format, ms in times.items() if ms is not None}
                if times:
                    faster_format[case, precision] = min(times, key=times.get)


def check():
    for case in CASES:
        parameters = sum(p.numel() for p in case.model().parameters())
        if parameters != case.parameters:
            sys.exit(f"torch_steps.py: {case.name} has {parameters:,} parameters, tern's has {case.parameters:,}")
        losses = []
        for precision in ("fp32", "bf16"):
            step = make_step(case._replace(batch=4), precision, torch.channels_last, device="cpu")
            losses += [step().item(), step().item()]
        print(f"{case.name:<10} {parameters:>12,} parameters; losses of two steps in fp32 and in bf16: "
              + ", ".join(f"{loss:.4f}" for loss in losses), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("networks", nargs="*", metavar="NETWORK")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        return check()
    names, ways = [case.name for case in CASES], options.ways.split(",")
    for found, known in ((options.networks, names), (ways, WAYS)):
        if not set(found) <= set(known):
            parser.error(f"found {' '.join(found)}, expected of {' '.join(known)}")
    deadline = BEGIN + options.seconds
    torch.backends.cudnn.benchmark = True
    cases = [case for case in CASES if not options.networks or case.name in options.networks]
    print_table(cases, ways, deadline)


if __name__ == "__main__":
    main()
