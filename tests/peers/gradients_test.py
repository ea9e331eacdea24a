"""Gradients of the operations against differences of their values in float64, and against PyTorch's: shapes, windows and
positions that hypothesis draws.

    PYTHONPATH=build/release/bindings/python gradients_test.py [--examples N] [PATTERN]
"""

import argparse
import sys
import unittest

try:
    import hypothesis
    import numpy as np
    import tiny
    import torch
    from hypothesis import strategies as st
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

CASES = {}
STEP = 1e-5  # of a difference, in float64: its error is of the order of 1e-10
CLOSE = 2e-6  # of a difference and a gradient, in parts of the largest summand
SAME = 1e-9  # of a gradient and PyTorch's
# Of gradients in narrower floats: parts of the largest element.
NARROW = {tiny.float32: 1e-4, tiny.float16: 4e-2, tiny.bfloat16: 3e-1}
CONTEXT = tiny.Context(cache=0, threads=1)


class Problem:
    """Inputs, a function of tensors and, where PyTorch has it, of its tensors."""

    def __init__(self, inputs, function, torch_function=None, smooth=True, narrow=True):
        self.inputs = [np.asarray(x, np.float64) for x in inputs]
        self.function, self.torch = function, torch_function
        self.smooth, self.narrow = smooth, narrow


def case(make):
    CASES[make.__name__] = make
    return make


def tensors(arrays, dtype=tiny.float64):
    made = [tiny.tensor(np.asarray(x, np.float64), context=CONTEXT) for x in arrays]
    return made if dtype == tiny.float64 else [t.cast(dtype) for t in made]


class Draw:
    """What a case asks for."""

    def __init__(self, data):
        self.data = data
        self.random = np.random.default_rng(data.draw(st.integers(0, 2 ** 32 - 1)))

    def below(self, n):
        return self.data.draw(st.integers(0, n - 1))

    def between(self, low, high):
        return self.data.draw(st.integers(low, high))

    def one_of(self, *values):
        return self.data.draw(st.sampled_from(values))

    def shape(self, least=0, most=4, size=5, empty=True):
        low = 0 if empty and self.below(12) == 0 else 1
        return [self.between(low, size) for _ in range(self.between(least, most))]

    def values(self, shape, low=-3, high=3):
        """Odd 32nds: exact in every float, none at a corner of a function."""
        count = int((high - low) * 16)
        return (2 * self.random.integers(0, count, shape) + 1) / 32 + low

    def distinct(self, shape):
        count = int(np.prod(shape))
        order = self.random.permutation(count).reshape(shape)
        return (order - count / 2) / 8 + 1 / 16

    def axes(self, rank):
        """Some axes, from the front or from the end; none stands for all."""
        some = [a for a in range(rank) if self.below(2)]
        return [a - rank if self.below(2) else a for a in some] or None

    def axis(self, rank):
        return self.between(-rank, rank - 1)

    def broadcast(self, shape):
        """A shape that broadcasts to this."""
        kept = shape[self.below(len(shape) + 1):]
        return [1 if self.below(3) == 0 else n for n in kept]


# ---- Elementwise.

UNARY = {
    "neg": (torch.neg, -3, 3), "abs": (torch.abs, -3, 3), "sqrt": (torch.sqrt, 0, 3), "exp": (torch.exp, -3, 3),
    "log": (torch.log, 0, 3), "sin": (torch.sin, -3, 3), "cos": (torch.cos, -3, 3), "tanh": (torch.tanh, -3, 3),
    "erf": (torch.erf, -3, 3), "reciprocal": (torch.reciprocal, 0, 3), "rsqrt": (torch.rsqrt, 0, 3),
    "sigmoid": (torch.sigmoid, -3, 3), "relu": (torch.relu, -3, 3), "square": (torch.square, -3, 3),
    "silu": (torch.nn.functional.silu, -3, 3), "softplus": (torch.nn.functional.softplus, -3, 3),
    "expm1": (torch.expm1, -3, 3), "log1p": (torch.log1p, -0.5, 3), "gelu": (torch.nn.functional.gelu, -3, 3),
    "elu": (torch.nn.functional.elu, -3, 3), "leaky_relu": (torch.nn.functional.leaky_relu, -3, 3),
    "floor": (torch.floor, -3, 3), "ceil": (torch.ceil, -3, 3), "round": (torch.round, -3, 3),
    "trunc": (torch.trunc, -3, 3), "sign": (torch.sign, -3, 3),
}


@case
def unary(draw):
    name = draw.one_of(*UNARY)
    of_torch, low, high = UNARY[name]
    x = draw.values(draw.shape(), low, high)
    return Problem([x], lambda x: getattr(x, name)(), of_torch)


