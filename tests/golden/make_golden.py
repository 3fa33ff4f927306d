#!/usr/bin/env python3
"""Writes the golden values of this folder with PyTorch: make_golden.py [FOLDER]

layers.safetensors: for every layer NAME of the table, its state "NAME/state/...", input "NAME/x" and output "NAME/y".
For the gradient "NAME/dy" at the output, it also has "NAME/dx" and "NAME/gradient/...". "NAME/after/..." has the buffers
after the pass.
lenet.safetensors: the losses of the first steps of both LeNets. They start from the values that tern draws for seed 1.
"""
import json
import math
import pathlib
import struct
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

DTYPES = {np.dtype("float32"): "F32", np.dtype("float64"): "F64", np.dtype("int64"): "I64"}


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        array = np.ascontiguousarray(tensor)
        header[name] = {"dtype": DTYPES[array.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1, bias=False), nn.BatchNorm2d(4))
        self.shortcut = nn.Sequential(nn.Conv2d(3, 4, 1, 2, bias=False))

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


def evaluated(layer):
    for name, buffer in layer.named_buffers():
        if name.startswith("running"):
            buffer.uniform_(0.5, 1.5)
    return layer.eval()


IMAGES = (2, 3, 6, 7)
LAYERS = {
    "linear": (lambda: nn.Linear(5, 4), (3, 5)),
    "linear_without_bias": (lambda: nn.Linear(5, 4, bias=False), (3, 5)),
    "linear_relu": (lambda: nn.Sequential(nn.Linear(5, 4), nn.ReLU()), (3, 5)),
    "conv2d": (lambda: nn.Conv2d(3, 4, 3), IMAGES),
    "conv2d_relu": (lambda: nn.Sequential(nn.Conv2d(3, 4, 5, padding=2), nn.ReLU()), IMAGES),
    "conv2d_geometry": (lambda: nn.Conv2d(4, 6, (3, 2), (2, 1), (2, 1), (1, 2), 2, bias=False), (2, 4, 6, 7)),
    "conv2d_depthwise": (lambda: nn.Conv2d(3, 6, 3, 1, 1, groups=3), IMAGES),
    "batch_norm_1d": (lambda: nn.BatchNorm1d(3, momentum=0.3), (5, 3)),
    "batch_norm_2d": (lambda: nn.BatchNorm2d(3, eps=1e-3), IMAGES),
    "batch_norm_relu": (lambda: nn.Sequential(nn.BatchNorm2d(3), nn.ReLU()), IMAGES),
    "batch_norm_evaluated": (lambda: evaluated(nn.BatchNorm2d(3)), IMAGES),
    "local_response_norm": (lambda: nn.LocalResponseNorm(5, alpha=0.5, beta=0.75, k=2), (2, 7, 3, 3)),
    "max_pool2d": (lambda: nn.MaxPool2d(2), IMAGES),
    "max_pool2d_ceil": (lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True), IMAGES),
    "avg_pool2d": (lambda: nn.AvgPool2d((2, 3)), IMAGES),
    "avg_pool2d_ceil": (lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True), IMAGES),
    "avg_pool2d_inside": (lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False), IMAGES),
    "global_avg_pool2d": (lambda: nn.AdaptiveAvgPool2d(1), IMAGES),
    "relu": (nn.ReLU, (3, 5)),
    "leaky_relu": (lambda: nn.LeakyReLU(0.1), (3, 5)),
    "sigmoid": (nn.Sigmoid, (3, 5)),
    "tanh": (nn.Tanh, (3, 5)),
    "flatten": (nn.Flatten, IMAGES),
    "dropout_evaluated": (lambda: nn.Dropout(0.5).eval(), (3, 5)),
    "sequential": (lambda: nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 2)), (3, 5)),
    "residual": (Residual, IMAGES),
}
LABELS = torch.tensor([2, 0, 4])
LOSSES = {
    "cross_entropy": lambda x: F.cross_entropy(x, LABELS),
    "cross_entropy_smoothing": lambda x: F.cross_entropy(x, LABELS, label_smoothing=0.1),
    "mse": lambda x: F.mse_loss(x, torch.ones(3, 5)),
    "softmax": lambda x: F.softmax(x, 1),
    "log_softmax": lambda x: F.log_softmax(x, 1),
}


