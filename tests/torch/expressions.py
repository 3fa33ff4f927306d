"""PyTorch's calls as calls of tern: what docs/models.md says. A call is a dict: `op` is a name in run_cases.cpp,
`inputs` its tensors, and `attributes` its options. `express` raises NotOffered if tern has no such option.
"""
import copy
import inspect
import math
import types

import torch
import torch.nn.functional as F
from torch.testing._internal.opinfo.core import SampleInput

Tensor = torch.Tensor


def is_float(tensor):
    return tensor.dtype in (torch.float32, torch.float64, torch.bfloat16)


class NotOffered(Exception):
    """The reason why tern cannot express a sample."""


def need(condition, reason):
    if not condition:
        raise NotOffered(reason)


def call(op, *inputs, loose=None, **attributes):
    return {"op": op, "inputs": list(inputs), "attributes": attributes, "loose": loose}


def pair(value):
    return [int(each) for each in value] if isinstance(value, (list, tuple)) and len(value) == 2 else \
        [int(value[0])] * 2 if isinstance(value, (list, tuple)) else [int(value)] * 2


def numbers(value):
    """A list of whole numbers from one of them, a list, or several arguments."""
    if isinstance(value, (list, tuple, torch.Size)):
        return [int(each) for each in value]
    return [int(value)]


def real(value, what="number"):
    need(isinstance(value, (bool, int, float)), f"a {what} that is {type(value).__name__}")
    return float(value)


TABLE = {}


def expresses(*names):
    def put(function):
        for name in names:
            TABLE[name] = function
        return function
    return put


def binary(op, symbol):
    def of(x, other, *, alpha=1, rounding_mode=None, out=None):
        need(rounding_mode is None, "rounding_mode")
        need(isinstance(x, Tensor), "a number as input")
        if isinstance(other, Tensor):
            return call(op, x, other, alpha=real(alpha, "alpha"))
        return call("number", x, operator=symbol, number=real(other) * real(alpha, "alpha"), reversed=False)
    return of


for names, op, symbol in ((("add",), "add", "+"), (("sub",), "subtract", "-"), (("mul",), "multiply", "*"),
                          (("div", "true_divide"), "divide", "/")):
    expresses(*names)(binary(op, symbol))


@expresses("rsub")
def rsub(x, other, *, alpha=1):
    need(alpha == 1, "alpha of rsub")
    if isinstance(other, Tensor):
        return call("subtract", other, x, alpha=1.0)
    return call("number", x, operator="-", number=real(other), reversed=True)


for name in ("maximum", "minimum"):
    expresses(name)(lambda x, other, name=name: call(name, x, other))
for name in ("exp", "log", "sqrt", "abs", "sigmoid", "tanh"):
    expresses(name)(lambda x, name=name: call(name, x))
expresses("neg")(lambda x: call("negative", x))
expresses("nn.functional.relu", "relu")(lambda x, inplace=False: call("relu", x))
expresses("nn.functional.silu")(lambda x, inplace=False: call("silu", x))
expresses("nn.functional.leaky_relu")(
    lambda x, negative_slope=0.01, inplace=False: call("leaky_relu", x, slope=real(negative_slope)))


@expresses("nn.functional.gelu")
def gelu(x, approximate="none"):
    need(approximate in ("none", "tanh"), "a word for a form: tern has an enum")
    return call("gelu", x, approximate=approximate)


expresses("add_relu")(lambda x, other: call("add_relu", x, other))
expresses("to")(lambda x, dtype: call("convert", x, dtype={torch.bfloat16: "bf16", torch.float64: "f64"}[dtype]))
expresses("lr_scheduler")(lambda values, **attributes: call("schedule", **attributes))


@expresses("pow")
def power(x, exponent):
    need(not isinstance(exponent, Tensor), "a tensor as exponent")
    need(isinstance(x, Tensor), "a number as base")
    return call("pow", x, exponent=real(exponent, "exponent"))


@expresses("clamp")
def clamp(x, min=None, max=None):
    need(not isinstance(min, Tensor) and not isinstance(max, Tensor), "tensors as bounds of clamp")
    return call("clamp", x, low=-math.inf if min is None else real(min), high=math.inf if max is None else real(max))


@expresses("where")
def where(x, condition, other):
    need(isinstance(other, Tensor), "a number in where")
    return call("select", condition, x, other)


@expresses("matmul", "mm", "bmm", "mv", "dot")
def matmul(a, b):
    return call("matmul", a, b)