# By ONNX's names.
@case
def unary_of_onnx(draw):
    name, low, high = draw.one_of(
        ("Acos", -1, 1), ("Asin", -1, 1), ("Atan", -3, 3), ("Sinh", -3, 3), ("Cosh", -3, 3), ("Asinh", -3, 3),
        ("Acosh", 1, 3), ("Atanh", -1, 1), ("Tan", -1, 1), ("Softsign", -3, 3), ("Mish", -3, 3), ("Selu", -3, 3),
        ("HardSwish", -4, 4), ("Celu", -3, 3), ("ThresholdedRelu", -3, 3), ("Swish", -3, 3))
    x = draw.values(draw.shape(), low, high)
    narrow = name not in ("Acosh", "Atanh", "Acos", "Asin")  # steep at their ends
    return Problem([x], lambda x: tiny.op(name, x), narrow=narrow)


@case
def parametrised(draw):
    x = draw.values(draw.shape())
    a, b = draw.one_of(0.25, 1, 1.5), draw.one_of(0.5, 0.3)
    return draw.one_of(
        Problem([x], lambda x: x.elu(a), lambda x: torch.nn.functional.elu(x, a)),
        Problem([x], lambda x: x.leaky_relu(a), lambda x: torch.nn.functional.leaky_relu(x, a)),
        Problem([x], lambda x: x.hard_sigmoid(a, b)),
        Problem([x], lambda x: x.gelu(approximate=True),
                lambda x: torch.nn.functional.gelu(x, approximate="tanh")))


@case
def binary(draw):
    shape = draw.shape()
    name, of_torch, low = draw.one_of(
        ("add", torch.add, -3), ("sub", torch.sub, -3), ("mul", torch.mul, -3), ("div", torch.div, 0),
        ("pow", torch.pow, 0), ("max", torch.maximum, -3), ("min", torch.minimum, -3))
    x, y = draw.values(shape, low), draw.values(draw.broadcast(shape), low)
    if draw.below(2):
        x, y = y, x
    smooth = name not in ("max", "min")
    if not smooth:
        y = y + 1 / 32  # no ties
    return Problem([x, y], lambda x, y: getattr(x, name)(y), of_torch, smooth=smooth)


@case
def with_numbers(draw):
    x = draw.values(draw.shape(), 0.5, 3)
    n = draw.one_of(-2, 0.5, 2, 3)
    return draw.one_of(
        Problem([x], lambda x: x ** n, lambda x: x ** n), Problem([x], lambda x: n / x, lambda x: n / x),
        Problem([x], lambda x: n - x * n, lambda x: n - x * n),
        Problem([x], lambda x: abs(n) ** x, lambda x: abs(n) ** x),
        Problem([x], lambda x: x.clip(1, 2), lambda x: x.clip(1, 2)))


@case
def choices(draw):
    shape = draw.shape()
    x, y = draw.values(shape), draw.values(draw.broadcast(shape))
    mask = draw.random.integers(0, 2, shape).astype(bool)
    chosen = tiny.tensor(mask.astype(np.int32), context=CONTEXT) > 0
    return draw.one_of(
        Problem([x, y], lambda x, y: chosen.where(x, y), lambda x, y: torch.where(torch.tensor(mask), x, y)),
        Problem([x, y], lambda x, y: (x > 0).where(x.log(), y), None))


@case
def clipped(draw):
    shape = draw.shape()
    x, low = draw.values(shape), draw.values(draw.broadcast(shape), -2, -1) + 1 / 32
    high = draw.values(draw.broadcast(shape), 1, 2) + 1 / 32
    return Problem([x, low, high], lambda x, low, high: x.clip(low, high), torch.clip, smooth=False)


# ---- Reductions.

@case
def reductions(draw):
    name, of_torch = draw.one_of(("sum", torch.sum), ("mean", torch.mean), ("logsumexp", torch.logsumexp),
                                 ("reduce_max", torch.amax), ("reduce_min", torch.amin), ("prod", None))
    shape = draw.shape(1, empty=name in ("sum", "prod"))
    axes, keep = draw.axes(len(shape)), bool(draw.below(2))
    x = draw.distinct(shape) if name.startswith("reduce") else draw.values(shape, 0.5, 2)
    every = list(range(len(shape))) if axes is None else axes

    def reference(x):
        return of_torch(x, every, keepdim=keep)
    return Problem([x], lambda x: getattr(x, name)(axes, keep), reference if of_torch else None)


@case
def products_with_zeros(draw):
    shape = draw.shape(1, 2, empty=False)
    x = draw.values(shape) * draw.random.integers(0, 3, shape).clip(0, 1)
    axis = draw.axis(len(shape))
    return Problem([x], lambda x: x.prod([axis]), lambda x: x.prod(axis), smooth=False)


@case
def variances(draw):
    shape = draw.shape(1, empty=False)
    axes = draw.axes(len(shape))
    every = list(range(len(shape))) if axes is None else axes
    correction = draw.below(2) if np.prod([shape[a] for a in every]) > 1 else 0
    return Problem([draw.values(shape)], lambda x: x.variance(axes, correction),
                   lambda x: torch.var(x, every, correction=correction))


