#!/usr/bin/env python3
"""Writes cases for run_cases: inputs, and what PyTorch computes from them.

  tests/torch/cases.py FOLDER [--seed N]

The cases are PyTorch's own samples and error inputs of every operation, module and optimizer in docs/models.md, from
torch.testing._internal, and a sweep of shapes. FOLDER gets `cases.jsonl`, one case in each line, and `tensors.bin`,
the elements of all tensors. A sample with an option that tern does not have is a case, too: its line says why it cannot
be expressed. Needs PyTorch 2.x, NumPy and expecttest.
"""
import argparse
import json
import math
import pathlib
import random
import sys
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import FunctionInput, ModuleInput, module_db
from torch.testing._internal.common_optimizers import optim_db

import expressions
from expressions import is_float
import sweep

DTYPES = {torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16", torch.int64: "i64", torch.uint8: "u8",
          torch.bool: "u8"}

MOST_REFERENCES = 60  # of an operation


class Writer:
    """Collects cases and tensors in two files."""

    def __init__(self, folder):
        self.lines = open(folder / "cases.jsonl", "w")
        self.blob = open(folder / "tensors.bin", "wb")
        self.place = 0
        self.count = 0

    def tensor(self, value, grad=False):
        """The place of a tensor's elements in the file."""
        if value is None:
            return None
        flat = value.detach().resolve_conj().resolve_neg().contiguous().cpu()
        if flat.dtype == torch.bool:
            flat = flat.to(torch.uint8)
        row = flat.reshape(-1)
        raw = (row.view(torch.int16) if row.dtype == torch.bfloat16 else row).numpy().tobytes()
        entry = {"at": self.place, "shape": list(flat.shape), "dtype": DTYPES[flat.dtype], "grad": grad}
        self.blob.write(raw)
        self.place += len(raw)
        return entry

    def write(self, case):
        case["id"] = self.count
        self.count += 1
        self.lines.write(json.dumps(case, default=plain) + "\n")


def plain(value):
    """JSON of a number that is not Python's own."""
    return value.item() if hasattr(value, "item") else str(value)


def described(sample):
    """A short text of a sample's inputs."""
    def text(value):
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(map(text, value)) + "]"
        return repr(value)

    words = [text(sample.input), *map(text, sample.args), *(f"{k}={text(v)}" for k, v in sample.kwargs.items())]
    return ", ".join(words)[:300]


def finite_attributes(attributes):
    """Numbers as JSON has them: infinities and NaN as words."""
    def finite(value):
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if isinstance(value, (list, tuple)):
            return [finite(each) for each in value]
        return value

    return {name: finite(value) for name, value in attributes.items()}


def expected_of(case, call, outputs, dtype, writer, generator):
    """Adds PyTorch's outputs, cotangents and gradients to `case`, rounded to `dtype`."""
    def rounded(tensor):
        return tensor.to(dtype) if tensor is not None and is_float(tensor) else tensor

    outputs = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
    case["outputs"] = [writer.tensor(rounded(each)) for each in outputs]
    inputs = call["inputs"]
    leaves = [each for each in inputs if each is not None and each.requires_grad]
    if not leaves or not all(each.requires_grad and is_float(each) for each in outputs):
        return
    cotangents = [rounded(torch.randn(each.shape, dtype=torch.float64, generator=generator)) for each in outputs]
    found = iter(torch.autograd.grad(outputs, leaves, [cot.to(out.dtype) for cot, out in zip(cotangents, outputs)],
                                     allow_unused=True))
    case["cotangents"] = [writer.tensor(each) for each in cotangents]
    case["gradients"] = [writer.tensor(rounded(next(found))) if each is not None and each.requires_grad else None
                         for each in inputs]


def leaf(value, dtype=None):
    """A copy without history; floating numbers require a gradient if `value` does."""
    if not isinstance(value, torch.Tensor):
        return value
    copy = value.detach().clone(memory_format=torch.contiguous_format)
    if dtype is not None and is_float(copy):
        copy = copy.to(dtype)
    return copy.requires_grad_(is_float(copy) and value.requires_grad)


def of_operation(name, run):
    """The call of tern for a sample, and PyTorch's answer from a copy of the sample in f64."""
    def make(sample):
        wide = sample.transform(lambda value: leaf(value, torch.float64))
        return expressions.express(name, wide), lambda: run(wide)
    return lambda sample: expressions.express(name, sample), make


