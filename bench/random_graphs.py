"""Small random graphs by seed: what the choice of options meets outside of well-known networks."""

import random

from graph import Graph, node, values

CHANNELS = (3, 8, 16, 24, 32, 40, 48, 64, 96, 100, 128, 192)
WORK_MOST = 2e8  # multiply-adds of a graph: a search times hundreds of lists


def size_between(rng, least, most):
    """As often in each doubling."""
    return int(least * (most / least) ** rng.random())


def convolution(rng):
    kernel, stride = rng.choice((1, 1, 3, 3, 5, 7)), rng.choice((1, 1, 2))
    channels, filters = rng.choice(CHANNELS), rng.choice(CHANNELS)
    groups = channels if rng.random() < 0.25 else 1
    filters = channels if groups > 1 else filters
    images, side = rng.choice((1, 1, 4)), size_between(rng, 7, 112)
    while images * side**2 * filters * (channels // groups) * kernel**2 > WORK_MOST and side > kernel:
        side //= 2
    side = max(side, kernel)
    x = values((images, channels, side, side), 1)
    weight, bias = values((filters, channels // groups, kernel, kernel), 2), values(filters, 3)
    last = rng.choice(("Relu", "HardSwish", "Sigmoid"))
    return [node("Conv", ["x", "w", "b"], "c", group=groups, strides=[stride] * 2, pads=[kernel // 2] * 4),
            node(last, ["c"], "y")], {"x": x}, {"w": weight, "b": bias}, 4  # fmt: skip


def product(rng):
    rows, columns, steps = (size_between(rng, 1, 600) for _ in range(3))
    x = values((rows, steps), 1)
    return [node("MatMul", ["x", "w"], "p"), node("Add", ["p", "b"], "y")], {"x": x}, {
        "w": values((steps, columns), 2), "b": values(columns, 3)}, 2  # fmt: skip


def batched_product(rng):
    batch, rows, columns, steps = rng.choice((2, 8, 12)), *(size_between(rng, 8, 200) for _ in range(3))
    inputs = {"x": values((batch, rows, steps), 1), "w": values((batch, steps, columns), 2)}
    nodes = [node("MatMul", ["x", "w"], "p"), node("Softmax", ["p"], "y", axis=-1)]
    return nodes, inputs, {}, 3


def pool(rng):
    kernel = rng.choice((2, 3, 5, 7))
    x = values((1, rng.choice(CHANNELS), *(size_between(rng, 8, 96),) * 2), 1)
    kind = rng.choice(("MaxPool", "AveragePool"))
    shape = {"kernel_shape": [kernel] * 2, "strides": [rng.choice((1, 2))] * 2, "pads": [kernel // 2] * 4}
    return [node(kind, ["x"], "y", **shape)], {"x": x}, {}, 4


def turned(rng):
    """An elementwise chain over a transposed value."""
    shape = [size_between(rng, 4, 90) for _ in range(4)]
    order = rng.sample(range(4), 4)
    x = values(tuple(shape), 1)
    return [node("Transpose", ["x"], "t", perm=order), node("Sigmoid", ["t"], "s"),
            node("Mul", ["s", "t"], "y")], {"x": x}, {}, 4  # fmt: skip


def normalised(rng):
    rows, width = size_between(rng, 8, 1000), size_between(rng, 8, 1500)
    x, scale, shift = values((rows, width), 1), values(width, 2), values(width, 3)
    return [node("LayerNormalization", ["x", "scale", "shift"], "y", axis=-1)], {"x": x}, {
        "scale": scale, "shift": shift}, 2  # fmt: skip


FAMILIES = (convolution, convolution, convolution, product, batched_product, pool, turned, normalised)


def graph_of(seed):
    rng = random.Random(seed)
    nodes, inputs, constants, axes = FAMILIES[seed % len(FAMILIES)](rng)
    return Graph(f"random {seed}", nodes, inputs, constants, (None,) * axes)