@case
def reductions_of_onnx(draw):
    name = draw.one_of("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum")
    shape = draw.shape(1, empty=False)
    axis = draw.axis(len(shape))
    return Problem([draw.values(shape, 0.5, 2)], lambda x: tiny.op(name, x, [axis]))


@case
def running_sums(draw):
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    exclusive, reverse = bool(draw.below(2)), bool(draw.below(2))
    of_torch = None if exclusive or reverse else lambda x: torch.cumsum(x, axis)
    return Problem([draw.values(shape)], lambda x: x.cumsum(axis, exclusive, reverse), of_torch)


# ---- Movement.

@case
def movement(draw):
    shape = draw.shape(1)
    rank = len(shape)
    x = draw.values(shape)
    order = [int(a) for a in draw.random.permutation(rank)]
    some = draw.axes(rank) or []
    begin = [draw.between(-n - 1, n) for n in shape]
    end = [draw.between(-n - 1, n + 1) for n in shape]
    step = [draw.one_of(-3, -2, -1, 1, 2, 3) for _ in shape]
    pads = [[draw.between(0, 2) for _ in shape] for _ in range(2)]
    repeats = [draw.between(0, 3) for _ in shape]
    return draw.one_of(
        Problem([x], lambda x: x.permute(order), lambda x: x.permute(order)),
        Problem([x], lambda x: x.flip(some), lambda x: x.flip(some)),
        Problem([x], lambda x: x.slice(begin, end, step)),
        Problem([x], lambda x: x.pad(*pads, 1.5)),
        Problem([x], lambda x: x.tile(repeats), lambda x: x.tile(repeats)),
        Problem([x], lambda x: x.reshape([-1] if 0 not in shape else [0]), lambda x: x.reshape([-1])),
        Problem([x], lambda x: x.unsqueeze([0]).expand([3, *shape]), lambda x: x[None].expand([3, *shape])),
        Problem([x], lambda x: x.contiguous() * x, lambda x: x * x))


@case
def overlapping_views(draw):
    n = draw.between(6, 12)
    rows, columns, step, along = draw.between(1, 3), draw.between(1, 3), draw.between(0, 2), draw.between(0, 1)
    return Problem([draw.values([n])], lambda x: (x * x).as_strided([rows, columns], [step, along], 1),
                   lambda x: (x * x).as_strided([rows, columns], [step, along], 1))


@case
def triangles(draw):
    shape = draw.shape(0, 1) + draw.shape(2, 2)
    k = draw.between(-2, 2)
    x = draw.values(shape)
    return draw.one_of(Problem([x], lambda x: x.triu(k), lambda x: torch.triu(x, k)),
                       Problem([x], lambda x: x.tril(k), lambda x: torch.tril(x, k)))


@case
def joins(draw):
    shape = draw.shape(1, 3)
    axis = draw.axis(len(shape))
    other = list(shape)
    other[axis] = draw.between(0, 4)
    x, y = draw.values(shape), draw.values(other)
    return Problem([x, y], lambda x, y: tiny.concat([x, y * y, x], axis), lambda x, y: torch.cat([x, y * y, x], axis))


@case
def parts(draw):
    shape = draw.shape(1, 3, empty=False)
    axis = draw.axis(len(shape))
    first = draw.between(0, shape[axis])
    x = draw.values(shape)

    def split(x):
        a, b = x.split(axis, [first, shape[axis] - first])
        return tiny.concat([b * b, a], axis)

    def of_torch(x):
        a, b = x.split([first, shape[axis] - first], axis)
        return torch.cat([b * b, a], axis)
    return Problem([x], split, of_torch)


@case
def blocks(draw):
    n, c, h, w, block = (draw.between(1, 2) for _ in range(5))
    x, y = draw.values([n, c * block * block, h, w]), draw.values([n, c, h * block, w * block])
    return draw.one_of(
        Problem([x], lambda x: x.depth_to_space(block, columns_first=True), lambda x: torch.pixel_shuffle(x, block)),
        Problem([x], lambda x: x.depth_to_space(block)), Problem([y], lambda y: y.space_to_depth(block)))


# ---- Products.

@case
def products(draw):
    m, k, n = (draw.between(0 if draw.below(8) == 0 else 1, 4) for _ in range(3))
    batch = draw.shape(0, 2, 3, empty=False)
    a = draw.one_of([k], [m, k], [*draw.broadcast(batch), m, k])
    b = draw.one_of([k], [k, n], [*batch, k, n])
    return Problem([draw.values(a), draw.values(b)], lambda a, b: a.matmul(b), torch.matmul)