def layer_values():
    tensors = {}
    for name, (make, shape) in {**LAYERS, **{loss: (None, (3, 5)) for loss in LOSSES}}.items():
        torch.manual_seed(1)
        layer = make() if make else LOSSES[name]
        # tern has a layer and its activation in one layer.
        own = layer[0] if name.endswith("_relu") and isinstance(layer, nn.Sequential) else layer
        state = own.state_dict() if make else {}
        if name.startswith("batch_norm"):
            state["weight"].uniform_(0.5, 1.5)
            state["bias"].uniform_(-0.5, 0.5)
        tensors.update({f"{name}/state/{key}": value.clone() for key, value in state.items()})
        x = torch.randn(shape, requires_grad=True)
        y = layer(x)
        dy = torch.randn(y.shape)
        y.backward(dy)
        tensors.update({f"{name}/x": x.detach(), f"{name}/y": y.detach(), f"{name}/dy": dy, f"{name}/dx": x.grad})
        if make:
            tensors.update({f"{name}/gradient/{key}": value.grad for key, value in own.named_parameters()})
            tensors.update({f"{name}/after/{key}": value for key, value in own.named_buffers()})
    return tensors


def philox(block, tail, seed):
    """Philox4x32-10 for an array of blocks: four arrays of words."""
    mask = np.uint64(0xFFFFFFFF)
    counter = [np.asarray(block, np.uint64)] + [np.full_like(block, word, np.uint64) for word in tail]
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * counter[0], np.uint64(0xCD9E8D57) * counter[2]
        counter = [(p1 >> np.uint64(32)) ^ counter[1] ^ key[0], p1 & mask,
                   (p0 >> np.uint64(32)) ^ counter[3] ^ key[1], p0 & mask]
        key = [(key[0] + np.uint64(0x9E3779B9)) & mask, (key[1] + np.uint64(0xBB67AE85)) & mask]
    return counter


INITIALIZE, TEST = 1, 255


class Stream:
    """tern's RandomStream for seed 1."""

    def __init__(self, purpose, tensor):
        self.tail = [0, 0, purpose << 24 | tensor]

    def word(self, element):
        words = np.stack(philox(element >> np.uint64(2), self.tail, 1))
        return np.take_along_axis(words, (element & np.uint64(3)).astype(np.int64)[None], 0)[0]

    def uniform(self, element):
        return (self.word(element) >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)

    def normal(self, element):
        u = (self.word(2 * element).astype(np.float64) + 1) * 2.0**-32
        angle = self.word(2 * element + 1).astype(np.float64) * (2.0**-32 * 2 * math.pi)
        return (np.sqrt(-2 * np.log(u)) * np.cos(angle)).astype(np.float32)


def elements(shape):
    return np.arange(math.prod(shape), dtype=np.uint64)


def truncated_normal(shape, deviation, tensor):
    stream, element = Stream(INITIALIZE, tensor), elements(shape)
    draws = stream.normal(element)
    while (again := np.abs(draws) > 2).any():
        element = element + np.uint64(math.prod(shape))
        draws[again] = stream.normal(element[again])
    return torch.from_numpy((deviation * draws.astype(np.float64)).astype(np.float32).reshape(shape))


def caffe_xavier(shape, _, tensor):
    bound = math.sqrt(3 / math.prod(shape[1:]))
    draws = Stream(INITIALIZE, tensor).uniform(elements(shape)).astype(np.float64)
    return torch.from_numpy((-bound + 2 * bound * draws).astype(np.float32).reshape(shape))


class LeNet(nn.Module):
    def __init__(self, padding, pixels):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 20, 5, padding=padding)
        self.conv2 = nn.Conv2d(20, 50, 5, padding=padding)
        self.fc1 = nn.Linear(50 * pixels, 500)
        self.fc2 = nn.Linear(500, 10)
        self.activation = F.relu if padding else lambda x: x

    def forward(self, x):
        x = F.max_pool2d(self.activation(self.conv1(x)), 2)
        x = F.max_pool2d(self.activation(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(torch.flatten(x, 1))))


def lenet_losses(model, draw, steps=5, batch=4):
    """Trains with momentum 0.9 and lr 0.01. Batch n has uniform pixels in [-1, 1) and labels, both from stream n."""
    parameters = list(model.named_parameters())
    with torch.no_grad():
        for index, (name, parameter) in enumerate(parameters):
            deviation = {"conv1": 0.05, "conv2": 0.05, "fc1": 0.048, "fc2": 0.0767}[name.split(".")[0]]
            parameter.copy_(draw(tuple(parameter.shape), deviation, index) if "weight" in name else parameter * 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    losses = []
    for step in range(steps):
        shape, stream = (batch, 1, 28, 28), Stream(TEST, step)
        x = torch.from_numpy(stream.uniform(elements(shape)).reshape(shape)) * 2 - 1
        words = stream.word(np.arange(math.prod(shape), math.prod(shape) + batch, dtype=np.uint64))
        labels = torch.from_numpy((words * np.uint64(10) >> np.uint64(32)).astype(np.int64))
        loss = F.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float64)


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    torch.set_num_threads(1)
    write_safetensors(folder / "layers.safetensors", layer_values())
    write_safetensors(folder / "lenet.safetensors", {"lenet": lenet_losses(LeNet(2, 49), truncated_normal),
                                                     "caffe_lenet": lenet_losses(LeNet(0, 16), caffe_xavier)})
