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


class Lstm(nn.LSTM):
    def forward(self, x):
        return super().forward(x)[0]


class SelfAttention(nn.MultiheadAttention):
    def __init__(self, causal):
        super().__init__(6, 2, batch_first=True)
        self.causal = causal
        for bias in (self.in_proj_bias, self.out_proj.bias):
            bias.data.uniform_(-0.5, 0.5)

    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1) if self.causal else None
        return super().forward(x, x, x, attn_mask=mask, need_weights=False)[0]


def evaluated(layer):
    for name, buffer in layer.named_buffers():
        if name.startswith("running"):
            buffer.uniform_(0.5, 1.5)
    return layer.eval()


def shaken(layer):
    for parameter in layer.parameters():
        parameter.data.uniform_(0.5, 1.5)
    return layer


IMAGES = (2, 3, 6, 7)
LAYERS = {
    "linear": (lambda: nn.Linear(5, 4), (3, 5)),
    "linear_without_bias": (lambda: nn.Linear(5, 4, bias=False), (3, 5)),
    "linear_relu": (lambda: nn.Sequential(nn.Linear(5, 4), nn.ReLU()), (3, 5)),
    "conv2d": (lambda: nn.Conv2d(3, 4, 3), IMAGES),
    "conv2d_relu": (lambda: nn.Sequential(nn.Conv2d(3, 4, 5, padding=2), nn.ReLU()), IMAGES),
    "conv2d_geometry": (lambda: nn.Conv2d(4, 6, (3, 2), (2, 1), (2, 1), (1, 2), 2, bias=False), (2, 4, 6, 7)),
    "conv2d_depthwise": (lambda: nn.Conv2d(3, 6, 3, 1, 1, groups=3), IMAGES),
    "conv2d_same": (lambda: nn.Conv2d(3, 4, (2, 3), padding="same", dilation=(1, 2)), IMAGES),
    "conv2d_one_image": (lambda: nn.Conv2d(3, 4, 3), (3, 6, 7)),
    "conv_transpose2d": (lambda: nn.ConvTranspose2d(4, 6, (3, 2), (2, 3), 1, (1, 2), 2), (2, 4, 5, 6)),
    "batch_norm_1d": (lambda: nn.BatchNorm1d(3, momentum=0.3), (5, 3)),
    "batch_norm_2d": (lambda: nn.BatchNorm2d(3, eps=1e-3), IMAGES),
    "batch_norm_relu": (lambda: nn.Sequential(nn.BatchNorm2d(3), nn.ReLU()), IMAGES),
    "batch_norm_evaluated": (lambda: evaluated(nn.BatchNorm2d(3)), IMAGES),
    "batch_norm_bare": (lambda: nn.BatchNorm2d(3, affine=False), IMAGES),
    "batch_norm_untracked": (lambda: nn.BatchNorm1d(3, track_running_stats=False), (5, 3, 4)),
    "layer_norm": (lambda: shaken(nn.LayerNorm((6, 7))), IMAGES),
    "layer_norm_bare": (lambda: nn.LayerNorm(5, elementwise_affine=False, eps=1e-3), (3, 5)),
    "local_response_norm": (lambda: nn.LocalResponseNorm(5, alpha=0.5, beta=0.75, k=2), (2, 7, 3, 3)),
    "max_pool2d": (lambda: nn.MaxPool2d(2), IMAGES),
    "max_pool2d_ceil": (lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True), IMAGES),
    "avg_pool2d": (lambda: nn.AvgPool2d((2, 3)), IMAGES),
    "avg_pool2d_ceil": (lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True), IMAGES),
    "avg_pool2d_inside": (lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False), IMAGES),
    "global_avg_pool2d": (lambda: nn.AdaptiveAvgPool2d(1), IMAGES),
    "adaptive_avg_pool2d": (lambda: nn.AdaptiveAvgPool2d((4, 3)), IMAGES),
    "max_pool2d_large": (lambda: nn.MaxPool2d((16, 17), (4, 3), (8, 0)), (1, 2, 20, 20)),
    "upsample_nearest2d": (lambda: nn.Upsample(scale_factor=(2, 3)), IMAGES),
    "reflection_pad2d": (lambda: nn.ReflectionPad2d((1, 4, 3, 0)), IMAGES),
    "silu": (nn.SiLU, (3, 5)),
    "relu": (nn.ReLU, (3, 5)),
    "leaky_relu": (lambda: nn.LeakyReLU(0.1), (3, 5)),
    "sigmoid": (nn.Sigmoid, (3, 5)),
    "tanh": (nn.Tanh, (3, 5)),
    "flatten": (nn.Flatten, IMAGES),
    "dropout_evaluated": (lambda: nn.Dropout(0.5).eval(), (3, 5)),
    "sequential": (lambda: nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 2)), (3, 5)),
    "residual": (Residual, IMAGES),
    "lstm": (lambda: Lstm(5, 4), (6, 3, 5)),
    "lstm_projection": (lambda: Lstm(5, 4, num_layers=2, proj_size=3), (6, 3, 5)),
    "lstm_without_bias": (lambda: Lstm(5, 4, bias=False), (6, 3, 5)),
    "attention": (lambda: SelfAttention(False), (2, 5, 6)),
    "attention_causal": (lambda: SelfAttention(True), (2, 5, 6)),
}
LABELS = torch.tensor([2, 0, 4])
WEIGHTS = torch.tensor([0.5, 1, 2, 0.25, 3])
TARGETS = torch.tensor([[0.1, 0.2, 0.3, 0.4, 0], [1, 0, 0, 0, 0], [0, 0.25, 0.25, 0.25, 0.25]])
FUNCTIONS = {
    "cross_entropy_weights": lambda x: F.cross_entropy(x, LABELS, WEIGHTS, ignore_index=0, label_smoothing=0.2),
    "cross_entropy_each": lambda x: F.cross_entropy(x, LABELS, WEIGHTS, ignore_index=0, reduction="none"),
    "cross_entropy_probabilities": lambda x: F.cross_entropy(x, TARGETS, WEIGHTS, label_smoothing=0.1),
    "l1": lambda x: F.l1_loss(x, torch.ones(3, 5)),
    "mse_sum": lambda x: F.mse_loss(x, torch.ones(3, 5), reduction="sum"),
    "binary_cross_entropy_each": lambda x: F.binary_cross_entropy_with_logits(x, TARGETS, reduction="none"),
    "exp": torch.exp,
    "log": lambda x: torch.log(x.abs()),
    "sqrt": lambda x: torch.sqrt(x.abs()),
    "pow": lambda x: torch.pow(x, 3),
    "clamp": lambda x: torch.clamp(x, -0.5, 0.75),
    "numbers": lambda x: (2 - (x + 1.5) * 3) / 4 - 1 / x,
    "maximum": lambda x: torch.maximum(x, TARGETS),
    "select": lambda x: torch.where(TARGETS > 0, x, -x),
    "max": lambda x: torch.amax(x, 1),
    "min": lambda x: torch.amin(x, (0, 1)),
    "variance": lambda x: torch.var(x, 0, keepdim=True),
    "logsumexp": lambda x: torch.logsumexp(x, 0),
    "expand": lambda x: x.unsqueeze(1).expand(3, 2, 5),
    "stack": lambda x: torch.stack([x, x.exp()], 1),
    "split": lambda x: torch.split(x, [1, 3, 1], 1)[1],
    "embedding": lambda x: F.embedding(torch.tensor([[2, 0], [2, 2]]), x),
    "matmul_vectors": lambda x: torch.matmul(x[0], x.t()),
    "matmul_repeated": lambda x: torch.matmul(x.reshape(3, 1, 1, 5), x.reshape(3, 5, 1)),
    "cross_entropy": lambda x: F.cross_entropy(x, LABELS),
    "cross_entropy_smoothing": lambda x: F.cross_entropy(x, LABELS, label_smoothing=0.1),
    "mse": lambda x: F.mse_loss(x, torch.ones(3, 5)),
    "softmax": lambda x: F.softmax(x, 1),
    "log_softmax": lambda x: F.log_softmax(x, 1),
}


def layer_values():
    tensors = {}
    for name, (make, shape) in {**LAYERS, **{loss: (None, (3, 5)) for loss in FUNCTIONS}}.items():
        torch.manual_seed(1)
        layer = make() if make else FUNCTIONS[name]
        # tern has a layer and its activation in one layer.
        own = layer[0] if name.endswith("_relu") and isinstance(layer, nn.Sequential) else layer
        state = own.state_dict() if make else {}
        if name.startswith("batch_norm") and "weight" in state:
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
        self.activation = (lambda x: F.relu(x, inplace=True)) if padding else (lambda x: x)

    def forward(self, x):
        x = F.max_pool2d(self.activation(self.conv1(x)), 2)
        x = F.max_pool2d(self.activation(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(torch.flatten(x, 1)), inplace=True))


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
