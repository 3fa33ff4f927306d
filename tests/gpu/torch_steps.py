"""The training steps of steps.cpp in PyTorch, channels_last: ms/step of eager execution, of torch.compile and of a
replayed CUDA graph, in one run. usage: torch_steps.py"""

import statistics
import time

import torch
from torch import nn

torch.backends.cudnn.benchmark = True


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10),
    )


class Block(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.shortcut = nn.Identity()
        if stride != 1 or inner != outer:
            self.shortcut = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


def resnet18():
    layers = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    inner = 64
    for outer in (64, 128, 256, 512):
        layers += [Block(inner, outer, outer // inner), Block(outer, outer, 1)]
        inner = outer
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def make(model, batch, shape, precision, compiled=False):
    torch.manual_seed(1)
    model = model().cuda().to(memory_format=torch.channels_last)
    forward = torch.compile(model) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, fused=True)
    x = torch.randn(batch, *shape, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.arange(batch, device="cuda") % 10
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
    return 1e3 * statistics.median(seconds_of(step, steps) for _ in range(7)) / steps


CASES = [("LeNet (Caffe)", lenet, 128, (1, 28, 28)), ("ResNet-18 (CIFAR)", resnet18, 512, (3, 32, 32))]
WAYS = [
    ("eager", lambda *case: make(*case)),
    ("graph", lambda *case: graph_of(make(*case))),
    ("compile", lambda *case: make(*case, compiled=True)),
]
print(f"torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()} on {torch.cuda.get_device_name()}")
print(f"{'model':<20} {'batch':>6} {'':>6} " + " ".join(f"{name + ' ms':>12}" for name, _ in WAYS))
for name, model, batch, shape in CASES:
    for precision in ("fp32", "tf32", "bf16"):
        print(f"{name:<20} {batch:>6} {precision:>6}", end="", flush=True)
        for _, way in WAYS:
            try:
                print(f" {milliseconds(way(model, batch, shape, precision)):>12.4f}", end="", flush=True)
            except Exception as error:  # one way that fails leaves the others
                print(f" {type(error).__name__:>12.12}", end="", flush=True)
        print()
