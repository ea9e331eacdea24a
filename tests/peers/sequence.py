"""Networks over sound, text and graphs: each a maker of a model and of its inputs.

Each stands for a kind of work that the classifiers of make_models.py do not have: a spectrum by a
long convolution, sums by index, recurrences, lookups by position, Fourier transforms by products.
"""

import math

import numpy as np
from builder import FLOAT, INT64, Builder, small, uniform
from vision import gelu

VOCABULARY = 1000
GRU_STEPS = 64


def lstm(b, x, label, rows, width):
    r = b.rng(label)
    parts = [b.weight(f"{label}.{kind}", uniform(r, (1, *shape), -0.1, 0.1))
             for kind, shape in (("w", (4 * width, rows)), ("r", (4 * width, width)),
                                 ("b", (8 * width,)))]  # fmt: skip
    return b.op("LSTM", [x, *parts], hidden_size=width)


def make_voice_detector():
    """A spectrum by a convolution over samples that are padded by reflection, then an LSTM."""
    b = Builder("voice_detector")
    samples, frame, hop, width = 32000, 256, 128, 128
    bins = frame // 2 + 1
    at = 2 * np.pi / frame * np.outer(np.arange(bins), np.arange(frame))
    window = np.hanning(frame + 1)[:-1]
    basis = np.concatenate([np.cos(at) * window, -np.sin(at) * window]).astype(np.float32)
    x = b.op("Pad", ["sound", b.constant([0, 64, 0, 64])], mode="reflect")
    x = b.op("Unsqueeze", [x, b.constant([1])])
    x = b.op("Conv", [x, b.weight("basis", basis[:, None, :])], kernel_shape=[frame], strides=[hop])
    parts = [b.op("Slice", [x, b.constant([begin]), b.constant([end]), b.constant([1])])
             for begin, end in ((0, bins), (bins, 2 * bins))]  # fmt: skip
    squares = [b.op("Pow", [p, b.constant(2, np.float32)]) for p in parts]
    x = b.op("Sqrt", [b.op("Add", squares)])
    cin = bins
    for i, (cout, stride) in enumerate(((128, 1), (64, 2), (64, 2), (128, 1))):
        x = b.op("Relu", [b.conv(x, f"encode{i}", cin, cout, [3], stride, gain=0.3 if i == 0 else 1)])
        cin = cout
    x = lstm(b, b.op("Transpose", [x], perm=[2, 0, 1]), "lstm", cin, width)
    x = b.op("Transpose", [b.op("Squeeze", [x, b.constant([1])])], perm=[1, 2, 0])
    x = b.conv(b.op("Relu", [x]), "decode", width, 1, [1], gain=4)
    b.op("Sigmoid", [x], output="speech")
    frames = math.ceil(math.ceil(((samples + 128 - frame) // hop + 1) / 2) / 2)
    sound = lambda rng, _: [(0.3 * rng.standard_normal((1, samples))
                             + np.sin(np.arange(samples) / rng.uniform(5, 40))).astype(np.float32)]  # fmt: skip
    return (b.finished({"sound": ([1, samples], FLOAT)}, {"speech": ([1, 1, frames], FLOAT)}, 17),
            sound)  # fmt: skip


def make_graph_network():
    """What the edges of a graph carry is summed at the nodes where they end."""
    b = Builder("graph_network")
    nodes, edges, width, kinds = 1000, 6000, 64, 10
    begins, ends = (b.op("Gather", ["edges", b.constant(i)], axis=0) for i in range(2))
    at = b.op("Unsqueeze", [ends, b.constant([1])])
    none = b.constant(np.zeros((nodes, width)), np.float32)
    x = b.op("Relu", [b.linear("features", "embed", 32, width)])
    for i in range(3):
        carried = b.linear(x, f"layer{i}.carried", width, width)
        received = b.linear(x, f"layer{i}.received", width, width)
        y = b.op("Add", [b.op("Gather", [carried, begins], axis=0),
                         b.op("Gather", [received, ends], axis=0)])  # fmt: skip
        y = b.op("ScatterND", [none, at, b.op("Relu", [y])], reduction="add")
        y = b.op("Mul", [y, b.constant(nodes / edges, np.float32)])
        y = b.op("Concat", [x, y], axis=1)
        x = b.op("Relu", [b.linear(y, f"layer{i}.joined", 2 * width, width, gain=1)])
    b.op("Identity", [b.linear(x, "kinds", width, kinds)], output="kinds")

    def inputs(rng, _):
        return [rng.standard_normal((nodes, 32)).astype(np.float32),
                rng.integers(0, nodes, (2, edges), np.int64)]  # fmt: skip

    return (b.finished({"features": ([nodes, 32], FLOAT), "edges": ([2, edges], INT64)},
                       {"kinds": ([nodes, kinds], FLOAT)}, 18), inputs)  # fmt: skip


def make_gru_tagger(steps=GRU_STEPS):
    """A label for each word, of GRUs of both directions."""
    b = Builder("gru_tagger")
    width, hidden, labels = 96, 128, 24
    table = b.rng("table").standard_normal((VOCABULARY, width)).astype(np.float32)
    x = b.op("Gather", [b.weight("table", table), "words"], axis=0)
    x = b.op("Transpose", [x], perm=[1, 0, 2])
    r = b.rng("gru")
    parts = [b.weight(f"gru.{kind}", uniform(r, (2, *shape), -0.1, 0.1))
             for kind, shape in (("w", (3 * hidden, width)), ("r", (3 * hidden, hidden)),
                                 ("b", (6 * hidden,)))]  # fmt: skip
    x = b.op("GRU", [x, *parts], hidden_size=hidden, direction="bidirectional", linear_before_reset=1)
    x = b.op("Reshape", [b.op("Transpose", [x], perm=[0, 2, 1, 3]), b.constant([steps, 1, 2 * hidden])])
    b.op("LogSoftmax", [b.linear(x, "labels", 2 * hidden, labels, gain=3)], output="labels", axis=-1)
    words = lambda rng, _: [rng.integers(0, VOCABULARY, (1, steps), np.int64)]
    return (b.finished({"words": ([1, steps], INT64)}, {"labels": ([steps, 1, labels], FLOAT)}, 17),
            words)  # fmt: skip


def make_embedder():
    """A vector for a sentence: tokens and positions are looked up, and so is each pair's distance."""
    b = Builder("embedder")
    tokens, width, heads, layers, reach = 128, 384, 12, 4, 32
    size = width // heads
    rng = b.rng("tables")
    words = b.weight("words", rng.standard_normal((VOCABULARY, width)).astype(np.float32))
    places = b.weight("places", small(rng, (tokens + 2, width)))
    x = b.op("Add", [b.op("Gather", [words, "tokens"], axis=0),
                     b.op("Gather", [places, "positions"], axis=0)])  # fmt: skip
    x = b.layer_norm(x, "embedding_norm", width)
    apart = b.op("Sub", [b.op("Unsqueeze", ["positions", b.constant([2])]),
                         b.op("Unsqueeze", ["positions", b.constant([1])])])  # fmt: skip
    apart = b.op("Min", [b.op("Max", [apart, b.constant(-reach)]), b.constant(reach)])
    apart = b.op("Add", [apart, b.constant(reach)])
    table = b.weight("distances", small(rng, (2 * reach + 1, heads)))
    bias = b.op("Transpose", [b.op("Gather", [table, apart], axis=0)], perm=[0, 3, 1, 2])
    there = b.op("Cast", ["mask"], to=FLOAT)
    away = b.op("Mul", [b.op("Sub", [there, b.constant(1, np.float32)]), b.constant(1e4, np.float32)])
    bias = b.op("Add", [bias, b.op("Unsqueeze", [away, b.constant([1, 2])])])
    for i in range(layers):
        label = f"layer{i}"
        q, k, v = (b.op("Transpose", [b.op("Reshape", [b.linear(x, f"{label}.{kind}", width, width),
                                                       b.constant([0, 0, heads, size])])], perm=perm)
                   for kind, perm in zip("qkv", ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])))  # fmt: skip
        scores = b.op("Div", [b.op("MatMul", [q, k]), b.constant(math.sqrt(size), np.float32)])
        y = b.op("MatMul", [b.op("Softmax", [b.op("Add", [scores, bias])], axis=-1), v])
        y = b.op("Reshape", [b.op("Transpose", [y], perm=[0, 2, 1, 3]), b.constant([0, 0, width])])
        x = b.layer_norm(b.op("Add", [x, b.linear(y, f"{label}.out", width, width)]), f"{label}.norm0",
                         width)  # fmt: skip
        y = b.linear(gelu(b, b.linear(x, f"{label}.up", width, 4 * width)), f"{label}.down", 4 * width,
                     width)  # fmt: skip
        x = b.layer_norm(b.op("Add", [x, y]), f"{label}.norm1", width)
    weight = b.op("Unsqueeze", [there, b.constant([2])])
    sums = [b.op("ReduceSum", [t, b.constant([1])], keepdims=0)
            for t in (b.op("Mul", [x, weight]), weight)]  # fmt: skip
    mean = b.op("Div", sums)
    length = b.op("ReduceL2", [mean], axes=[1], keepdims=1)
    b.op("Div", [mean, length], output="sentence")

    def inputs(rng, i):
        there = (np.arange(tokens) < tokens - 20 * i).astype(np.int64)[None]
        return [rng.integers(0, VOCABULARY, (1, tokens), np.int64),
                np.cumsum(there, axis=1) * there + 1, there]  # fmt: skip

    ports = {name: ([1, tokens], INT64) for name in ("tokens", "positions", "mask")}
    return b.finished(ports, {"sentence": ([1, width], FLOAT)}, 17), inputs


def make_dft():
    """The spectra of frames by products with sines, then along the frames the same of complex values."""
    b = Builder("dft")
    frames, size = 96, 400
    bins = size // 2 + 1

    def waves(count, length):
        at = 2 * np.pi / length * np.outer(np.arange(count), np.arange(length))
        return [(f(at) / math.sqrt(length)).astype(np.float32) for f in (np.cos, np.sin)]

    window = b.constant(np.hanning(size + 1)[:-1], np.float32)
    x = b.op("Mul", ["frames", window])
    cos, sin = (b.weight(n, w.T.copy()) for n, w in zip(("cos", "sin"), waves(bins, size)))
    real, imaginary = b.op("MatMul", [x, cos]), b.op("Neg", [b.op("MatMul", [x, sin])])
    cos, sin = (b.weight(n, w) for n, w in zip(("cos_across", "sin_across"), waves(frames, frames)))
    across = b.op("Add", [b.op("MatMul", [cos, real]), b.op("MatMul", [sin, imaginary])])
    beside = b.op("Sub", [b.op("MatMul", [cos, imaginary]), b.op("MatMul", [sin, real])])
    power = b.op("Add", [b.op("Mul", [across, across]), b.op("Mul", [beside, beside])])
    b.op("Log", [b.op("Add", [power, b.constant(1e-3, np.float32)])], output="spectra")
    sounds = lambda rng, _: [rng.standard_normal((8, frames, size)).astype(np.float32)]
    return (b.finished({"frames": ([8, frames, size], FLOAT)}, {"spectra": ([8, frames, bins], FLOAT)},
                       17), sounds)  # fmt: skip


NETWORKS = {
    "voice_detector": make_voice_detector,
    "graph_network": make_graph_network,
    "gru_tagger": make_gru_tagger,
    "embedder": make_embedder,
    "dft": make_dft,
}
