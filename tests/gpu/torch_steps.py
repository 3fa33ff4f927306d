"""The training steps of steps.cpp in PyTorch, channels_last: ms/step of eager execution, of torch.compile and of a
replayed CUDA graph, in one run. usage: torch_steps.py [SECONDS | --check]

SECONDS: begin no measurement after so many. --check: on the CPU, one small step of every network, and how many parameters
it has.
"""

import pathlib
import statistics
import sys
import time

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "golden"))
from make_models import BASIC, AlexNet, CifarNet, ResNet  # whose outputs and gradients tern's are tested against

torch.backends.cudnn.benchmark = True


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10),
    )


CASES = [
    ("LeNet (Caffe)", lenet, 128, (1, 28, 28), 10),
    ("CifarNet", CifarNet, 128, (3, 24, 24), 10),
    ("ResNet-20", lambda: ResNet(BASIC, 16, (3, 3, 3), False), 128, (3, 32, 32), 10),
    ("ResNet-18 (CIFAR)", lambda: ResNet(BASIC, 64, (2, 2, 2, 2), True), 512, (3, 32, 32), 10),
    ("AlexNet", lambda: AlexNet(1000, 0.5), 256, (3, 224, 224), 1000),
]


def make(model, batch, shape, classes, precision, compiled=False):
    torch.manual_seed(1)
    model = model().cuda().to(memory_format=torch.channels_last)
    forward = torch.compile(model) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, fused=True)
    x = torch.randn(batch, *shape, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.arange(batch, device="cuda") % classes
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
            loss = nn.functional.cross_entropy(forward(x), labels)
        loss.backward()
        optimizer.step()

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


def milliseconds(step):
    seconds_of(step, 10)
    steps = max(5, int(0.2 / (seconds_of(step, 5) / 5)))
    return 1e3 * statistics.median(seconds_of(step, steps) for _ in range(5)) / steps


WAYS = {
    "eager": lambda *case: make(*case),
    "graph": lambda *case: graph_of(make(*case)),
    "compile": lambda *case: make(*case, compiled=True),
}


def print_table(deadline, *ways):
    print(f"{'model':<20} {'batch':>6} {'':>6} " + " ".join(f"{way + ' ms':>12}" for way in ways), flush=True)
    for name, model, batch, shape, classes in CASES:
        for precision in ("fp32", "tf32", "bf16"):
            print(f"{name:<20} {batch:>6} {precision:>6}", end="", flush=True)
            for way in ways:
                if time.monotonic() > deadline:
                    print(f" {'left out':>12}", end="")
                    continue
                try:
                    ms = milliseconds(WAYS[way](model, batch, shape, classes, precision))
                    print(f" {ms:>12.4f}", end="", flush=True)
                except Exception as error:  # one way that fails leaves the others
                    print(f" {type(error).__name__:>12.12}", end="", flush=True)
            print(flush=True)


def check():
    for name, model, _, shape, classes in CASES:
        model = model()
        loss = nn.functional.cross_entropy(model(torch.randn(4, *shape)), torch.arange(4) % classes)
        loss.backward()
        print(f"{name:<20} {sum(p.numel() for p in model.parameters()):>12,} parameters, loss {loss.item():.4f}")


if sys.argv[1:] == ["--check"]:
    check()
else:
    end = time.monotonic() + float(sys.argv[1] if sys.argv[1:] else "inf")
    print(f"torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()} on {torch.cuda.get_device_name()}")
    print_table(end, "eager", "graph")
    print_table(end, "compile")  # last: it takes long to compile every network
