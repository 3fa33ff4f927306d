#!/usr/bin/env python3
"""Writes extreme.safetensors with PyTorch: make_extreme.py [FOLDER]

A network with one hidden layer for samples of sparse features with several labels each: EmbeddingBag, BatchNorm1d with
batch statistics, ReLU, Linear without bias. The loss is the mean over the samples of the mean of -log_softmax over a
sample's labels, and 0 for a sample without labels. "features", "features.offsets", "features.values", "labels" and
"labels.offsets" are the batch. "input.weight", "norm.weight", "norm.bias" and "output.weight" are the parameters, and
"NAME/gradient" their gradients. "loss" is [1]; "top" i64 [N, 5] has the best labels of each sample. All in f64.
"""
import pathlib
import sys

import torch
from torch.nn import functional as F

from make_golden import write_safetensors

FEATURES, HIDDEN, LABELS, SAMPLES = 50, 12, 33, 9


def rows(columns, most):
    """A sparse matrix of SAMPLES rows: the columns of its elements and the offsets of its rows."""
    counts = torch.randint(1, most + 1, (SAMPLES,))
    counts[3] = 0
    indices = [torch.randperm(columns)[:count].sort().values for count in counts]
    return torch.cat(indices), torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])


def extreme_values():
    torch.manual_seed(1)
    features, feature_offsets = rows(FEATURES, 8)
    labels, label_offsets = rows(LABELS, 5)
    values = torch.rand(len(features)) + 0.5
    parameters = {
        "input.weight": torch.randn(FEATURES, HIDDEN).double(),
        "norm.weight": torch.rand(HIDDEN).double() + 0.5,
        "norm.bias": torch.randn(HIDDEN).double(),
        "output.weight": torch.randn(LABELS, HIDDEN).double(),
    }
    for parameter in parameters.values():
        parameter.requires_grad_()
    bags = F.embedding_bag(features, parameters["input.weight"], feature_offsets, mode="sum",
                           per_sample_weights=values.double(), include_last_offset=True)
    hidden = F.batch_norm(bags, None, None, parameters["norm.weight"], parameters["norm.bias"], training=True)
    logits = F.linear(hidden.relu(), parameters["output.weight"])
    log_probabilities = F.log_softmax(logits, 1)
    losses = []
    for n in range(SAMPLES):
        own = labels[label_offsets[n]:label_offsets[n + 1]]
        losses.append(-log_probabilities[n, own].mean() if len(own) else logits.new_zeros(()))
    loss = torch.stack(losses).mean()
    loss.backward()
    tensors = {"features": features, "features.offsets": feature_offsets, "features.values": values,
               "labels": labels, "labels.offsets": label_offsets, "loss": loss.detach().reshape(1),
               "top": logits.detach().topk(5).indices}
    for name, parameter in parameters.items():
        tensors[name] = parameter.detach()
        tensors[name + "/gradient"] = parameter.grad
    return tensors


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    write_safetensors(folder / "extreme.safetensors", extreme_values())
