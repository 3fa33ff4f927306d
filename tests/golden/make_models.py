#!/usr/bin/env python3
"""Writes models.safetensors with PyTorch: make_models.py [FOLDER]

For every network NAME of the table, in float64: "NAME/logits", "NAME/loss" and "NAME/gradients". The weights and the
batch depend on Philox streams alone. "NAME/gradients" has one row per parameter, in order: the norm of its gradient,
and the products of the gradient with three vectors of uniform numbers in [-1, 1).
"""
import functools
import math
import pathlib
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from make_golden import Stream, TEST, write_safetensors

BATCH = 3
PERIOD = 65521  # a prime, so that all rows of a matrix differ

# In place, as torchvision's networks do it.
relu, ReLU = functools.partial(F.relu, inplace=True), functools.partial(nn.ReLU, inplace=True)


def uniform(shape, tensor):
    """Values in [-1, 1): the first PERIOD numbers of stream `tensor`, repeated."""
    numbers = Stream(TEST, tensor).uniform(np.arange(PERIOD, dtype=np.uint64))
    return torch.from_numpy(np.resize(numbers, shape)) * 2 - 1


class CifarNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 5, padding=2)
        self.conv2 = nn.Conv2d(64, 64, 5, padding=2)
        self.fc1 = nn.Linear(64 * 36, 384)
        self.fc2 = nn.Linear(384, 192)
        self.fc3 = nn.Linear(192, 10)
        self.pool = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.norm = nn.LocalResponseNorm(9, alpha=0.001, beta=0.75, k=1)

    def forward(self, x):
        x = self.norm(self.pool(relu(self.conv1(x))))
        x = self.pool(self.norm(relu(self.conv2(x))))
        return self.fc3(relu(self.fc2(relu(self.fc1(torch.flatten(x, 1))))))


class PaddedShortcut(nn.Module):
    def __init__(self, channels, stride):
        super().__init__()
        self.channels, self.stride = channels, stride

    def forward(self, x):
        more = self.channels - x.shape[1]
        return F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, more // 2, more - more // 2))


class Block(nn.Module):
    """torchvision's BasicBlock, or its Bottleneck."""

    def __init__(self, kernels, inputs, width, stride, project):
        super().__init__()
        self.convolutions = len(kernels)
        channels, strides = inputs, {len(kernels) - 2: stride}
        for i, kernel in enumerate(kernels):
            out = width * 4 if i == 2 else width
            conv = nn.Conv2d(channels, out, kernel, strides.get(i, 1), kernel // 2, bias=False)
            setattr(self, f"conv{i + 1}", conv)
            setattr(self, f"bn{i + 1}", nn.BatchNorm2d(out))
            channels = out
        self.outputs = channels
        self.downsample = nn.Sequential()
        if stride != 1 or inputs != channels:
            self.downsample = (
                nn.Sequential(nn.Conv2d(inputs, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))
                if project else PaddedShortcut(channels, stride))

    def forward(self, x):
        y = x
        for i in range(1, self.convolutions + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            y = relu(y if i < self.convolutions else y + self.downsample(x))
        return y


class ResNet(nn.Module):
    def __init__(self, kernels, width, blocks, project, imagenet=False):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7 if imagenet else 3, 2 if imagenet else 1, 3 if imagenet else 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, 1) if imagenet else nn.Sequential()
        channels = width
        for i, count in enumerate(blocks):
            layer = nn.Sequential()
            for j in range(count):
                layer.append(Block(kernels, channels, width, 2 if i > 0 and j == 0 else 1, project))
                channels = layer[-1].outputs
            setattr(self, f"layer{i + 1}", layer)
            width *= 2
        self.layers = len(blocks)
        self.fc = nn.Linear(channels, 10)

    def forward(self, x):
        x = self.maxpool(relu(self.bn1(self.conv1(x))))
        for i in range(self.layers):
            x = getattr(self, f"layer{i + 1}")(x)
        return self.fc(x.mean((2, 3)))


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 48, 11, 4, bias=False)
        self.bn1 = nn.BatchNorm2d(48, 1e-3, 3e-4)
        self.conv2 = nn.Conv2d(48, 128, 5, padding=2, bias=False)
        self.bn2 = nn.BatchNorm2d(128, 1e-3, 3e-4)
        self.norm = nn.LocalResponseNorm(5, alpha=5e-4, beta=0.75, k=2)

    def forward(self, x):
        x = self.conv1(F.pad(x, (3, 4, 3, 4)))
        x = F.max_pool2d(self.norm(relu(self.bn1(x))), 3, 2)
        return F.max_pool2d(self.norm(relu(self.bn2(self.conv2(x)))), 3, 2)