@expresses("nn.functional.linear")
def linear(x, weight, bias=None):
    return call("linear", x, weight, bias)


@expresses("nn.functional.conv2d")
def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    if padding == "same":
        need(pair(stride) == [1, 1], "a stride with padding='same'")
        return call("conv2d_same", x, weight, bias, dilation=pair(dilation), groups=groups)
    return call("conv2d", x, weight, bias, stride=pair(stride), padding=pair(0 if padding == "valid" else padding),
                dilation=pair(dilation), groups=groups)


@expresses("nn.functional.conv_transpose2d")
def conv_transpose2d(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    return call("conv_transpose2d", x, weight, bias, stride=pair(stride), padding=pair(padding),
                added=pair(output_padding), groups=groups, dilation=pair(dilation))


@expresses("softmax", "nn.functional.softmax")
def softmax(x, dim=None, _stacklevel=3, dtype=None, op="softmax"):
    need(dtype is None or dtype == x.dtype, "dtype of softmax")
    need(dim is not None, "softmax without dim")
    return call(op, x, dimension=dim)


expresses("log_softmax", "nn.functional.log_softmax")(lambda x, *a, **k: softmax(x, *a, **k, op="log_softmax"))


@expresses("nn.functional.batch_norm")
def batch_norm(x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    need(momentum is not None, "momentum=None")
    return call("batch_norm", x, running_mean, running_var, weight, bias, training=training, momentum=real(momentum),
                epsilon=real(eps))


@expresses("nn.functional.layer_norm")
def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    return call("layer_norm", x, weight, bias, shape=numbers(normalized_shape), epsilon=real(eps))


@expresses("nn.functional.local_response_norm")
def local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1.0):
    return call("local_response_norm", x, size=size, alpha=real(alpha), beta=real(beta), k=real(k))


@expresses("nn.functional.max_pool2d")
def max_pool2d(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    need(pair(dilation) == [1, 1], "dilation of max_pool2d")
    need(not return_indices, "return_indices")
    return call("max_pool2d", x, window=pair(kernel_size), stride=pair(kernel_size if stride in (None, []) else stride),
                padding=pair(padding), ceil_mode=bool(ceil_mode))


@expresses("nn.functional.avg_pool2d")
def avg_pool2d(x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    need(divisor_override is None, "divisor_override")
    return call("average_pool2d", x, window=pair(kernel_size),
                stride=pair(kernel_size if stride in (None, []) else stride), padding=pair(padding),
                ceil_mode=bool(ceil_mode), count_include_pad=bool(count_include_pad))


@expresses("nn.functional.adaptive_avg_pool2d")
def adaptive_avg_pool2d(x, output_size):
    size = [output_size] * 2 if not isinstance(output_size, (list, tuple)) else list(output_size)
    size = [x.shape[i - 2] if each is None else each for i, each in enumerate(size)]
    return call("adaptive_average_pool2d", x, size=size)


@expresses("nn.functional.upsample_nearest", "nn.functional.interpolate")
def interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None,
                antialias=False):
    need(mode == "nearest", f"mode={mode}")
    need(x.dim() in (3, 4), f"upsampling of {x.dim() - 2} dimensions")
    given = list(x.shape[2:])
    if size is not None:
        size = numbers(size) * (len(given) if not isinstance(size, (list, tuple)) else 1)
        factor = [a / b for a, b in zip(size, given)]
    else:
        factor = list(scale_factor) if isinstance(scale_factor, (list, tuple)) else [scale_factor] * len(given)
    need(all(each == int(each) and each >= 1 for each in factor), "upsampling by a factor that is not whole")
    factor = [int(each) for each in factor]
    return call("upsample_nearest2d", x, factor=factor if len(factor) == 2 else [1, *factor])


@expresses("nn.functional.dropout")
def dropout(x, p=0.5, training=True, inplace=False):
    need(training, "training=False: the layer does it")
    return call("dropout", x, probability=real(p), loose=None if p in (0, 1) else "dropout")


def reduction(op):
    def of(x, dim=None, keepdim=False, dtype=None):
        need(dtype is None or dtype == x.dtype, f"dtype of {op}")
        return call(op, x, dimensions=[] if dim is None else numbers(dim), keep=bool(keepdim))
    return of


for names, op in ((("sum",), "sum"), (("mean",), "mean"), (("amax",), "max"), (("amin",), "min"),
                  (("logsumexp",), "logsumexp")):
    expresses(*names)(reduction(op))


@expresses("argmax")
def argmax(x, dim=None, keepdim=False):
    need(dim is not None or not keepdim, "argmax over all dimensions with keepdim")
    return call("argmax", x, dimension=dim, keep=bool(keepdim))


@expresses("var")
def var(x, *arguments, dim=None, unbiased=None, keepdim=False, correction=None):
    arguments = list(arguments)
    if arguments and isinstance(arguments[0], bool):
        unbiased = arguments.pop(0)
    elif arguments:
        dim = arguments.pop(0)
    if arguments:
        unbiased = arguments.pop(0)
    if arguments:
        keepdim = arguments.pop(0)
    correction = 1 if correction is None else correction
    if unbiased is not None:
        correction = int(unbiased)
    need(correction == int(correction), "a correction that is not whole")
    return call("variance", x, dimensions=[] if dim is None else numbers(dim), keep=bool(keepdim),
                correction=int(correction))


@expresses("reshape", "view", "reshape_as", "view_as")
def reshape(x, *shape):
    shape = shape[0] if len(shape) == 1 else shape
    need(not isinstance(shape, torch.dtype), "view of another dtype")
    return call("reshape", x, extents=numbers(shape.shape if isinstance(shape, Tensor) else shape))


@expresses("flatten")
def flatten(x, start_dim=0, end_dim=-1):
    if (start_dim, end_dim) == (1, -1) and x.dim() >= 1:
        return call("flatten", x)
    return call("reshape", x, extents=list(torch.flatten(x, start_dim, end_dim).shape))


@expresses("squeeze")
def squeeze(x, dim=None):
    if dim is None or isinstance(dim, (list, tuple)):
        return call("reshape", x, extents=list((x.squeeze() if dim is None else x.squeeze(dim)).shape))
    return call("squeeze", x, dimension=dim)


expresses("unsqueeze")(lambda x, dim: call("unsqueeze", x, dimension=dim))
expresses("expand")(lambda x, *sizes: call("expand", x, extents=numbers(sizes[0] if len(sizes) == 1 else sizes)))
expresses("permute")(lambda x, *dims: call("permute", x, order=numbers(dims[0] if len(dims) == 1 else dims)))
expresses("transpose")(lambda x, first, second: call("transpose", x, first=first, second=second))
expresses("cat")(lambda inputs, dim=0: call("concat", *inputs, dimension=dim))
expresses("stack")(lambda inputs, dim=0: call("stack", *inputs, dimension=dim))


@expresses("split", "split_with_sizes")
def split(x, sizes, dim=0):
    if not isinstance(sizes, (list, tuple)):
        extent = x.shape[dim]
        need(sizes > 0 or extent == 0, "split into parts of 0")
        sizes = [min(sizes, extent - at) for at in range(0, extent, sizes)] or [0]
    return call("split", x, extents=numbers(sizes), dimension=dim)


@expresses("narrow")
def narrow(x, dim, start, length):
    need(isinstance(start, int), "a tensor as start of narrow")
    start = start + x.shape[dim] if start < 0 else start
    return call("slice", x, dimension=dim, begin=start, end=start + length)


@expresses("nn.functional.pad")
def pad(x, padding, mode="constant", value=None):
    padding = numbers(padding)
    need(mode in ("constant", "reflect"), f"mode={mode}")
    if mode == "reflect":
        need(len(padding) <= 4, "reflection of more than two dimensions")
        left, right, top, bottom = (padding + [0, 0])[:4]
        return call("reflection_pad2d", x, top=top, bottom=bottom, left=left, right=right)
    pairs = [[padding[2 * i], padding[2 * i + 1]] for i in range(len(padding) // 2)][::-1]
    return call("pad", x, padding=[[0, 0]] * (x.dim() - len(pairs)) + pairs, value=real(value or 0))


@expresses("nn.functional.embedding")
def embedding(weight, indices, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    need(padding_idx is None, "padding_idx")
    need(max_norm is None, "max_norm")
    need(not scale_grad_by_freq, "scale_grad_by_freq")
    need(not sparse, "sparse gradients")
    return call("embedding", indices.long(), weight)


@expresses("nn.functional.embedding_bag")
def embedding_bag(weight, indices, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean",
                  sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None):
    need(mode == "sum", f"mode={mode}")
    need(max_norm is None and not scale_grad_by_freq and not sparse and padding_idx is None,
         "max_norm, scale_grad_by_freq, sparse or padding_idx")
    indices = indices.long()
    if indices.dim() == 2:
        offsets = torch.arange(0, indices.numel() + 1, indices.shape[1])
    elif not include_last_offset:
        offsets = torch.cat([offsets.long(), torch.tensor([indices.numel()])])
    values = None if per_sample_weights is None else per_sample_weights.detach().reshape(-1)
    need(values is None or values.dtype == torch.float32, "weights of samples that are not f32")
    return call("embedding_bag", indices.reshape(-1), offsets.long(), values, weight)


@expresses("nn.functional.scaled_dot_product_attention")
def attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    need(attn_mask is None, "attn_mask")
    need(dropout_p == 0, "dropout_p")
    need(not enable_gqa, "enable_gqa")
    return call("attention", q, k, v, causal=bool(is_causal), scale=scale)


def reduced(size_average, reduce, reduction):
    if size_average is not None or reduce is not None:
        return F._Reduction.legacy_get_string(size_average, reduce)
    return reduction


@expresses("nn.functional.cross_entropy")
def cross_entropy(x, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                  label_smoothing=0.0):
    named = not target.dtype.is_floating_point or ignore_index != -100
    return call("cross_entropy", x, target.detach(), None if weight is None else weight.detach(), smoothing=label_smoothing,
                ignored=ignore_index if named else None, reduction=reduced(size_average, reduce, reduction))


def loss(op):
    def of(x, target, size_average=None, reduce=None, reduction="mean", weight=None, pos_weight=None):
        need(weight is None, "weight")
        need(pos_weight is None, "pos_weight")
        return call(op, x, target.detach(), reduction=reduced(size_average, reduce, reduction))
    return of


expresses("nn.functional.mse_loss")(loss("mse"))
expresses("nn.functional.l1_loss")(loss("l1"))


@expresses("nn.functional.binary_cross_entropy_with_logits")
def binary_cross_entropy(x, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
    return loss("binary_cross_entropy_with_logits")(x, target, size_average, reduce, reduction, weight, pos_weight)


def knows(name, variant):
    return name in TABLE


def express(name, sample):
    """The call for a sample of the operation `name`, with "/variant" or without."""
    function = TABLE[name.split("/")[0]]
    try:
        inspect.signature(function).bind(sample.input, *sample.args, **sample.kwargs)
    except TypeError as error:
        raise NotOffered(f"arguments: {error}") from None
    try:
        return function(sample.input, *sample.args, **sample.kwargs)
    except NotOffered:
        raise
    except (TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
        raise NotOffered(f"arguments that only Python has: {str(error)[:80]}") from None


# Modules. Each gives the layer's options from the arguments of PyTorch's constructor.

def plain_convolution(a):
    need(a["padding_mode"] == "zeros", "padding_mode")
    same = a["padding"] == "same"
    padding = 0 if a["padding"] in ("same", "valid") else a["padding"]
    return {"in": a["in_channels"], "out": a["out_channels"], "kernel": pair(a["kernel_size"]),
            "stride": pair(a["stride"]), "padding": pair(padding), "same": same, "dilation": pair(a["dilation"]),
            "groups": a["groups"], "bias": a["bias"]}


def transposed_convolution(a):
    need(a["padding_mode"] == "zeros", "padding_mode")
    return {"in": a["in_channels"], "out": a["out_channels"], "kernel": pair(a["kernel_size"]),
            "stride": pair(a["stride"]), "padding": pair(a["padding"]), "added": pair(a["output_padding"]),
            "dilation": pair(a["dilation"]), "groups": a["groups"], "bias": a["bias"]}


def normalization(a):
    need(a["momentum"] is not None, "momentum=None")
    return {"features": a["num_features"], "epsilon": a["eps"], "momentum": a["momentum"], "weight": a["affine"],
            "bias": a["affine"] and a.get("bias", True), "running": a["track_running_stats"]}


def pooling(a):
    need(pair(a.get("dilation", 1)) == [1, 1], "dilation of a pooling")
    need(not a.get("return_indices"), "return_indices")
    need(a.get("divisor_override") is None, "divisor_override")
    made = {"window": pair(a["kernel_size"]), "stride": pair(a["stride"] or a["kernel_size"]),
            "padding": pair(a["padding"]), "ceil_mode": a["ceil_mode"]}
    if "count_include_pad" in a:
        made["count_include_pad"] = a["count_include_pad"]
    return made


def reflection(a):
    left, right, top, bottom = numbers(a["padding"]) * (4 if isinstance(a["padding"], int) else 1)
    return {"left": left, "right": right, "top": top, "bottom": bottom}


def recurrent(a):
    rest = dict(zip(("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional",
                     "proj_size"), a["args"]), **a["kwargs"])
    need(not rest.get("bidirectional"), "bidirectional")
    need(not rest.get("dropout"), "dropout between layers")
    return {"in": rest["input_size"], "hidden": rest["hidden_size"], "projection": rest.get("proj_size", 0),
            "layers": rest.get("num_layers", 1), "bias": rest.get("bias", True),
            "batch_first": rest.get("batch_first", False)}


def heads(a):
    need(a["dropout"] == 0, "dropout")
    need(not a["add_bias_kv"] and not a["add_zero_attn"], "add_bias_kv, add_zero_attn")
    need(a["kdim"] in (None, a["embed_dim"]) and a["vdim"] in (None, a["embed_dim"]), "kdim, vdim")
    return {"features": a["embed_dim"], "heads": a["num_heads"], "bias": a["bias"], "batch_first": a["batch_first"]}


def rows(a):
    need(a["padding_idx"] is None and a["max_norm"] is None and not a["scale_grad_by_freq"] and not a["sparse"],
         "padding_idx, max_norm, scale_grad_by_freq or sparse")
    return {"rows": a["num_embeddings"], "features": a["embedding_dim"]}


MODULES = {
    "Linear": lambda a: {"in": a["in_features"], "out": a["out_features"], "bias": a["bias"]},
    "Conv2d": plain_convolution,
    "ConvTranspose2d": transposed_convolution,
    "BatchNorm1d": normalization,
    "BatchNorm2d": normalization,
    "LayerNorm": lambda a: {"shape": numbers(a["normalized_shape"]), "epsilon": a["eps"],
                            "weight": a["elementwise_affine"], "bias": a["elementwise_affine"] and a["bias"]},
    "LocalResponseNorm": lambda a: {"size": a["size"], "alpha": a["alpha"], "beta": a["beta"], "k": a["k"]},
    "MaxPool2d": pooling,
    "AvgPool2d": pooling,
    "AdaptiveAvgPool2d": lambda a: {"size": a["output_size"]},
    "ReflectionPad2d": reflection,
    "LSTM": recurrent,
    "MultiheadAttention": heads,
    "Embedding": rows,
    "ReLU": lambda a: {},
    "Sigmoid": lambda a: {},
    "Tanh": lambda a: {},
    "SiLU": lambda a: {},
    "LeakyReLU": lambda a: {"slope": a["negative_slope"]},
    "GELU": lambda a: {"approximate": a["approximate"]},
    "Flatten": lambda a: {"start_dim": a["start_dim"], "end_dim": a["end_dim"]},
}
LOSSES = {"CrossEntropyLoss": "nn.functional.cross_entropy", "MSELoss": "nn.functional.mse_loss",
          "L1Loss": "nn.functional.l1_loss", "BCEWithLogitsLoss": "nn.functional.binary_cross_entropy_with_logits"}


def knows_module(name):
    return name in MODULES or name in LOSSES


def arguments_of(cls, given):
    bound = inspect.signature(cls.__init__).bind(None, *given.args, **given.kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def flat(outputs):
    """The tensors of a module's output: y, and the last states of an LSTM."""
    if isinstance(outputs, Tensor):
        return [outputs]
    y, state = outputs
    return [y, *state] if isinstance(state, tuple) else [y]


def express_module(name, module, arguments, forward, training):
    """The call of a layer: its inputs, then its parameters and buffers by name."""
    options = MODULES[name](arguments)
    tensors = [each for each in forward.args]
    need(not {k for k, v in forward.kwargs.items() if v is not None and k != "need_weights"},
         "arguments of forward: " + ", ".join(forward.kwargs))
    if name == "Flatten":
        need((options["start_dim"], options["end_dim"]) == (1, -1), "start_dim, end_dim of Flatten")
    if name == "AdaptiveAvgPool2d":
        size = options["size"] if isinstance(options["size"], (list, tuple)) else [options["size"]] * 2
        options["size"] = [tensors[0].shape[i - 2] if each is None else each for i, each in enumerate(size)]
    if name == "MultiheadAttention":
        need(len(tensors) == 3 and all(each.shape == tensors[0].shape and each.equal(tensors[0]) for each in tensors),
             "attention to other sequences")
        need(options["batch_first"], "MultiHeadAttention of [T, N, features]")
        tensors = tensors[:1]
    if name == "LSTM":
        need(tensors[0].dim() == 3, "an LSTM's sequence without a batch")
        if len(tensors) == 2:
            tensors = [tensors[0], *tensors[1]]
    if name == "Embedding":
        tensors = [tensors[0] if is_float(tensors[0]) else tensors[0].long()]
    need(all(isinstance(each, Tensor) for each in tensors), "inputs that are not tensors")
    parameters = dict(module.named_parameters())
    buffers = {key: value for key, value in module.state_dict().items() if key not in parameters}
    made = call("layer", *tensors, *parameters.values(), *buffers.values(), layer=name, training=training,
                given=len(tensors), names=[*parameters, *buffers], **options)
    return made


def add_module(writer, name, cls, given, dtype, training, add_case, of_operation, generator, fails=False,
               source="module_db"):
    """A case for one set of inputs of a module."""
    arguments, forward = given.constructor_input, given.forward_input
    if forward is None:
        return
    source += " errors" if fails else ""
    if name in LOSSES:
        if not arguments.args:
            sample = SampleInput(forward.args[0], args=forward.args[1:], kwargs=dict(arguments.kwargs))
            function = getattr(F, LOSSES[name].rsplit(".", 1)[1])
            answer = of_operation(LOSSES[name], lambda s: function(s.input, *s.args, **s.kwargs))
            add_case(writer, source, LOSSES[name], sample, answer, generator, fails=fails)
        return
    try:
        module = cls(*arguments.args, **arguments.kwargs).to(dtype).train(training)
    except (ValueError, RuntimeError, TypeError, AssertionError):
        return  # an error of the constructor, which this harness does not compare
    sample = SampleInput(arguments.args, args=tuple(forward.args), kwargs={**arguments.kwargs, **forward.kwargs})

    def express(taken):
        return express_module(name, module, arguments_of(cls, arguments),
                              types.SimpleNamespace(args=taken.args, kwargs=forward.kwargs), training)

    def answer(_):
        wide = copy.deepcopy(module).to(torch.float64)
        args = widened(forward.args)
        made = express_module(name, wide, arguments_of(cls, arguments),
                              types.SimpleNamespace(args=args, kwargs=forward.kwargs), training)
        return made, lambda: flat(wide(*args, **forward.kwargs))

    add_case(writer, source, name, sample, (express, answer), generator, fails=fails)


def widened(value):
    """Tensors in f64, without history; the same tensor stays the same."""
    known = {}

    def wide(each):
        if isinstance(each, (list, tuple)):
            return type(each)(wide(part) for part in each)
        if not isinstance(each, Tensor):
            return each
        if id(each) not in known:
            made = each.detach().clone()
            known[id(each)] = made.to(torch.float64).requires_grad_(each.requires_grad) if is_float(each) else made
        return known[id(each)]

    return wide(value)


# Optimizers: five steps on two parameters.

def add_optimizer(writer, name, cls, options, description, dtype, add_case, generator, fails=False, twice=False,
                  clip=0.0):
    start = [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in ((3, 4), (5,))]
    gradients = [[torch.randn(each.shape, generator=generator, dtype=torch.float64).to(dtype) for each in start]
                 for _ in range(5)]
    def express(_):
        rest = dict(options)
        for key in ("foreach", "fused", "capturable", "differentiable"):
            rest.pop(key, None)  # the same mathematics
        need(not rest.pop("maximize", False), "maximize")
        need(not rest.pop("amsgrad", False), "amsgrad")
        need(not rest.pop("dampening", 0), "dampening")
        rest.pop("decoupled_weight_decay", None)
        need("decoupled_weight_decay" not in options or not options["decoupled_weight_decay"], "use AdamW")
        made = {key: float(value) for key, value in rest.items() if key != "betas"}
        betas = [float(each) for each in rest.get("betas", (0.9, 0.999))]
        if name == "AdamW":
            made.setdefault("weight_decay", 0.01)
        made.setdefault("lr", 1e-3)
        made["clip"] = clip
        return call("optimizer", *start, *(g for step in gradients for g in step), optimizer=name, betas=betas, twice=twice, **made)

    def run():
        parameters = [each.to(torch.float64).requires_grad_() for each in start]
        optimizer = cls(parameters, **options)
        for step in gradients:
            for parameter, gradient in zip(parameters, step):
                parameter.grad = gradient.to(torch.float64)
            if clip > 0:
                torch.nn.utils.clip_grad_norm_(parameters, clip)
            optimizer.step()
        return [each.detach() for each in parameters]

    add_case(writer, "optim_db errors" if fails else "optim_db", name, SampleInput(description, kwargs=options),
             (express, lambda sample: (express(sample), run)), generator, fails=fails)