def add_case(writer, source, name, sample, makers, generator, fails=False):
    """One case: the sample expressed as a call of tern, and what PyTorch computes in f64 from the same numbers."""
    express, answer = makers
    case = {"source": source, "name": name, "text": described(sample), "error": fails}
    try:
        sample = sample.transform(leaf)
        call = express(sample)
        tensors = call["inputs"]
        for each in tensors:
            if each is not None and not isinstance(each, torch.Tensor):
                raise expressions.NotOffered(f"{type(each).__name__} in place of a tensor")
            if each is not None and each.layout != torch.strided:
                raise expressions.NotOffered("a sparse tensor")
            if each is not None and each.dtype not in DTYPES:
                raise expressions.NotOffered(f"elements of {str(each.dtype).removeprefix('torch.')}")
        kinds = {each.dtype for each in tensors if each is not None and each.requires_grad}
        if (len(kinds) > 1 or name == "where" and tensors[1].dtype != tensors[2].dtype) and not fails:
            raise expressions.NotOffered("operands of different types")
        case.update(op=call["op"], attributes=finite_attributes(call["attributes"]))
        case["inputs"] = [writer.tensor(each, each is not None and each.requires_grad) for each in tensors]
        if not fails:
            wide, run = answer(sample)
            dtype = next((each.dtype for each in tensors if each is not None and is_float(each)), torch.float64)
            expected_of(case, wide, run(), dtype, writer, generator)
        if call["loose"]:
            case["loose"] = call["loose"]
    except expressions.NotOffered as reason:
        case = {"source": source, "name": name, "text": case["text"], "error": fails, "cannot": str(reason)}
    writer.write(case)


def add_operations(writer, generator):
    for info in op_db:
        if not expressions.knows(info.name, info.variant_test_name):
            continue
        name = info.name if not info.variant_test_name else f"{info.name}/{info.variant_test_name}"

        def run(sample, op=info.op):
            return op(sample.input, *sample.args, **sample.kwargs)

        samples = [each for dtype in (torch.float32, torch.float64)
                   for each in info.sample_inputs("cpu", dtype, requires_grad=True)]
        if info.reference_inputs_func is not None:  # they begin with the samples of sample_inputs
            more = list(info.reference_inputs("cpu", torch.float32, requires_grad=False))
            samples += more[len(samples) // 2:][:MOST_REFERENCES]
        for sample in samples:
            add_case(writer, "op_db", name, sample, of_operation(name, run), generator)
        if info.error_inputs_func is not None:
            for wrong in info.error_inputs("cpu"):
                add_case(writer, "op_db errors", name, wrong.sample_input, of_operation(name, run), generator, fails=True)


def add_modules(writer, generator):
    for info in module_db:
        name = info.module_cls.__name__
        if not expressions.knows_module(name):
            continue
        for dtype in (torch.float32, torch.float64):
            for training in (True, False):
                for given in info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True,
                                                     training=training):
                    expressions.add_module(writer, name, info.module_cls, given, dtype, training, add_case, of_operation,
                                           generator)
        if info.module_error_inputs_func is not None:
            for wrong in info.module_error_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False,
                                                       training=True):
                expressions.add_module(writer, name, info.module_cls, wrong.module_error_input, torch.float32, True,
                                       add_case, of_operation, generator, fails=True)


def add_optimizers(writer, generator):
    for info in optim_db:
        name = info.optim_cls.__name__
        if name not in ("SGD", "Adam", "AdamW"):
            continue
        for dtype in (torch.float32, torch.float64):
            for given in info.optim_inputs_func("cpu", dtype):
                expressions.add_optimizer(writer, name, info.optim_cls, given.kwargs, given.desc, dtype, add_case,
                                          generator)
        for wrong in info.optim_error_inputs_func("cpu", torch.float32):
            given = wrong.optimizer_error_input
            if isinstance(given.params, list) and given.params and isinstance(given.params[0], torch.Tensor):
                expressions.add_optimizer(writer, name, info.optim_cls, given.kwargs, given.desc, torch.float32, add_case,
                                          generator, fails=True, twice=len(set(map(id, given.params))) < len(given.params))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    options.folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(options.seed)
    random.seed(options.seed)
    generator = torch.Generator().manual_seed(options.seed)
    writer = Writer(options.folder)
    add_operations(writer, generator)
    add_modules(writer, generator)
    add_optimizers(writer, generator)
    for name, sample, run in sweep.samples(options.seed):
        add_case(writer, "sweep", name, sample, of_operation(name, run), generator)
    for name, arguments, inputs in sweep.modules(options.seed):
        given = ModuleInput(FunctionInput(**arguments), FunctionInput(*inputs))
        expressions.add_module(writer, name, getattr(torch.nn, name), given, torch.float32, True, add_case, of_operation,
                               generator, source="sweep")
    for clip in (0.1, 1.0, 100.0):
        for name in ("SGD", "Adam"):
            expressions.add_optimizer(writer, name, getattr(torch.optim, name), {"lr": 0.1}, f"clip_grad_norm_ {clip}",
                                      torch.float32, add_case, generator, clip=clip)
    print(f"{writer.count} cases in {options.folder}, with PyTorch {torch.__version__}", file=sys.stderr)


if __name__ == "__main__":
    main()