class AlexNet(nn.Module):
    def __init__(self, classes=10, dropout=0.0):
        super().__init__()
        self.tower1, self.tower2 = Tower(), Tower()
        for i, (inputs, outputs, groups) in {3: (256, 384, 1), 4: (384, 384, 2), 5: (384, 256, 2)}.items():
            setattr(self, f"conv{i}", nn.Conv2d(inputs, outputs, 3, padding=1, groups=groups, bias=False))
            setattr(self, f"bn{i}", nn.BatchNorm2d(outputs, 1e-3, 3e-4))
        self.fc6, self.fc7, self.fc8 = nn.Linear(256 * 36, 4096), nn.Linear(4096, 4096), nn.Linear(4096, classes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = torch.cat([self.tower1(x), self.tower2(x)], 1)
        for i in (3, 4, 5):
            x = relu(getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(x)))
        x = torch.flatten(F.max_pool2d(x, 3, 2), 1)
        x = self.dropout(relu(self.fc6(x)))
        return self.fc8(self.dropout(relu(self.fc7(x))))


class OneTowerAlexNet(nn.Module):
    """torchvision's AlexNet."""

    def __init__(self, classes=10, dropout=0.0):
        super().__init__()
        pool = nn.MaxPool2d(3, 2)
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 11, 4, 2), ReLU(), pool, nn.Conv2d(64, 192, 5, padding=2), ReLU(), pool,
            nn.Conv2d(192, 384, 3, padding=1), ReLU(), nn.Conv2d(384, 256, 3, padding=1), ReLU(),
            nn.Conv2d(256, 256, 3, padding=1), ReLU(), pool)
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(256 * 36, 4096), ReLU(), nn.Dropout(dropout), nn.Linear(4096, 4096), ReLU(),
            nn.Linear(4096, classes))

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


