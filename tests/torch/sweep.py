"""A seeded sweep of shapes and options, beside PyTorch's own samples, which are few and small. `samples` gives names as
in `op_db`, samples, and the function that answers them.
"""
import random

import torch
import torch.nn.functional as F
from torch.testing._internal.opinfo.core import SampleInput

EACH = 25  # samples of each operation


def samples(seed):
    rng = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)

    def tensor(*shape, grad=True, low=None):
        values = torch.randn(shape, generator=generator)
        if low is not None:
            values = values.abs() + low
        return values.requires_grad_(grad)

    def labels(shape, below):
        return torch.randint(0, below, shape, generator=generator)

    def extents(least, most, largest=9):
        return [rng.randint(1, largest) for _ in range(rng.randint(least, most))]

    def some(dimensions):
        return sorted(rng.sample(range(dimensions), rng.randint(1, dimensions)))

    def convolution(transposed):
        groups, per_in, per_out = rng.choice((1, 1, 2, 3)), rng.randint(1, 5), rng.randint(1, 5)
        kernel = [rng.choice((1, 2, 3, 5)) for _ in range(2)]
        options = {"stride": [rng.randint(1, 3) for _ in range(2)], "dilation": [rng.randint(1, 2) for _ in range(2)],
                   "groups": groups}
        options["padding"] = [rng.randint(0, (k - 1) * d) for k, d in zip(kernel, options["dilation"])]
        size = [rng.randint((k - 1) * d + 1, 16) for k, d in zip(kernel, options["dilation"])]
        bias = tensor(groups * per_out) if rng.random() < 0.5 else None
        if transposed:
            options["output_padding"] = [rng.randint(0, s - 1) for s in options["stride"]]
            weight = tensor(groups * per_in, per_out, *kernel)
            # PyTorch demands that the result is not empty.
            options["padding"] = [min(p, (n - 1) * s // 2) for p, n, s in zip(options["padding"], size, options["stride"])]
        else:
            weight = tensor(groups * per_out, per_in, *kernel)
        return SampleInput(tensor(rng.randint(1, 5), groups * per_in, *size), args=(weight, bias), kwargs=options)

    def pooling():
        kernel = [rng.randint(1, 4) for _ in range(2)]
        return SampleInput(tensor(rng.randint(1, 4), rng.randint(1, 20), rng.randint(4, 13), rng.randint(4, 13)),
                           args=(kernel,), kwargs={"stride": [rng.randint(1, 4) for _ in range(2)],
                                                   "padding": [rng.randint(0, k // 2) for k in kernel],
                                                   "ceil_mode": rng.random() < 0.5})

    def product():
        m, k, n = (rng.randint(1, 40) for _ in range(3))
        lead = extents(0, 2, 4)
        other = [rng.choice((1, each)) for each in lead][rng.randint(0, len(lead)):] if lead else []
        a, b = [*lead, m, k], [*other, k, n]
        if rng.random() < 0.2:
            a = [k]
        if rng.random() < 0.2:
            b = [k]
        return SampleInput(tensor(*a), args=(tensor(*b),))

    def normalized():
        shape = extents(2, 5, 12)
        shape[0] += 1
        channels = shape[1]
        given = rng.random() < 0.5
        return SampleInput(tensor(*shape[:4]), args=(tensor(channels, grad=False), tensor(channels, grad=False, low=0.1)),
                           kwargs={"weight": tensor(channels) if given else None, "bias": tensor(channels) if given else
                                   None, "training": rng.random() < 0.5, "eps": rng.choice((1e-5, 1e-3))})

    def layer_normalized():
        shape = extents(1, 4, 40)
        inner = shape[rng.randint(0, len(shape) - 1):]
        given = rng.random() < 0.5
        return SampleInput(tensor(*shape), args=(inner,), kwargs={"weight": tensor(*inner) if given else None,
                                                                  "bias": tensor(*inner) if given else None})

    def reduced():
        shape = extents(1, 5, 11)
        return SampleInput(tensor(*shape), kwargs={"dim": some(len(shape)), "keepdim": rng.random() < 0.5})

    def along():
        shape = extents(1, 4, 30)
        return SampleInput(tensor(*shape), args=(rng.randrange(-len(shape), len(shape)),))

    def paired():
        shape = extents(0, 5, 9)
        a, b = ([1 if rng.random() < 0.2 else each for each in shape] for _ in range(2))
        return SampleInput(tensor(*a), args=(tensor(*b[rng.randint(0, len(b)):] if rng.random() < 0.3 else b),))

    def alone(low=None):
        return SampleInput(tensor(*extents(0, 5, 12), low=low))

    def attended():
        lead, length, keys, width = extents(1, 2, 4), rng.randint(1, 70), rng.randint(1, 70), rng.choice((4, 8, 32, 64))
        return SampleInput(tensor(*lead, length, width), args=(tensor(*lead, keys, width), tensor(*lead, keys, width)),
                           kwargs={"is_causal": rng.random() < 0.5})

    def classified():
        n, classes = rng.randint(1, 20), rng.randint(2, 12)
        shape = [n, *extents(0, 2, 5)]
        probabilities = rng.random() < 0.3
        logits = tensor(n, classes, *shape[1:])
        target = torch.softmax(tensor(*logits.shape, grad=False), 1) if probabilities else labels(shape, classes)
        options = {"reduction": rng.choice(("mean", "sum", "none")), "label_smoothing": rng.choice((0.0, 0.1))}
        if rng.random() < 0.4:
            options["weight"] = tensor(classes, grad=False, low=0.1)
        if not probabilities and rng.random() < 0.4:
            options["ignore_index"] = 1
        return SampleInput(logits, args=(target,), kwargs=options)

    def compared(shares=False):
        shape = extents(0, 4)
        target = torch.sigmoid(tensor(*shape, grad=False)) if shares else tensor(*shape, grad=False)
        return SampleInput(tensor(*shape), args=(target,), kwargs={"reduction": rng.choice(("mean", "sum", "none"))})

    def looked_up():
        rows = rng.randint(1, 30)
        return SampleInput(tensor(rows, rng.randint(1, 20)), args=(labels(extents(0, 3), rows),))

    def ordered():
        shape = extents(1, 5)
        return SampleInput(tensor(*shape), args=(rng.sample(range(len(shape)), len(shape)),))

    def padded():
        shape = extents(1, 4)
        return SampleInput(tensor(*shape), args=([rng.randint(0, 3) for _ in range(2 * rng.randint(1, len(shape)))],),
                           kwargs={"value": rng.choice((0.0, 1.5))})

    def mirrored():
        shape = [*extents(1, 2, 4), rng.randint(3, 9), rng.randint(3, 9)]
        return SampleInput(tensor(*shape), args=([rng.randint(0, 2) for _ in range(4)],), kwargs={"mode": "reflect"})

    def joined():
        shape = extents(1, 4)
        at = rng.randrange(len(shape))
        parts = []
        for _ in range(rng.randint(1, 4)):
            shape[at] = rng.randint(1, 6)
            parts.append(tensor(*shape))
        return SampleInput(parts, args=(at,))

    def parted():
        shape = extents(1, 4)
        at = rng.randrange(len(shape))
        sizes = [rng.randint(1, 4) for _ in range(rng.randint(1, 4))]
        shape[at] = sum(sizes)
        return SampleInput(tensor(*shape), args=(sizes, at))

    def chosen():
        shape = extents(1, 4)
        return SampleInput(tensor(*shape), args=(labels(shape, 2).bool(), tensor(*shape)))

    def equal_shapes():
        shape = extents(1, 4)
        return SampleInput(tensor(*shape), args=(tensor(*shape),))

    def converted():
        return SampleInput(tensor(*extents(0, 4)), args=(rng.choice((torch.bfloat16, torch.float64)),))

    makers = {
        "add_relu": (lambda a, b: F.relu(a + b), equal_shapes, EACH),
        "to": (lambda x, dtype: x.float().to(dtype), converted, EACH),
        "nn.functional.conv2d": (F.conv2d, lambda: convolution(False), 4 * EACH),
        "nn.functional.conv_transpose2d": (F.conv_transpose2d, lambda: convolution(True), 2 * EACH),
        "nn.functional.max_pool2d": (F.max_pool2d, pooling, 2 * EACH),
        "nn.functional.avg_pool2d": (F.avg_pool2d, pooling, 2 * EACH),
        "matmul": (torch.matmul, product, 2 * EACH),
        "nn.functional.batch_norm": (F.batch_norm, normalized, EACH),
        "nn.functional.layer_norm": (F.layer_norm, layer_normalized, EACH),
        "nn.functional.scaled_dot_product_attention": (F.scaled_dot_product_attention, attended, EACH),
        "nn.functional.cross_entropy": (F.cross_entropy, classified, 2 * EACH),
        "nn.functional.mse_loss": (F.mse_loss, compared, EACH),
        "nn.functional.l1_loss": (F.l1_loss, compared, EACH),
        "nn.functional.binary_cross_entropy_with_logits": (F.binary_cross_entropy_with_logits, lambda: compared(True),
                                                           EACH),
        "nn.functional.embedding": (lambda w, i: F.embedding(i, w), looked_up, EACH),
        "nn.functional.pad": (F.pad, padded, EACH),
        "nn.functional.pad/reflect": (F.pad, mirrored, EACH),
        "sum": (torch.sum, reduced, EACH), "mean": (torch.mean, reduced, EACH), "amax": (torch.amax, reduced, EACH),
        "logsumexp": (torch.logsumexp, reduced, EACH), "softmax": (torch.softmax, along, EACH),
        "log_softmax": (torch.log_softmax, along, EACH), "add": (torch.add, paired, EACH),
        "mul": (torch.mul, paired, EACH), "div": (torch.div, paired, EACH), "maximum": (torch.maximum, paired, EACH),
        "exp": (torch.exp, alone, EACH), "log": (torch.log, lambda: alone(0.01), EACH), "tanh": (torch.tanh, alone, EACH),
        "nn.functional.gelu": (F.gelu, alone, EACH), "permute": (torch.permute, ordered, EACH),
        "cat": (torch.cat, joined, EACH), "split_with_sizes": (torch.split, parted, EACH),
        "where": (lambda x, condition, other: torch.where(condition, x, other), chosen, EACH),
    }
    for name, (function, make, count) in makers.items():
        for _ in range(count):
            yield name, make(), lambda s, function=function: function(s.input, *s.args, **s.kwargs)
    yield from schedules(rng)


def schedules(rng):
    """Learning rates of 30 steps."""
    lr_scheduler = torch.optim.lr_scheduler
    for _ in range(10):
        lr, steps, power, factor = rng.uniform(0.01, 2), rng.randint(2, 40), rng.uniform(0.3, 3), rng.uniform(0.1, 0.9)
        at = sorted(rng.sample(range(1, 30), 3))
        for kind, make in (("poly", lambda o: lr_scheduler.PolynomialLR(o, steps, power)),
                           ("step", lambda o: lr_scheduler.MultiStepLR(o, at, factor)),
                           ("cosine", lambda o: lr_scheduler.CosineAnnealingLR(o, steps)),
                           ("warm_up", lambda o: lr_scheduler.LinearLR(o, 1 / steps, 1, steps - 1)),
                           ("hold_first", lambda o: lr_scheduler.ConstantLR(o, factor, steps))):
            optimizer = torch.optim.SGD([torch.zeros(1)], lr)
            schedule = make(optimizer)
            values = []
            for t in range(min(30, steps) if kind == "cosine" else 30):  # PyTorch's cosine rises again
                values.append(schedule.get_last_lr()[0])
                optimizer.step()
                schedule.step()
            yield ("lr_scheduler", SampleInput(torch.tensor(values, dtype=torch.float64),
                                               kwargs={"kind": kind, "lr": lr, "steps": steps, "power": power,
                                                       "factor": factor, "at": at, "count": len(values)}),
                   lambda s: s.input)


def modules(seed):
    """Names, constructors' arguments and inputs of modules of which PyTorch has few samples."""
    rng = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)

    def tensor(*shape):
        return torch.randn(shape, generator=generator).requires_grad_()

    for _ in range(EACH):
        heads, batch, steps = rng.randint(1, 5), rng.randint(1, 4), rng.randint(1, 40)
        x = tensor(batch, steps, heads * rng.choice((2, 8, 16)))
        yield "MultiheadAttention", {"embed_dim": x.shape[2], "num_heads": heads, "bias": rng.random() < 0.7,
                                     "batch_first": True}, (x, x, x)
    for _ in range(EACH):
        hidden = rng.randint(2, 40)
        x = tensor(rng.randint(1, 20), rng.randint(1, 5), rng.randint(1, 30))
        yield "LSTM", {"input_size": x.shape[2], "hidden_size": hidden, "num_layers": rng.randint(1, 3),
                       "proj_size": rng.choice((0, rng.randint(1, hidden - 1))), "bias": rng.random() < 0.7}, (x,)
