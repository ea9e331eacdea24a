"""Networks that look at pictures: each a maker of a model and of its inputs.

Each stands for a kind of work that the classifiers of make_models.py do not have: resized and
concatenated values, decoding and top-k, gates over channels, patches, windows, pixel shuffle,
quantised convolutions, text in lines.
"""

import math

import numpy as np
from builder import FLOAT, Builder, small, uniform


def picture(rng, shape):
    """Structure on a coarse grid and noise."""
    coarse = rng.standard_normal((*shape[:2], 8, 8))
    grown = np.kron(coarse, np.ones((1, 1, shape[2] // 8, shape[3] // 8)))
    return (grown + 0.3 * rng.standard_normal(shape)).astype(np.float32)


def pictures(*shape):
    return lambda rng, _: [picture(rng, shape)]


def make_unet():
    """Bilinear resizing and concatenation before each convolution on the way up."""
    b = Builder("unet")
    widths = (24, 48, 96, 128)

    def block(x, label, cin, cout):
        for i in range(2):
            x = b.op("Relu", [b.conv(x, f"{label}.{i}", cin if i == 0 else cout, cout, 3)])
        return x

    x, skips, cin = "image", [], 3
    for level, width in enumerate(widths):
        x = block(x, f"down{level}", cin, width)
        cin = width
        if level + 1 < len(widths):
            skips.append((x, width))
            x = b.op("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    scales = b.constant([1, 1, 2, 2], np.float32)
    for level, (skip, width) in reversed(list(enumerate(skips))):
        x = b.op("Resize", [x, "", scales], mode="linear",
                 coordinate_transformation_mode="half_pixel")  # fmt: skip
        x = block(b.op("Concat", [x, skip], axis=1), f"up{level}", cin + width, width)
        cin = width
    y = b.conv(x, "mask", cin, 2, 1)
    b.op("Sigmoid", [y], output="masks")
    size = 128
    return (b.finished({"image": ([1, 3, size, size], FLOAT)},
                       {"masks": ([1, 2, size, size], FLOAT)}, 17), pictures(1, 3, size, size))  # fmt: skip


def make_fpn_detector():
    """Three levels of a pyramid, boxes decoded from a grid, the best hundred of them."""
    b = Builder("fpn_detector")
    size, width, classes, best = 256, 64, 12, 100
    x = b.op("Relu", [b.conv("image", "stem", 3, 24, 3, 2)])
    levels, cin = [], 24
    for i, cout in enumerate((48, 96, 128, 192)):
        x = b.op("Relu", [b.conv(x, f"down{i}", cin, cout, 3, 2)])
        x = b.op("Relu", [b.op("Add", [x, b.conv(x, f"keep{i}", cout, cout, 3, gain=0.3)])])
        cin = cout
        if i > 0:
            levels.append((x, cout, 4 << i))
    scales = b.constant([1, 1, 2, 2], np.float32)
    pyramid, above = [], None
    for i, (x, cin, stride) in reversed(list(enumerate(levels))):
        y = b.conv(x, f"lateral{i}", cin, width, 1)
        if above:
            above = b.op("Resize", [above, "", scales], mode="nearest", nearest_mode="floor",
                         coordinate_transformation_mode="asymmetric")  # fmt: skip
            y = b.op("Add", [y, above])
        above = y
        pyramid.append((b.conv(y, f"smooth{i}", width, width, 3), stride))
    scores, boxes = [], []
    for i, (x, stride) in enumerate(pyramid):
        grid = size // stride
        x = b.op("Relu", [b.conv(x, f"head{i}", width, width, 3)])
        for label, count, into in (("class", classes, scores), ("box", 4, boxes)):
            y = b.conv(x, f"{label}{i}", width, count, 1, gain=0.1)
            y = b.op("Reshape", [y, b.constant([1, count, grid * grid])])
            y = b.op("Transpose", [y], perm=[0, 2, 1])
            if label == "box":
                at = np.stack(np.meshgrid(np.arange(grid), np.arange(grid)), -1).reshape(1, -1, 2)
                centre = b.constant((at + 0.5) * stride, np.float32)
                offset, extent = b.ops("Split", [y, b.constant([2, 2])], 2, axis=2)
                extent = b.op("Mul", [b.op("Exp", [extent]), b.constant(stride, np.float32)])
                offset = b.op("Mul", [offset, b.constant(stride, np.float32)])
                centre = b.op("Add", [offset, centre])
                half = b.op("Mul", [extent, b.constant(0.5, np.float32)])
                y = b.op("Concat", [b.op("Sub", [centre, half]), b.op("Add", [centre, half])], axis=2)
            else:
                y = b.op("Sigmoid", [y])
            into.append(y)
    scores = b.op("Concat", scores, axis=1)
    boxes = b.op("Concat", boxes, axis=1)
    most = b.op("ReduceMax", [scores], axes=[2], keepdims=0)
    _, places = b.ops("TopK", [most, b.constant([best])], 2, output="scores", axis=1)
    at = b.op("Unsqueeze", [places, b.constant([2])])
    at = b.op("Expand", [at, b.constant([1, best, 4])])
    b.op("GatherElements", [boxes, at], output="boxes", axis=1)
    return (b.finished({"image": ([1, 3, size, size], FLOAT)},
                       {"scores": ([1, best], FLOAT), "boxes": ([1, best, 4], FLOAT)}, 17),
            pictures(1, 3, size, size))  # fmt: skip


# kernel, expanded, out, gate, hard swish, stride: MobileNetV3-Small (A. Howard et al., 2019, table 2)
MOBILENET_V3 = [
    (3, 16, 16, True, False, 2), (3, 72, 24, False, False, 2), (3, 88, 24, False, False, 1),
    (5, 96, 40, True, True, 2), (5, 240, 40, True, True, 1), (5, 240, 40, True, True, 1),
    (5, 120, 48, True, True, 1), (5, 144, 48, True, True, 1), (5, 288, 96, True, True, 2),
    (5, 576, 96, True, True, 1), (5, 576, 96, True, True, 1),
]  # fmt: skip


def make_mobilenet_v3():
    """Depthwise convolutions with gates over channels and hard swish."""
    b = Builder("mobilenet_v3")
    relu = lambda x: b.op("Relu", [x])
    hard_swish = lambda x: b.op("HardSwish", [x])
    x = hard_swish(b.conv("image", "stem", 3, 16, 3, 2))
    cin = 16
    for i, (kernel, wide, cout, gate, hard, stride) in enumerate(MOBILENET_V3):
        label, act = f"block{i}", hard_swish if hard else relu
        y = x if wide == cin else act(b.conv(x, f"{label}.expand", cin, wide, 1))
        y = act(b.conv(y, f"{label}.depthwise", wide, wide, kernel, stride, wide))
        if gate:
            less = max(8, wide // 4 // 8 * 8)
            g = b.op("GlobalAveragePool", [y])
            g = relu(b.conv(g, f"{label}.gate0", wide, less, 1))
            g = b.conv(g, f"{label}.gate1", less, wide, 1)
            g = b.op("HardSigmoid", [g], alpha=1 / 6, beta=0.5)
            y = b.op("Mul", [y, g])
        y = b.conv(y, f"{label}.project", wide, cout, 1, gain=0.9)
        x = b.op("Add", [x, y]) if stride == 1 and cin == cout else y
        cin = cout
    x = hard_swish(b.conv(x, "head", cin, 576, 1))
    x = b.op("Flatten", [b.op("GlobalAveragePool", [x])], axis=1)
    x = hard_swish(b.linear(x, "hidden", 576, 1024))
    y = b.linear(x, "classes", 1024, 1000, gain=1)
    b.op("Identity", [y], output="classes")
    return (b.finished({"image": ([1, 3, 224, 224], FLOAT)}, {"classes": ([1, 1000], FLOAT)}, 17),
            pictures(1, 3, 224, 224))  # fmt: skip


def attention(b, x, label, width, heads, tokens, add=None):
    """Attention within each row of x: [rows, tokens, width]; `add`(scores) changes the scores."""
    size = width // heads
    y = b.op("Reshape", [b.linear(x, f"{label}.qkv", width, 3 * width),
                         b.constant([-1, tokens, 3, heads, size])])  # fmt: skip
    y = b.op("Transpose", [y], perm=[2, 0, 3, 1, 4])
    q, k, v = (b.op("Gather", [y, b.constant(i)], axis=0) for i in range(3))
    q = b.op("Mul", [q, b.constant(1 / math.sqrt(size), np.float32)])
    scores = b.op("MatMul", [q, b.op("Transpose", [k], perm=[0, 1, 3, 2])])
    if add:
        scores = add(scores)
    y = b.op("MatMul", [b.op("Softmax", [scores], axis=-1), v])
    y = b.op("Reshape", [b.op("Transpose", [y], perm=[0, 2, 1, 3]), b.constant([-1, tokens, width])])
    return b.linear(y, f"{label}.out", width, width)


def gelu(b, x):
    y = b.op("Erf", [b.op("Div", [x, b.constant(math.sqrt(2), np.float32)])])
    y = b.op("Mul", [x, b.op("Add", [y, b.constant(1, np.float32)])])
    return b.op("Mul", [y, b.constant(0.5, np.float32)])


def feed_forward(b, x, label, width, hidden):
    return b.linear(gelu(b, b.linear(x, f"{label}.up", width, hidden)), f"{label}.down", hidden, width)


def make_vit():
    """Patches of 16 x 16, norms before what they serve."""
    b = Builder("vit")
    width, heads, layers, tokens = 192, 3, 6, 197
    x = b.conv("image", "patches", 3, width, 16, 16, pads=[0] * 4)
    x = b.op("Transpose", [b.op("Reshape", [x, b.constant([1, width, tokens - 1])])], perm=[0, 2, 1])
    first = b.weight("class_token", small(b.rng("class_token"), (1, 1, width)))
    places = b.weight("places", small(b.rng("places"), (1, tokens, width)))
    x = b.op("Add", [b.op("Concat", [first, x], axis=1), places])
    for i in range(layers):
        label = f"layer{i}"
        y = attention(b, b.layer_norm(x, f"{label}.norm0", width), label, width, heads, tokens)
        x = b.op("Add", [x, y])
        y = b.layer_norm(x, f"{label}.norm1", width)
        x = b.op("Add", [x, feed_forward(b, y, label, width, 4 * width)])
    x = b.op("Gather", [b.layer_norm(x, "norm", width), b.constant(0)], axis=1)
    b.op("Identity", [b.linear(x, "classes", width, 1000)], output="classes")
    return (b.finished({"image": ([1, 3, 224, 224], FLOAT)}, {"classes": ([1, 1000], FLOAT)}, 17),
            pictures(1, 3, 224, 224))  # fmt: skip


def roll(b, x, by, size):
    """Along both axes of [1, rows, columns, channels]."""
    for axis in (1, 2):
        cut = by % size
        parts = [b.op("Slice", [x, b.constant([begin]), b.constant([end]), b.constant([axis])])
                 for begin, end in ((cut, size), (0, cut))]  # fmt: skip
        x = b.op("Concat", parts, axis=axis)
    return x


def make_swin():
    """Attention within windows, every second time of a picture that is rolled by half a window."""
    b = Builder("swin")
    size, window, width, heads = 56, 7, 96, 3
    count, tokens = size // window, window * window
    at = np.stack(np.meshgrid(np.arange(window), np.arange(window), indexing="ij")).reshape(2, -1)
    apart = at[:, :, None] - at[:, None, :] + window - 1
    places = (apart[0] * (2 * window - 1) + apart[1]).astype(np.int64)
    # Which part of the rolled picture a token is of: attention stays inside.
    part = np.repeat([0, 1, 2], [size - window, window - window // 2, window // 2])
    part = 3 * part[:, None] + part[None, :]
    part = part.reshape(count, window, count, window).transpose(0, 2, 1, 3).reshape(-1, tokens)
    mask = np.where(part[:, :, None] == part[:, None, :], 0, -100).astype(np.float32)
    x = b.conv("image", "patches", 3, width, 4, 4, pads=[0] * 4)
    x = b.op("Reshape", [x, b.constant([1, width, size * size])])
    x = b.layer_norm(b.op("Transpose", [x], perm=[0, 2, 1]), "patch_norm", width)
    for i in range(2):
        label, shift = f"block{i}", window // 2 * (i % 2)
        table = small(b.rng(f"{label}.table"), ((2 * window - 1) ** 2, heads))
        table = b.weight(f"{label}.table", table)

        def add(scores):
            bias = b.op("Gather", [table, b.constant(places.reshape(-1))], axis=0)
            bias = b.op("Reshape", [bias, b.constant([tokens, tokens, heads])])
            scores = b.op("Add", [scores, b.op("Transpose", [bias], perm=[2, 0, 1])])
            return b.op("Add", [scores, b.constant(mask[:, None], np.float32)]) if shift else scores

        y = b.layer_norm(x, f"{label}.norm0", width)
        y = b.op("Reshape", [y, b.constant([1, size, size, width])])
        y = roll(b, y, shift, size) if shift else y
        y = b.op("Reshape", [y, b.constant([1, count, window, count, window, width])])
        y = b.op("Transpose", [y], perm=[0, 1, 3, 2, 4, 5])
        y = b.op("Reshape", [y, b.constant([-1, tokens, width])])
        y = attention(b, y, label, width, heads, tokens, add)
        y = b.op("Reshape", [y, b.constant([1, count, count, window, window, width])])
        y = b.op("Transpose", [y], perm=[0, 1, 3, 2, 4, 5])
        y = b.op("Reshape", [y, b.constant([1, size, size, width])])
        y = roll(b, y, -shift, size) if shift else y
        x = b.op("Add", [x, b.op("Reshape", [y, b.constant([1, size * size, width])])])
        y = b.layer_norm(x, f"{label}.norm1", width)
        x = b.op("Add", [x, feed_forward(b, y, label, width, 4 * width)])
    b.op("Identity", [x], output="tokens")
    return (b.finished({"image": ([1, 3, 224, 224], FLOAT)},
                       {"tokens": ([1, size * size, width], FLOAT)}, 17), pictures(1, 3, 224, 224))  # fmt: skip


def make_super_resolution():
    """Sub-pixel convolution (W. Shi et al., 2016): every convolution in the small picture."""
    b = Builder("super_resolution")
    rows, columns, times = 80, 112, 3
    x = "image"
    for i, (cin, cout, kernel) in enumerate(((1, 64, 5), (64, 64, 3), (64, 32, 3))):
        x = b.op("Relu", [b.conv(x, f"conv{i}", cin, cout, kernel)])
    x = b.conv(x, "shuffled", 32, times * times, 3)
    b.op("DepthToSpace", [x], output="larger", blocksize=times, mode="CRD")
    return (b.finished({"image": ([1, 1, rows, columns], FLOAT)},
                       {"larger": ([1, 1, rows * times, columns * times], FLOAT)}, 17),
            pictures(1, 1, rows, columns))  # fmt: skip


def make_resnet_int8():
    """A ResNet whose values and weights are of eight bits, as quantisers write it."""
    b = Builder("resnet_int8")
    zero = b.weight("zero", np.int8(0))

    def quantised(x, scale):
        parts = [b.constant(scale, np.float32), zero]
        return b.op("DequantizeLinear", [b.op("QuantizeLinear", [x, *parts]), *parts])

    def conv(x, label, cin, cout, kernel, stride=1):
        rng, fan = b.rng(label), cin * kernel * kernel
        w = rng.integers(-127, 128, (cout, cin, kernel, kernel)).astype(np.int8)
        scale = uniform(b.rng(f"{label}.scale"), (cout,), 0.8, 1.2) * np.float32(
            math.sqrt(2 / fan) / 73)  # 73: the standard deviation of the weights
        parts = [b.weight(f"{label}.weight", w), b.weight(f"{label}.scale", scale),
                 b.weight(f"{label}.zero", np.zeros(cout, np.int8))]  # fmt: skip
        w = b.op("DequantizeLinear", parts, axis=0)
        bias = b.weight(f"{label}.bias", small(b.rng(f"{label}.bias"), (cout,)))
        return b.op("Conv", [x, w, bias], label=label, kernel_shape=[kernel] * 2,
                    strides=[stride] * 2, pads=[kernel // 2] * 4)  # fmt: skip

    relu = lambda x: b.op("Relu", [x])
    x = quantised("image", 0.03)
    x = quantised(relu(conv(x, "stem", 3, 64, 7, 2)), 0.05)
    x = b.op("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    cin, spread = 64, 0.05
    for stage, cout in enumerate((64, 128, 256)):
        for i in range(2):
            label, stride = f"layer{stage}.{i}", 2 if stage > 0 and i == 0 else 1
            y = quantised(relu(conv(x, f"{label}.0", cin, cout, 3, stride)), spread)
            y = conv(y, f"{label}.1", cout, cout, 3)
            if stride != 1:
                x = conv(x, f"{label}.shortcut", cin, cout, 1, stride)
            spread *= 1.3
            x = quantised(relu(b.op("Add", [quantised(y, spread), quantised(x, spread)])), spread)
            cin = cout
    x = b.op("Flatten", [b.op("GlobalAveragePool", [x])], axis=1)
    b.op("Identity", [b.linear(x, "classes", cin, 1000)], output="classes")
    return (b.finished({"image": ([1, 3, 160, 160], FLOAT)}, {"classes": ([1, 1000], FLOAT)}, 17),
            pictures(1, 3, 160, 160))  # fmt: skip


def make_crnn():
    """A line of text: convolutions down to one row, then LSTMs of both directions along it."""
    b = Builder("crnn")
    x, cin, width = "line", 1, 128
    pools = {0: [2, 2], 1: [2, 2], 3: [2, 1], 5: [2, 1]}
    for i, cout in enumerate((32, 64, 128, 128, 256, 256)):
        x = b.op("Relu", [b.conv(x, f"conv{i}", cin, cout, 3)])
        if i in pools:
            x = b.op("MaxPool", [x], kernel_shape=pools[i], strides=pools[i])
        cin = cout
    x = b.op("Relu", [b.conv(x, "last", cin, cin, 2, pads=[0] * 4)])
    steps = 160 // 4 - 1
    x = b.op("Transpose", [b.op("Squeeze", [x, b.constant([2])])], perm=[2, 0, 1])
    for i in range(2):
        r = b.rng(f"lstm{i}")
        rows = cin if i == 0 else 2 * width
        parts = [b.weight(f"lstm{i}.{kind}", uniform(r, (2, *shape), -0.1, 0.1))
                 for kind, shape in (("w", (4 * width, rows)), ("r", (4 * width, width)),
                                     ("b", (8 * width,)))]  # fmt: skip
        x = b.op("LSTM", [x, *parts], hidden_size=width, direction="bidirectional")
        x = b.op("Transpose", [x], perm=[0, 2, 1, 3])
        x = b.op("Reshape", [x, b.constant([steps, 1, 2 * width])])
    b.op("LogSoftmax", [b.linear(x, "characters", 2 * width, 97, gain=4)], output="characters", axis=-1)
    return (b.finished({"line": ([1, 1, 32, 160], FLOAT)}, {"characters": ([steps, 1, 97], FLOAT)}, 17),
            pictures(1, 1, 32, 160))  # fmt: skip


NETWORKS = {
    "unet": make_unet,
    "fpn_detector": make_fpn_detector,
    "mobilenet_v3": make_mobilenet_v3,
    "vit": make_vit,
    "swin": make_swin,
    "super_resolution": make_super_resolution,
    "resnet_int8": make_resnet_int8,
    "crnn": make_crnn,
}
