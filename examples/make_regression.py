#!/usr/bin/env python3
"""Writes the files of train_regression for a problem with a known answer, without NumPy: make_regression.py FOLDER."""

import math
import pathlib
import random
import struct
import sys


def save(path, rows, kind):
    """The same bytes as numpy.save; `kind` is f (f4) or d (f8)."""
    shape = f"({len(rows)}, {len(rows[0])})"
    header = f"{{'descr': '<f{struct.calcsize(kind)}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    values = [value for row in rows for value in row]
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1") +
                     struct.pack(f"<{len(values)}{kind}", *values))


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
random.seed(1)
for part, size in (("train", 4000), ("test", 500)):
    x = [[random.uniform(-1, 1) for _ in range(6)] for _ in range(size)]
    y = [[math.sin(3 * a) + b * c, max(d, e) - f] for a, b, c, d, e, f in x]
    save(folder / f"{part}_x.npy", x, "f")
    save(folder / f"{part}_y.npy", y, "d")