VGG_STAGES = {"A": (1, 1, 2, 2, 2), 12: (1, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


class Vgg(nn.Module):
    """torchvision's VGG. `norm` is how many parts have batch normalisation: convolutions, then the classifier too."""

    def __init__(self, depth, norm, filters, hidden, pixels=1, classes=10, dropout=0.0):
        super().__init__()
        layers, inputs, outputs = [], 3, filters
        for count in VGG_STAGES[depth]:
            for _ in range(count):
                layers.append(nn.Conv2d(inputs, outputs, 3, padding=1, bias=norm == 0))
                layers += [nn.BatchNorm2d(outputs), ReLU()] if norm > 0 else [ReLU()]
                inputs = outputs
            layers.append(nn.MaxPool2d(2))
            outputs = min(2 * outputs, 8 * filters)
        self.features = nn.Sequential(*layers)
        layers, inputs = [], inputs * pixels
        for _ in range(2):
            layers.append(nn.Linear(inputs, hidden, bias=norm < 2))
            layers += [nn.BatchNorm1d(hidden)] if norm == 2 else []
            layers += [ReLU(), nn.Dropout(dropout)]
            inputs = hidden
        layers.append(nn.Linear(hidden, classes, bias=norm < 2))
        layers += [nn.BatchNorm1d(classes, affine=False)] if norm == 2 else []
        self.classifier = nn.Sequential(*layers)

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


class BasicConv2d(nn.Module):
    def __init__(self, inputs, outputs, kernel=1, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(outputs, 1e-3)

    def forward(self, x):
        return relu(self.bn(self.conv(x)))


class Inception(nn.Module):
    """torchvision's Inception, or a module of BN-Inception: with a second convolution in the third branch."""

    def __init__(self, inputs, ones, threes, wide, pooled, pool, double=False, stride=1):
        super().__init__()
        branches = [BasicConv2d(inputs, ones)] if ones else []
        branches.append(nn.Sequential(BasicConv2d(inputs, threes[0]), BasicConv2d(*threes, 3, stride)))
        branches.append(nn.Sequential(BasicConv2d(inputs, wide[0])))
        if double:
            branches[-1].append(BasicConv2d(*wide, 3))
        branches[-1].append(BasicConv2d(wide[1] if double else wide[0], wide[1], 3, stride))
        branches.append(nn.Sequential(pool))
        if pooled:
            branches[-1].append(BasicConv2d(inputs, pooled))
        for i, branch in enumerate(branches, 1):
            setattr(self, f"branch{i}", branch)
        self.outputs = ones + threes[1] + wide[1] + (pooled or inputs)

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.children()], 1)


GOOGLENET = [(64, (96, 128), (16, 32), 32), (128, (128, 192), (32, 96), 64), 3,
             (192, (96, 208), (16, 48), 64), (160, (112, 224), (24, 64), 64), (128, (128, 256), (24, 64), 64),
             (112, (144, 288), (32, 64), 64), (256, (160, 320), (32, 128), 128), 2,
             (256, (160, 320), (32, 128), 128), (384, (192, 384), (48, 128), 128)]
BN_INCEPTION = [(64, (64, 64), (64, 96), 32), (64, (64, 96), (64, 96), 64), (0, (128, 160), (64, 96), 0),
                (224, (64, 96), (96, 128), 128), (192, (96, 128), (96, 128), 128), (160, (128, 160), (128, 160), 128),
                (96, (128, 192), (160, 192), 128), (0, (128, 192), (192, 256), 0), (352, (192, 320), (160, 224), 128),
                (352, (192, 320), (192, 224), 128)]


class GoogLeNet(nn.Module):
    def __init__(self, rows, classes=10, dropout=0.0):
        super().__init__()
        def max_pool(window):
            return nn.MaxPool2d(window, 2, ceil_mode=True)

        layers = [BasicConv2d(3, 64, 7, 2), max_pool(3), BasicConv2d(64, 64), BasicConv2d(64, 192, 3), max_pool(3)]
        inputs, double = 192, rows is BN_INCEPTION
        for row in rows:
            if isinstance(row, int):
                layers.append(max_pool(row))
                continue
            stride = 2 if row[3] == 0 else 1
            pool = nn.MaxPool2d(3, stride, 1)
            if double and stride == 1 and row is not rows[-1]:
                pool = nn.AvgPool2d(3, 1, 1, count_include_pad=False)
            layers.append(Inception(inputs, *row, pool, double, stride))
            inputs = layers[-1].outputs
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(inputs, classes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.fc(self.dropout(self.layers(x).mean((2, 3))))


BASIC, BOTTLENECK = (3, 3), (1, 3, 1)
# The network, the side of its images, and the stream of its batch if it is not 0. With stream 0, some units of the
# AlexNets lie so near the kink of a ReLU that the rounding errors of f32 decide if they are active.
MODELS = {
    "cifarnet": (CifarNet, 24),
    "resnet20": (lambda: ResNet(BASIC, 16, (3, 3, 3), False), 32),
    "resnet20_projected": (lambda: ResNet(BASIC, 16, (3, 3, 3), True), 32),
    "resnet18": (lambda: ResNet(BASIC, 64, (2, 2, 2, 2), True), 16),
    "resnet50_imagenet": (lambda: ResNet(BOTTLENECK, 64, (3, 4, 6, 3), True, imagenet=True), 32),
    "alexnet": (AlexNet, 224, 2003),
    "alexnet_one_tower": (OneTowerAlexNet, 224, 2000),
    "vgg_a": (lambda: Vgg("A", 1, 16, 96, pixels=4), 64),
    "vgg12": (lambda: Vgg(12, 2, 16, 96), 32),
    "vgg16": (lambda: Vgg(16, 1, 16, 96), 32),
    "vgg19": (lambda: Vgg(19, 0, 16, 96), 32),
    "googlenet": (lambda: GoogLeNet(GOOGLENET), 65),
    "bn_inception": (lambda: GoogLeNet(BN_INCEPTION), 65),
}


def set_parameters(model):
    """Draws the parameters from streams 1, 2, ... in the order of the parameters."""
    with torch.no_grad():
        for number, (name, parameter) in enumerate(model.named_parameters(), 1):
            draws = uniform(tuple(parameter.shape), number)
            if parameter.dim() > 1:
                parameter.copy_(draws * math.sqrt(6 / math.prod(parameter.shape[1:])))
            else:
                parameter.copy_(1 + draws * 0.25 if name.endswith("weight") else draws * 0.125)


def golden(make, side, batch=0):
    """Logits, loss and gradients of one network, in float64. `batch` is the stream of its images."""
    model = make().double()
    set_parameters(model)
    logits = model(uniform((BATCH, 3, side, side), batch).double())
    loss = F.cross_entropy(logits, torch.arange(BATCH) * 3 + 1)
    loss.backward()
    gradients = []
    for parameter in model.parameters():
        gradient = parameter.grad.flatten()
        products = [gradient @ uniform(tuple(gradient.shape), 1000 + k).double() for k in range(3)]
        gradients.append(torch.stack([gradient.norm(), *products]))
    return {"logits": logits.detach(), "loss": loss.detach(), "gradients": torch.stack(gradients)}


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    tensors = {}
    for name, (make, *images) in MODELS.items():
        tensors.update({f"{name}/{key}": value for key, value in golden(make, *images).items()})
        print(name, tensors[f"{name}/loss"].item(), sum(p.numel() for p in make().parameters()))
    write_safetensors(folder / "models.safetensors", tensors)
