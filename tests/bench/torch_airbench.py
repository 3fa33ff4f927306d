#!/usr/bin/env python3
"""Measures the training steps of airbench94 with Muon on the CPU, tern's beside PyTorch's, both in turn.

usage: OMP_WAIT_POLICY=PASSIVE torch_airbench.py TRAIN_AIRBENCH CIFAR10_DIR [--turns N] [--threads N,N] [--steps N]
           [--double]

Both start from the same weights and see the same batches of CIFAR-10 without augmentation. The table has the losses of
the first steps, and the medians of the steps' times with their ratio, tern's by PyTorch's. Of PyTorch's two memory
formats, the faster counts. PyTorch's side adds the losses of a batch and has the authors' rates (Jordan, 2024). With
--double, PyTorch also trains once in double precision, and the table has the distance of each loss from those. That
takes 7 GB and minutes.
"""
import argparse
import json
import lzma
import pathlib
import statistics
import struct
import subprocess
import tempfile
import time

import numpy
import torch
import torch.nn.functional as F
from torch import nn

BATCH, RECORD = 2000, 1 + 3 * 32 * 32
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


def read_images(folder):
    """The first two training files: normalised images [20000, 3, 32, 32] and labels."""
    raw = b""
    for name in ("data_batch_1.bin", "data_batch_2.bin"):
        path = folder / name
        raw += path.read_bytes() if path.exists() else lzma.open(f"{path}.xz").read()
    records = torch.from_numpy(numpy.frombuffer(raw, numpy.uint8).reshape(-1, RECORD).copy())
    images = records[:, 1:].reshape(-1, 3, 32, 32).float() / 255
    channel = lambda values: torch.tensor(values).reshape(1, 3, 1, 1)
    return (images - channel(MEAN)) / channel(DEVIATION), records[:, 0].long()


def whitening_filters(images):
    patches = images.unfold(2, 2, 1).unfold(3, 2, 1).permute(0, 2, 3, 1, 4, 5).reshape(-1, 12).double()
    values, vectors = torch.linalg.eigh(patches.T @ patches / len(patches))
    filters = (vectors / (values + 5e-4).sqrt()).T.flip(0).reshape(12, 3, 2, 2).float()
    return torch.cat([filters, -filters])


class Group(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, padding="same", bias=False)
        self.norm1 = nn.BatchNorm2d(width, eps=1e-12, momentum=0.4)
        self.conv2 = nn.Conv2d(width, width, 3, padding="same", bias=False)
        self.norm2 = nn.BatchNorm2d(width, eps=1e-12, momentum=0.4)
        for norm in (self.norm1, self.norm2):
            norm.weight.requires_grad = False
        for conv in (self.conv1, self.conv2):
            nn.init.dirac_(conv.weight.data[:conv.weight.size(1)])

    def forward(self, x):
        x = F.gelu(self.norm1(F.max_pool2d(self.conv1(x), 2)))
        return F.gelu(self.norm2(self.conv2(x)))


class Airbench(nn.Module):
    def __init__(self):
        super().__init__()
        self.whiten = nn.Conv2d(3, 24, 2)
        self.whiten.weight.requires_grad = False
        self.group1, self.group2, self.group3 = Group(24, 64), Group(64, 256), Group(256, 256)
        self.head = nn.Linear(256, 10, bias=False)
        self.head.weight.data /= self.head.weight.data.std()

    def forward(self, x):
        x = self.group3(self.group2(self.group1(F.gelu(self.whiten(x)))))
        return self.head(F.max_pool2d(x, 3).flatten(1)) / 256


def orthogonal(g, iterations=3):
    x = g.flatten(1)
    tall = x.size(0) > x.size(1)
    x = (x.T if tall else x) / (x.norm() + 1e-7)
    for _ in range(iterations):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.T if tall else x).reshape(g.shape)


