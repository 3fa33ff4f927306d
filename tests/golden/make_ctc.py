#!/usr/bin/env python3
"""Writes ctc.safetensors with PyTorch: make_ctc.py [FOLDER]

For every case NAME: "NAME/logits" [T, N, C], "NAME/labels" [N, S], "NAME/input_lengths" and "NAME/label_lengths" [N];
"NAME/options" holds the blank and whether infinite losses become 0. PyTorch's answers in f64 are "NAME/none" [N], and
"NAME/mean" and "NAME/sum" [1], with the gradients by the logits "NAME/mean/gradient" and "NAME/sum/gradient".
"""
import pathlib
import sys

import torch
from torch.nn import functional as F

from make_golden import write_safetensors

# Frames, classes, input lengths, label lengths, blank, zero_infinity.
CASES = {
    "one": (7, 4, [7], [3], 0, False),
    "batch": (20, 6, [20, 13, 17, 20], [5, 3, 0, 9], 0, False),
    "blank_last": (15, 5, [15, 15], [4, 6], 4, False),
    "no_path": (6, 4, [6, 3, 6], [2, 3, 1], 0, True),
    "speech": (60, 20, [60, 51], [24, 17], 19, False),
}


def repeated(labels):
    """Every third label is that before it, so that paths need blanks between equal ones."""
    labels[:, 2::3] = labels[:, 1:-1:3]
    return labels


def ctc_values():
    tensors = {}
    torch.manual_seed(1)
    for name, (frames, classes, inputs, lengths, blank, zero) in CASES.items():
        logits = (2 * torch.randn(frames, len(inputs), classes)).double()
        kinds = torch.tensor([c for c in range(classes) if c != blank])
        labels = repeated(kinds[torch.randint(len(kinds), (len(inputs), max(lengths)))])
        if zero:
            labels[1, :3] = kinds[0]
        options = torch.tensor([blank, int(zero)])
        tensors.update({f"{name}/logits": logits, f"{name}/labels": labels, f"{name}/options": options,
                        f"{name}/input_lengths": torch.tensor(inputs), f"{name}/label_lengths": torch.tensor(lengths)})
        for reduction in ("none", "mean", "sum"):
            x = logits.clone().requires_grad_()
            loss = F.ctc_loss(F.log_softmax(x, -1), labels, torch.tensor(inputs), torch.tensor(lengths), blank,
                              reduction, zero)
            tensors[f"{name}/{reduction}"] = loss.detach().reshape(-1)
            if reduction != "none":
                loss.backward()
                tensors[f"{name}/{reduction}/gradient"] = x.grad
    return tensors


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    torch.set_num_threads(1)
    write_safetensors(folder / "ctc.safetensors", ctc_values())