@case
def sums_of_products(draw):
    equation, shapes = draw.one_of(
        ("ij,jk->ik", ([2, 3], [3, 4])), ("bij,bkj->bik", ([2, 3, 2], [2, 4, 2])), ("ii->i", ([3, 3],)),
        ("ij->ji", ([2, 3],)), ("ij,ij->", ([2, 3], [2, 3])), ("i,j->ij", ([3], [2])),
        ("bhid,bhjd->bhij", ([1, 2, 3, 2], [1, 2, 4, 2])), ("ijk,ij->ik", ([2, 3, 2], [2, 3])))
    return Problem([draw.values(s) for s in shapes], lambda *x: tiny.op("Einsum", *x, equation=equation),
                   lambda *x: torch.einsum(equation, *x))


# ---- Positions.

@case
def reads_by_position(draw):
    shape = draw.shape(1, 3, empty=False)
    axis = draw.axis(len(shape))
    places = draw.random.integers(-shape[axis], shape[axis], draw.shape(0, 2))
    index = tiny.tensor(places.astype(np.int64), context=CONTEXT)
    along = draw.random.integers(0, shape[axis], [n if a != axis % len(shape) else 3 for a, n in enumerate(shape)])
    index_along = tiny.tensor(along.astype(np.int64), context=CONTEXT)
    x = draw.values(shape)
    return draw.one_of(
        Problem([x], lambda x: x.gather(index, axis),
                lambda x: torch.index_select(x, axis, torch.tensor(places.reshape(-1) % shape[axis])).reshape(
                    [*shape[:axis % len(shape)], *places.shape, *shape[axis % len(shape) + 1:]])),
        Problem([x], lambda x: x.take_along_axis(index_along, axis),
                lambda x: torch.take_along_dim(x, torch.tensor(along), axis)))


@case
def reads_by_coordinates(draw):
    shape = draw.shape(2, 3, empty=False)
    count = draw.between(1, len(shape))
    rows = draw.between(1, 4)
    places = np.stack([draw.random.integers(0, n, rows) for n in shape[:count]], -1)
    index = tiny.tensor(places.astype(np.int64), context=CONTEXT)
    return Problem([draw.values(shape)], lambda x: x.gather_nd(index),
                   lambda x: x[tuple(torch.tensor(places[:, i]) for i in range(count))])