class Recipe:
    """The optimizers of a run of `steps` steps."""

    def __init__(self, model, steps):
        self.steps, decay = steps, 2e-6 * BATCH
        biases = [p for name, p in model.named_parameters() if name.endswith(".bias") and "norm" in name]
        self.filters = [p for name, p in model.named_parameters() if p.ndim == 4 and p.requires_grad]
        self.velocities = [torch.zeros_like(p) for p in self.filters]
        self.rates = [0.053, 0.053, 0.67]
        groups = [[model.whiten.bias], biases, [model.head.weight]]
        self.sgd = torch.optim.SGD([{"params": group, "lr": lr, "weight_decay": decay / lr}
                                    for group, lr in zip(groups, self.rates)], momentum=0.85, nesterov=True, lr=1)

    @torch.no_grad()
    def step(self, t):
        whiten_steps = -(-3 * self.steps // 8)
        share = 1 - t / self.steps
        for i, (group, lr) in enumerate(zip(self.sgd.param_groups, self.rates)):
            group["lr"] = lr * (max(0, 1 - t / whiten_steps) if i == 0 else share)
        self.sgd.step()
        for w, v in zip(self.filters, self.velocities):
            v.mul_(0.6).add_(w.grad)
            w.mul_(len(w) ** 0.5 / w.norm())
            w.add_(orthogonal(w.grad + 0.6 * v), alpha=-0.24 * share)


def train_torch(weights, images, labels, steps, layout, dtype=torch.float32):
    """The mean losses and the times of the steps."""
    model = Airbench().to(memory_format=layout, dtype=dtype)
    model.load_state_dict(weights)
    model.train()
    recipe, losses, times = Recipe(model, steps), [], []
    for t in range(steps):
        batch = slice(t * BATCH, t * BATCH + BATCH)
        begin = time.perf_counter()
        x = images[batch].to(dtype).contiguous(memory_format=layout)
        loss = F.cross_entropy(model(x), labels[batch], label_smoothing=0.2, reduction="sum")
        model.zero_grad(set_to_none=True)
        loss.backward()
        recipe.step(t)
        losses.append(loss.item() / BATCH)
        times.append(time.perf_counter() - begin)
    return losses, times


def write_safetensors(path, tensors):
    header, at, data = {}, 0, []
    for name, tensor in tensors.items():
        raw = tensor.detach().contiguous().numpy().tobytes()
        dtype = {torch.float32: "F32", torch.int64: "I64"}[tensor.dtype]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        data.append(raw)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def train_tern(program, folder, init, steps, threads, log):
    subprocess.run([program, "--data", "cifar10", "--data-dir", folder, "--init", init, "--iterations", str(steps),
                    "--no-shuffle", "--no-augmentation", "--tta", "none", "--eval-every", "0", "--threads",
                    str(threads), "--log", log, "--quiet"], check=True)
    lines = [json.loads(line) for line in pathlib.Path(log).read_text().splitlines()]
    seconds = [0] + [line["seconds"] for line in lines if line["event"] == "step"]
    return ([line["loss"] for line in lines if line["event"] == "step"],
            [after - before for before, after in zip(seconds, seconds[1:])])


def print_distances(losses, expected, exact):
    """The relative distance of each loss from that in double precision."""
    print(f"{'step':>4} {'double':>9} {'tern':>9} {'nhwc':>9} {'nchw':>9}")
    for t, rows in enumerate(zip(exact, losses, expected["nhwc"], expected["nchw"])):
        print(f"{t + 1:>4} {rows[0]:>9.5f} " + " ".join(f"{abs(loss / rows[0] - 1):>9.1e}" for loss in rows[1:]),
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--threads", default="2")
    parser.add_argument("--double", action="store_true", help="train in double precision too")
    parser.add_argument("--steps", type=int, default=10, choices=range(2, 11), help="steps of each run [10]")
    options = parser.parse_args()
    images, labels = read_images(options.folder)
    torch.manual_seed(1)
    model = Airbench()
    model.whiten.weight.data = whitening_filters(images[:5000])
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with tempfile.TemporaryDirectory() as temporary:
        init, log = pathlib.Path(temporary) / "init.safetensors", pathlib.Path(temporary) / "log.jsonl"
        write_safetensors(init, {name: tensor for name, tensor in weights.items() if not name.endswith(
            ("norm1.weight", "norm2.weight"))})
        if options.double:
            exact, _ = train_torch(weights, images, labels, options.steps, torch.contiguous_format, torch.float64)
        for threads in map(int, options.threads.split(",")):
            torch.set_num_threads(threads)
            own, others, expected = [], {"nchw": [], "nhwc": []}, {}
            for turn in range(options.turns):
                losses, times = train_tern(options.program, options.folder, init, options.steps, threads, log)
                own += times[1:]
                for word, layout in (("nchw", torch.contiguous_format), ("nhwc", torch.channels_last)):
                    expected[word], times = train_torch(weights, images, labels, options.steps, layout)
                    others[word] += times[1:]
                if turn == 0:
                    print(f"{'step':>4} {'tern':>9} {'PyTorch':>9} {'relative':>9} {'nchw/nhwc':>9}")
                    for t, (a, b, other) in enumerate(zip(losses, expected["nhwc"], expected["nchw"])):
                        print(f"{t + 1:>4} {a:>9.5f} {b:>9.5f} {abs(a / b - 1):>9.1e} {abs(other / b - 1):>9.1e}",
                              flush=True)
                    if options.double:
                        print_distances(losses, expected, exact)
            medians = {word: statistics.median(times) for word, times in others.items()}
            ours, theirs = statistics.median(own), min(medians.values())
            formats = ", ".join(f"{word} {median:.2f}" for word, median in medians.items())
            print(f"{threads} threads, PyTorch {torch.__version__}, {options.turns} turns: tern {ours:.2f} s, "
                  f"PyTorch {theirs:.2f} s ({formats}), ratio {ours / theirs:.2f}", flush=True)


if __name__ == "__main__":
    main()
