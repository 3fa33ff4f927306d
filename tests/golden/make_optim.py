"""Prints the rows of tests/optim/optimizer_test.cpp: two parameters after four steps of PyTorch's optimizers, in f64."""
import torch

ADAM = dict(lr=0.1, betas=(0.8, 0.9), eps=1e-3)
RUNS = {
    "sgd": (torch.optim.SGD, dict(lr=0.1)),
    "momentum": (torch.optim.SGD, dict(lr=0.1, momentum=0.9)),
    "momentum_decay": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, weight_decay=0.05)),
    "nesterov": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.05)),
    "adam": (torch.optim.Adam, ADAM),
    "adam_decay": (torch.optim.Adam, dict(ADAM, weight_decay=0.05)),
    "adamw": (torch.optim.AdamW, dict(ADAM, weight_decay=0.05)),
}


def value(i):
    return i * 0.25 - 1


def gradient(i, t):
    return ((7 * i + 3 * t) % 5 - 2) * 0.125


def run(make, options, clip=None, groups=False):
    a = torch.nn.Parameter(torch.tensor([[value(i) for i in range(4)]], dtype=torch.float64))
    b = torch.nn.Parameter(torch.tensor([value(i) for i in range(4, 6)], dtype=torch.float64))
    parameters = [a, b]
    if groups:
        parameters = [{"params": [a]}, {"params": [b], "lr": options["lr"] * 0.5, "weight_decay": 0.0}]
    optimizer = make(parameters, **options)
    for t in range(4):
        a.grad = torch.tensor([[gradient(i, t) for i in range(4)]], dtype=torch.float64)
        b.grad = torch.tensor([gradient(i, t) for i in range(4, 6)], dtype=torch.float64)
        if clip:
            torch.nn.utils.clip_grad_norm_([a, b], clip)
        optimizer.step()
    return a.flatten().tolist() + b.tolist()


def show(name, values):
    print('    {"%s", {%s}},' % (name, ", ".join(repr(v) for v in values)))


for name, (make, options) in RUNS.items():
    show(name, run(make, options))
show("clipped", run(*RUNS["momentum_decay"], clip=0.25))
show("groups", run(*RUNS["momentum_decay"], groups=True))


def orthogonal(g, iterations):
    """As in github.com/KellerJordan/Muon, in f64."""
    x = g / (g.norm() + 1e-7)
    if g.shape[0] > g.shape[1]:
        x = x.T
    for _ in range(iterations):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.T if g.shape[0] > g.shape[1] else x


def run_muon(shape, lr, momentum, nesterov, iterations, weight_decay=0.0, normalize=False):
    """Four steps of Muon on one matrix."""
    count = shape[0] * shape[1]
    w = torch.tensor([value(i) for i in range(count)], dtype=torch.float64).reshape(shape)
    v = torch.zeros_like(w)
    for t in range(4):
        g = torch.tensor([gradient(i, t) for i in range(count)], dtype=torch.float64).reshape(shape)
        if normalize:
            w = w * shape[0] ** 0.5 / (w.norm() + 1e-7)
        v = momentum * v + g
        w = w - lr * (orthogonal(g + momentum * v if nesterov else v, iterations) + weight_decay * w)
    return w.flatten().tolist()


print("muon_test.cpp:")
show("wide", run_muon((2, 3), 0.1, 0.9, True, 5))
show("tall", run_muon((3, 2), 0.1, 0.9, True, 5))
show("plain", run_muon((2, 3), 0.1, 0.5, False, 3))
show("decay", run_muon((2, 3), 0.1, 0.9, True, 5, weight_decay=0.5))
show("normalized", run_muon((2, 3), 0.1, 0.9, True, 3, normalize=True))