@case
def writes_by_position(draw):
    shape = draw.shape(1, 3, empty=False)
    axis = draw.axis(len(shape))
    fold = draw.one_of("none", "add", "mul", "max", "min")
    updates = list(shape)
    updates[axis] = draw.between(1, shape[axis] if fold == "none" else 6)
    if fold == "none":  # PyTorch does not say which of several is written
        lines = [draw.random.permutation(shape[axis])[:updates[axis]]
                 for _ in range(int(np.prod(shape)) // shape[axis])]
        places = np.moveaxis(np.array(lines).reshape(
            [n for a, n in enumerate(shape) if a != axis % len(shape)] + [updates[axis]]), -1, axis)
    else:
        places = draw.random.integers(0, shape[axis], updates)
    places = np.ascontiguousarray(places, np.int64)
    index = tiny.tensor(places, context=CONTEXT)
    both = draw.distinct([int(np.prod(shape)) + int(np.prod(updates))])
    x, u = both[:int(np.prod(shape))].reshape(shape), both[int(np.prod(shape)):].reshape(updates)
    names = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}

    def of_torch(x, u):
        if fold == "none":
            return x.scatter(axis, torch.tensor(places), u)
        return x.scatter_reduce(axis, torch.tensor(places), u, names[fold])
    return Problem([x, u], lambda x, u: tiny.op("ScatterElements", x, index, u, axis=axis, reduction=fold), of_torch,
                   smooth=fold in ("none", "add"))


@case
def writes_by_coordinates(draw):
    shape = draw.shape(2, 3, empty=False)
    rows = draw.between(1, shape[0])
    places = draw.random.permutation(shape[0])[:rows].reshape(rows, 1)
    index = tiny.tensor(places.astype(np.int64), context=CONTEXT)
    fold = draw.one_of("none", "add")
    return Problem([draw.values(shape), draw.values([rows, *shape[1:]])],
                   lambda x, u: tiny.op("ScatterND", x, index, u, reduction=fold))


@case
def sorted_values(draw):
    shape = draw.shape(1, 3, empty=False)
    axis = draw.axis(len(shape))
    k, largest = draw.between(1, shape[axis]), draw.below(2)
    return Problem([draw.distinct(shape)],
                   lambda x: tiny.op("TopK", x, [k], axis=axis, largest=largest, outputs=2)[0],
                   lambda x: torch.topk(x, k, axis, bool(largest))[0])


# ---- Windows.

class WindowOf:
    def __init__(self, draw, spatial):
        self.kernel = [draw.between(1, 3) for _ in range(spatial)]
        self.strides = [draw.between(1, 3) for _ in range(spatial)]
        self.dilations = [draw.between(1, 2) for _ in range(spatial)]
        reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations)]
        self.padding = [draw.between(0, k // 2) for k in self.kernel]
        self.size = [r + draw.between(0, 5) for r in reach]


@case
def convolutions(draw):
    spatial, groups = draw.between(1, 3), draw.between(1, 2)
    w = WindowOf(draw, spatial)
    x = [draw.between(1, 2), groups * draw.between(1, 2), *w.size]
    weight = [groups * draw.between(1, 2), x[1] // groups, *w.kernel]
    of_torch = [torch.nn.functional.conv1d, torch.nn.functional.conv2d, torch.nn.functional.conv3d][spatial - 1]
    return Problem([draw.values(x), draw.values(weight), draw.values(weight[:1])],
                   lambda x, f, b: x.conv(f, b, strides=w.strides, dilations=w.dilations, padding=w.padding,
                                          groups=groups),
                   lambda x, f, b: of_torch(x, f, b, w.strides, w.padding, w.dilations, groups))


@case
def transposed_convolutions(draw):
    spatial, groups = draw.between(1, 2), draw.between(1, 2)
    w = WindowOf(draw, spatial)
    size = [draw.between(1, 4) for _ in range(spatial)]
    more = [draw.below(max(s, d)) for s, d in zip(w.strides, w.dilations)]
    x = [draw.between(1, 2), groups * draw.between(1, 2), *size]
    weight = [x[1], draw.between(1, 2), *w.kernel]
    room = [(n - 1) * s - 2 * p + (k - 1) * d + o + 1 for n, s, p, k, d, o in
            zip(size, w.strides, w.padding, w.kernel, w.dilations, more)]
    hypothesis.assume(min(room) >= 1)
    of_torch = [torch.nn.functional.conv_transpose1d, torch.nn.functional.conv_transpose2d][spatial - 1]
    return Problem([draw.values(x), draw.values(weight), draw.values([weight[1] * groups])],
                   lambda x, f, b: x.conv_transpose(f, b, strides=w.strides, dilations=w.dilations,
                                                    padding=w.padding, output_padding=more, groups=groups),
                   lambda x, f, b: of_torch(x, f, b, w.strides, w.padding, more, groups, w.dilations))


@case
def pools(draw):
    spatial = draw.between(1, 2)
    w = WindowOf(draw, spatial)
    ceil = bool(draw.below(2))
    x = draw.distinct([draw.between(1, 2), draw.between(1, 2), *w.size])
    counts = bool(draw.below(2))
    most = [torch.nn.functional.max_pool1d, torch.nn.functional.max_pool2d][spatial - 1]
    mean = [torch.nn.functional.avg_pool1d, torch.nn.functional.avg_pool2d][spatial - 1]
    return draw.one_of(
        Problem([x], lambda x: x.max_pool(w.kernel, strides=w.strides, dilations=w.dilations, padding=w.padding,
                                          ceil_mode=ceil),
                lambda x: most(x, w.kernel, w.strides, w.padding, w.dilations, ceil)),
        Problem([x], lambda x: x.avg_pool(w.kernel, strides=w.strides, padding=w.padding, ceil_mode=ceil,
                                          count_include_pad=counts),
                lambda x: mean(x, w.kernel, w.strides, w.padding, ceil, counts)))


@case
def resized(draw):
    mode = draw.one_of("nearest", "linear", "cubic")
    x = draw.values([1, draw.between(1, 2), draw.between(2, 5), draw.between(2, 5)])
    sizes = [x.shape[0], x.shape[1], draw.between(1, 8), draw.between(1, 8)]
    places = draw.one_of("half_pixel", "align_corners", "asymmetric")
    return Problem([x], lambda x: tiny.op("Resize", x, None, None, sizes, mode=mode, nearest_mode="floor",
                                          coordinate_transformation_mode=places))


@case
def sampled(draw):
    mode, padding = draw.one_of("linear", "nearest"), draw.one_of("zeros", "border")
    x = draw.values([1, 2, 4, 5])
    grid = draw.values([1, 3, 2, 2], -1, 1) * 0.97
    inputs = [x, grid] if mode == "linear" else [x]
    fixed = tiny.tensor(grid, context=CONTEXT)
    return Problem(inputs, lambda x, g=None: tiny.op("GridSample", x, fixed if g is None else g, mode=mode,
                                                     padding_mode=padding),
                   lambda x, g=None: torch.nn.functional.grid_sample(
                       x, torch.tensor(grid) if g is None else g, "bilinear" if mode == "linear" else mode, padding,
                       align_corners=False), smooth=False)


# ---- Normalisation, attention, recurrences.

@case
def softmaxes(draw):
    shape = draw.shape(1)
    axis = draw.axis(len(shape))
    x = draw.values(shape)
    return draw.one_of(Problem([x], lambda x: x.softmax(axis), lambda x: torch.softmax(x, axis)),
                       Problem([x], lambda x: x.log_softmax(axis), lambda x: torch.log_softmax(x, axis)))


@case
def normalised(draw):
    functional = torch.nn.functional
    n, c, h = draw.between(1, 3), 2 * draw.between(1, 2), draw.between(2, 4)
    x, scale, bias = draw.values([n, c, h]), draw.values([c]), draw.values([c])
    mean, var = draw.values([c]), draw.values([c], 0.5, 2)
    row, shift = draw.values([h]), draw.values([h])
    return draw.one_of(
        Problem([x, row, shift], lambda x, s, b: x.layer_norm(s, b), lambda x, s, b: functional.layer_norm(x, [h], s, b)),
        Problem([x, row], lambda x, s: x.rms_norm(s), lambda x, s: functional.rms_norm(x, [h], s, 1e-5)),
        Problem([x, scale, bias], lambda x, s, b: x.group_norm(2, s, b),
                lambda x, s, b: functional.group_norm(x, 2, s, b)),
        Problem([x, scale, bias], lambda x, s, b: x.instance_norm(s, b),
                lambda x, s, b: functional.instance_norm(x, weight=s, bias=b)),
        Problem([x, scale, bias, mean, var], lambda x, s, b, m, v: x.batch_norm(m, v, s, b),
                lambda x, s, b, m, v: (x - m[:, None]) / (v[:, None] + 1e-5).sqrt() * s[:, None] + b[:, None]),
        Problem([draw.values([1, 5, 3])], lambda x: x.lrn(3, 0.1), lambda x: functional.local_response_norm(x, 3, 0.1, 0.75, 1)))


@case
def attention(draw):
    batch, heads, d = draw.between(1, 2), draw.between(1, 2), draw.between(1, 4)
    rows = draw.between(1, 4)
    columns = draw.between(1, 5)
    causal = draw.below(2)
    if causal:
        columns = rows
    q, k, v = (draw.values([batch, heads, n, d], -1, 1) for n in (rows, columns, columns))
    return Problem([q, k, v], lambda q, k, v: tiny.op("Attention", q, k, v, is_causal=causal),
                   lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=bool(causal)))


@case
def recurrences(draw):
    name, gates = draw.one_of(("RNN", 1), ("GRU", 3), ("LSTM", 4))
    steps, batch, n, hidden = (draw.between(1, 3) for _ in range(4))
    both = draw.one_of("forward", "reverse", "bidirectional")
    ways = 2 if both == "bidirectional" else 1
    x = draw.values([steps, batch, n], -1, 1)
    w, r = (draw.values([ways, gates * hidden, k], -1, 1) for k in (n, hidden))
    b = draw.values([ways, 2 * gates * hidden], -1, 1)
    more = {"linear_before_reset": draw.below(2)} if name == "GRU" else {}
    which = draw.below(2)
    return Problem([x, w, r, b], lambda *all: tiny.op(name, *all, hidden_size=hidden, direction=both, outputs=2,
                                                      **more)[which])


# ---- Losses.

@case
def losses(draw):
    functional = torch.nn.functional
    shape = draw.shape(1, 3, empty=False)
    x, y = draw.values(shape), draw.values(shape) + 1 / 64
    p, q = draw.values(shape, 0.1, 0.9), draw.values(shape, 0.1, 0.9)
    w = draw.values(shape, 0.5, 2)
    reduction = draw.one_of("mean", "sum", "none")
    number = getattr(tiny.Reduction, reduction.upper())
    made = {
        "mse": ([x, y], lambda x, y: x.mse_loss(y, number), lambda x, y: functional.mse_loss(x, y, reduction=reduction)),
        "l1": ([x, y], lambda x, y: x.l1_loss(y, number), lambda x, y: functional.l1_loss(x, y, reduction=reduction)),
        "smooth": ([x, y], lambda x, y: x.smooth_l1_loss(y, 0.7, number),
                   lambda x, y: functional.smooth_l1_loss(x, y, beta=0.7, reduction=reduction)),
        "huber": ([x, y], lambda x, y: x.huber_loss(y, 0.7, number),
                  lambda x, y: functional.huber_loss(x, y, delta=0.7, reduction=reduction)),
        "bce": ([p, q], lambda x, y: x.binary_cross_entropy(y, number),
                lambda x, y: functional.binary_cross_entropy(x, y, reduction=reduction)),
        "logits": ([x, q, w], lambda x, y, w: x.binary_cross_entropy_with_logits(y, w, number),
                   None),
        "positive": ([x], lambda x: x.binary_cross_entropy_with_logits(*tensors([q, w]), number),
                     lambda x: functional.binary_cross_entropy_with_logits(
                         x, torch.tensor(q), pos_weight=torch.tensor(w), reduction=reduction)),
        "kl": ([x, q], lambda x, y: x.kl_div(y, reduction=number),
               lambda x, y: functional.kl_div(x, y, reduction=reduction)),
    }
    inputs, function, of_torch = made[draw.one_of(*made)]
    return Problem(inputs, function, of_torch, smooth=False)


@case
def losses_of_classes(draw):
    functional = torch.nn.functional
    batch, classes = draw.between(1, 4), draw.between(1, 4)
    rest = draw.shape(0, 1, 3, empty=False)
    target = draw.random.integers(0, classes, [batch, *rest])
    ignored = draw.one_of(-100, 0)
    target.flat[0] = draw.one_of(classes - 1, ignored)
    hypothesis.assume((target != ignored).any())
    index = tiny.tensor(target.astype(np.int64), context=CONTEXT)
    reduction = draw.one_of("mean", "sum", "none")
    number = getattr(tiny.Reduction, reduction.upper())
    smoothing = draw.one_of(0, 0.1)
    x, w = draw.values([batch, classes, *rest]), draw.values([classes], 0.5, 2)
    shares = np.exp(draw.values([batch, classes, *rest]))
    return draw.one_of(
        Problem([x], lambda x: x.cross_entropy(index, tensors([w])[0], ignored, smoothing, number),
                lambda x: functional.cross_entropy(x, torch.tensor(target), torch.tensor(w), ignore_index=ignored,
                                                   label_smoothing=smoothing, reduction=reduction)),
        Problem([x], lambda x: x.nll_loss(index, tensors([w])[0], ignored, number),
                lambda x: functional.nll_loss(x, torch.tensor(target), torch.tensor(w), ignore_index=ignored,
                                              reduction=reduction)),
        Problem([x, shares], lambda x, s: x.cross_entropy(s, label_smoothing=smoothing, reduction=number),
                lambda x, s: functional.cross_entropy(x, s, label_smoothing=smoothing, reduction=reduction)))


# ---- What is tested of each.

def check(problem, seed):
    random = np.random.default_rng(seed)
    arrays = problem.inputs
    inputs = tensors(arrays)
    value = problem.function(*inputs)
    weights = random.integers(-4, 5, value.shape) / 4
    upstream = tensors([weights])[0]

    def slopes(inputs, value, upstream):
        return tiny.gradient([value], inputs, [upstream], allow_unused=True)

    def weighed(arrays):
        return float((problem.function(*tensors(arrays)).numpy() * weights).sum())

    graphs = slopes(inputs, value, upstream)
    gradients = [g.numpy() for g in graphs]
    for x, g in zip(arrays, gradients):
        assert g.shape == x.shape and g.dtype == x.dtype, (g.shape, x.shape, g.dtype)
    directions = [random.integers(-4, 5, x.shape) / 4 for x in arrays]

    def moved(by):
        return [x + by * d for x, d in zip(arrays, directions)]

    def compare(got, want, size, what):
        assert abs(got - want) <= CLOSE * max(1, size), f"{what}: {got}, by differences {want}"

    parts = [g * d for g, d in zip(gradients, directions)]
    size = max([np.abs(p).max(initial=0) for p in parts] + [np.abs(weights * value.numpy()).max(initial=0)])
    difference = (weighed(moved(STEP)) - weighed(moved(-STEP))) / (2 * STEP)
    compare(sum(p.sum() for p in parts), difference, size, "slope")
    if problem.torch:
        check_torch(problem, weights, gradients)
    if problem.smooth:
        check_second(problem, arrays, weights, random, slopes, moved, directions, compare)
    if problem.narrow:
        for dtype, most in NARROW.items():
            lower = tensors(arrays, dtype)
            made = slopes(lower, problem.function(*lower), tensors([weights], dtype)[0])
            for g, t, want in zip(made, lower, gradients):
                assert g.dtype == dtype and g.shape == t.shape, (g.dtype, g.shape)
                got = g.cast(tiny.float64).numpy()
                bound = most * max(1, np.abs(want).max(initial=0))
                assert np.abs(got - want).max(initial=0) <= bound, f"of {dtype!r}: {got}, in float64 {want}"


def check_torch(problem, weights, gradients):
    inputs = [torch.tensor(x, requires_grad=True) for x in problem.inputs]
    value = problem.torch(*inputs)
    if not value.requires_grad:
        return
    found = torch.autograd.grad(value, inputs, torch.tensor(weights).reshape(value.shape), allow_unused=True)
    for got, want in zip(gradients, found):
        want = np.zeros_like(got) if want is None else want.numpy()
        bound = SAME * max(1, np.abs(want).max(initial=0))
        assert np.abs(got - want).max(initial=0) <= bound, f"{got}, PyTorch's {want}"


def check_second(problem, arrays, weights, random, slopes, moved, directions, compare):
    """Slopes of what the gradients sum to with other weights."""
    others = [random.integers(-4, 5, x.shape) / 4 for x in arrays]

    def first(inputs):
        made = slopes(inputs, problem.function(*inputs), tensors([weights])[0])
        total = None
        for g, w in zip(made, tensors(others)):
            part = (g * w).sum()
            total = part if total is None else total + part
        return total

    inputs = tensors(arrays)
    second = tiny.gradient([first(inputs)], inputs, allow_unused=True)
    parts = [g.numpy() * d for g, d in zip(second, directions)]
    size = max(np.abs(p).max(initial=0) for p in parts)
    below, above = (first(tensors(moved(by))).item() for by in (-STEP, STEP))
    compare(sum(p.sum() for p in parts), (above - below) / (2 * STEP), max(size, abs(above)), "second slope")


class Gradients(unittest.TestCase):
    def test_integers_have_none(self):
        x = tiny.tensor([1, 2], context=CONTEXT)
        y = tiny.tensor([1.0, 2.0], context=CONTEXT)
        for losses, wrt in (([x.sum()], [x]), ([(x.cast(tiny.float32) * y).sum()], [x]), ([x.sum()], [y])):
            with self.assertRaisesRegex(tiny.Error, "tiny_gradient: a gradient .* of int64.*; wanted floats"):
                tiny.gradient(losses, wrt)

    def test_ties_and_what_is_no_number(self):
        def slope(f, *values):
            x = tiny.tensor([float(v) for v in values], context=CONTEXT)
            y = f(x)
            return tiny.gradient([y], [x], [tiny.tensor(np.ones(y.shape, np.float32), context=CONTEXT)])[0].tolist()
        nan, inf = float("nan"), float("inf")
        self.assertEqual(slope(lambda x: x.reduce_max(), 1, 3, 3, 2), [0, 0.5, 0.5, 0])
        self.assertEqual(slope(lambda x: x.reduce_min(), 1, 1, 3), [0.5, 0.5, 0])
        self.assertEqual(slope(lambda x: x.reduce_max(), 1, nan, 3), [0, 1, 0])
        self.assertEqual(slope(lambda x: x.reduce_max(), 1, inf, 3), [0, 1, 0])
        self.assertEqual(slope(lambda x: x.reshape([1, 1, 4]).max_pool(2, strides=2), 3, 3, nan, 1), [1, 0, 1, 0])
        self.assertEqual(slope(lambda x: x.max(x.detach()), 1, 2), [0.5, 0.5])
        self.assertEqual(slope(lambda x: x.relu(), -1, 0, nan, inf), [0, 0, 1, 1])
        self.assertEqual(slope(lambda x: x.abs(), -1, 0, 1), [-1, 0, 1])
        self.assertEqual(slope(lambda x: (x > 0).where(x.log(), 0), -1, 0, 2), [0, 0, 0.5])
        self.assertEqual(slope(lambda x: x.prod(), 0, 2, 3), [6, 0, 0])
        self.assertEqual(slope(lambda x: x.clip(1, 2), 0, 1, 1.5, 2, 3, nan), [0, 1, 1, 1, 0, 1])
        self.assertEqual(slope(lambda x: x.maximum(1), 0, 1, 2, nan), [0, 0.5, 1, 1])
        self.assertEqual(slope(lambda x: x.minimum(1), 0, 1, 2, nan), [1, 0.5, 0, 1])
        self.assertEqual(slope(lambda x: x ** 1.5, 0, 4, inf), [0, 3, inf])
        self.assertEqual(slope(lambda x: x.elu(), -inf, 0, 800, inf, nan), [0, 1, 1, 1, 1])
        self.assertEqual(slope(lambda x: x.selu(gamma=2), -inf, 800, nan), [0, 2, 2])
        self.assertEqual(slope(lambda x: x.celu(2), -inf, 0, 800), [0, 1, 1])
        self.assertEqual(slope(lambda x: x.softplus(), 0), [0.5])
        self.assertEqual(slope(lambda x: x.exp() / (x.exp() + 1), -300, 0, 300), [0, 0.25, 0])
        self.assertEqual(slope(lambda x: x.sigmoid(), -300, 0, 300), [0, 0.25, 0])
        rows = np.random.default_rng(0).uniform(-2, 2, (40, 60)).astype(np.float32)
        x = tiny.tensor(rows, context=CONTEXT)  # a row's slopes cancel; nothing is left at its maximum
        left = tiny.gradient([x.softmax(1).sum()], [x])[0].numpy()
        self.assertLess(np.abs(left).max(), 3e-8)
        np.testing.assert_allclose(slope(lambda x: tiny.op("Acosh", x), -1.25, 1.25), [4 / 3, 4 / 3], rtol=1e-6)
        for name in ("Atan", "Asin", "Asinh", "Sinh", "Tan"):
            self.assertEqual(slope(lambda x, name=name: tiny.op(name, x), 0, -0.0), [1, 1], name)


def test_of(make):
    def test(self):
        @hypothesis.settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
                             suppress_health_check=list(hypothesis.HealthCheck),
                             phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink])
        @hypothesis.given(st.data(), st.integers(0, 2 ** 32 - 1))
        def holds(data, seed):
            check(make(Draw(data)), seed)
        holds()
    return test


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", type=int, default=12)
    parser.add_argument("pattern", nargs="?", default="")
    arguments = parser.parse_args()
    EXAMPLES = arguments.examples
    for name, make in CASES.items():
        if arguments.pattern in name:
            setattr(Gradients, f"test_{name}", test_of(make))
    unittest.main(argv=[sys.argv[0], "-v"])
