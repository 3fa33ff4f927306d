"""LeNet's training step in PyTorch, as Caffe and train_lenet --variant caffe have it: images/s of eager execution, of
torch.compile and of a replayed CUDA graph, in one run. usage: torch_lenet.py [BATCH]"""

import statistics
import sys
import time

import torch
from torch import nn

batch = int(sys.argv[1]) if len(sys.argv) > 1 else 128
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True


def make():
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10),
    ).cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
    x = torch.randn(batch, 1, 28, 28, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(10, (batch,), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()

    return model, step


def graph_of(step):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def milliseconds(step):
    for _ in range(30):
        step()
    times = []
    for _ in range(7):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(100):
            step()
        torch.cuda.synchronize()
        times.append(10 * (time.perf_counter() - begin))
    return statistics.median(times)


print(f"torch {torch.__version__} on {torch.cuda.get_device_name()}, LeNet, batch {batch}, fp32")
ways = {"eager": lambda: make()[1], "torch.compile": lambda: torch.compile(make()[1]), "CUDA graph": lambda: graph_of(make()[1])}
for name, way in ways.items():
    try:
        each = milliseconds(way())
        print(f"{name:<14} {each:8.4f} ms/step {1e3 * batch / each:12.0f} images/s")
    except Exception as error:  # one way that fails leaves the others
        print(f"{name:<14} failed: {error}")
