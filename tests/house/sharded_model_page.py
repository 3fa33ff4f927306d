#!/usr/bin/env python3
"""Runs the Python code that docs/distributed.md prints for the files of a sharded model.

  tests/house/sharded_model_page.py SOURCE_FOLDER APPS_FOLDER

The tensors that it joins must equal those that tern joins from the same files. PyTorch and safetensors need not be
installed: nested lists take the place of tensors.
"""
import array
import json
import math
import re
import struct
import subprocess
import sys
import tempfile
import types
from pathlib import Path


def nested(values, shape):
    if len(shape) <= 1:
        return list(values) if shape else values[0]
    step = math.prod(shape[1:])
    return [nested(values[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])]


def cat(parts, dimension):
    if dimension == 0:
        return [row for part in parts for row in part]
    return [cat(rows, dimension - 1) for rows in zip(*parts, strict=True)]


class SafeOpen:
    """What the page's code uses of safetensors.safe_open. Integers have 64 bits, other tensors are f32."""

    def __init__(self, path, framework):
        assert framework == "pt", framework
        bytes_ = Path(path).read_bytes()
        length, = struct.unpack("<Q", bytes_[:8])
        self.header = json.loads(bytes_[8:8 + length])
        self.data = bytes_[8 + length:]
        self.header.pop("__metadata__", None)

    def keys(self):
        return self.header.keys()

    def get_tensor(self, name):
        entry = self.header[name]
        begin, end = entry["data_offsets"]
        values = array.array({"F32": "f", "I64": "q"}[entry["dtype"]], self.data[begin:end])
        return nested(values, entry["shape"])


def main():
    source, apps = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
    blocks = re.findall(r"^```python\n(.*?)^```", (source / "docs/distributed.md").read_text(), re.DOTALL | re.MULTILINE)
    code = [block for block in blocks if "def load_slices" in block]
    if len(code) != 1:
        sys.exit(f"docs/distributed.md: found {len(code)} blocks that define load_slices, expected 1")
    sys.modules["torch"] = types.SimpleNamespace(cat=cat)
    sys.modules["safetensors"] = types.SimpleNamespace(safe_open=SafeOpen)
    page = {}
    exec(code[0], page)

    with tempfile.TemporaryDirectory() as folder:
        def train(*flags):
            subprocess.run([apps / "train_mlp", "--data", "digits", "--hidden", "7", "--threads", "1", "--quiet", *flags],
                           cwd=folder, check=True)
        train("--workers", "2", "--transport", "socket", "--method", "ist", "--ist-store", "sharded", "--optimizer", "sgd",
              "--local-steps", "2", "--iterations", "4", "--calibrate-batches", "1", "--save", "model.safetensors")
        train("--init", "model.safetensors.index.json", "--iterations", "0", "--save", "whole.safetensors")
        index = f"{folder}/model.safetensors.index.json"
        cut = set(json.loads(Path(index).read_text())["metadata"]["cut"].values())
        found = page["load_slices"](index)
        whole = SafeOpen(f"{folder}/whole.safetensors", "pt")
        expected = {name: whole.get_tensor(name) for name in whole.keys()}
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) != expected.get(name):
            sys.exit(f"'{name}': the page's code and tern join different tensors")
    if cut != {0, 1}:
        sys.exit(f"found tensors that are cut along dimensions {cut}, expected 0 and 1")
    print(f"{len(expected)} tensors are equal")


main()
