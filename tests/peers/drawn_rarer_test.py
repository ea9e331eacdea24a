"""Operators that are rarer than those of drawn_operators_test.py, with drawn attributes and shapes, against onnxruntime.

    PYTHONPATH=build/release/bindings/python drawn_rarer_test.py [PATTERN [SEED [COUNT]]]
"""

import sys

import drawn_cases

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)


def recurrent(d, op):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    steps, batch, width, hidden = d.number(1, 6), d.number(1, 3), d.number(1, 9), d.number(1, 9)
    direction = d.among("forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    attributes = {"hidden_size": hidden, "direction": direction}
    optional = lambda array: array if d.number(0, 1) else None
    if d.number(0, 1):
        attributes["clip"] = 0.5
    if op == "GRU":
        attributes["linear_before_reset"] = d.number(0, 1)
    if d.number(0, 2) == 0:
        each = {"LSTM": 3, "GRU": 2, "RNN": 1}[op]
        attributes["activations"] = [d.among("Sigmoid", "Tanh", "Relu", "HardSigmoid", "Softsign") for _ in range(each * ways)]
    given = [d.floats([steps, batch, width]), d.floats([ways, gates * hidden, width]) / 2, d.floats([ways, gates * hidden, hidden]) / 2,
             optional(d.floats([ways, 2 * gates * hidden])), optional(d.integers([batch], 1, steps + 1, np.int32)),
             optional(d.floats([ways, batch, hidden]))]  # fmt: skip
    if op == "LSTM":
        given += [optional(d.floats([ways, batch, hidden])), optional(d.floats([ways, 3 * hidden]))]
        attributes |= {"input_forget": d.number(0, 1)}
    return given, attributes


def unique(d):
    x = d.integers(d.shape(d.number(1, 3), 1, 6), 0, 4).astype(d.among(np.float32, np.int64, np.int8))
    return [x], {"sorted": d.number(0, 1), **({"axis": d.axis(x.ndim)} if d.number(0, 1) else {})}


def suppressed(d):
    classes, boxes, batch = d.number(1, 3), d.number(1, 30), d.number(1, 2)
    corners = d.rng.random((batch, boxes, 2, 2)).astype(np.float32)
    if d.number(0, 1):
        corners = np.sort(corners, 2)
    return [corners.reshape(batch, boxes, 4), d.rng.random((batch, classes, boxes)).astype(np.float32), np.int64([d.number(0, 8)]),
            np.float32([d.among(0.0, 0.3, 0.7)]), np.float32([d.among(0.0, 0.4)])], {"center_point_box": d.number(0, 1)}


def regions(d):
    x = d.floats([2, d.number(1, 3), *d.shape(2, 4, 9)])
    count = d.number(1, 4)
    corners = np.sort(d.rng.random((count, 2, 2)) * 8, 1).reshape(count, 4).astype(np.float32)
    return [x, corners, d.integers([count], 0, 2)], {"mode": d.among("avg", "max"), "output_height": d.number(1, 4), "output_width": d.number(1, 4),
                                                     "sampling_ratio": d.number(1, 3), "spatial_scale": d.among(1.0, 0.5),
                                                     "coordinate_transformation_mode": d.among("half_pixel", "output_half_pixel")}


def transformed(d):
    one_sided, inverse = d.number(0, 1), d.number(0, 1)
    size = d.among(2, 3, 5, 8, 12, 16)
    x = d.floats([d.number(1, 3), size, d.number(1, 3), 2 if inverse or not one_sided else 1])
    return [x, None, np.int64(d.among(1, -3))], {"inverse": inverse, "onesided": 0 if inverse or x.shape[-1] == 2 else one_sided}


def columns(d):
    kernel, strides, dilations, pads = d.shape(2, 1, 3), d.shape(2, 1, 2), d.shape(2, 1, 2), d.shape(4, 0, 1)
    image = d.shape(2, 6, 10)
    count = 1
    for i in range(2):
        count *= (image[i] + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1
    return [d.floats([2, d.number(1, 3) * kernel[0] * kernel[1], count]), np.int64(image), np.int64(kernel)], {
        "strides": strides, "dilations": dilations, "pads": pads}


def norm_pool(d):
    rank = d.number(1, 2)
    kernel = d.shape(rank, 1, 3)
    return [d.floats([2, d.number(1, 3), *d.shape(rank, 4, 9)])], {"kernel_shape": kernel, "p": d.number(1, 3), "strides": d.shape(rank, 1, 2),
                                                                   "pads": [d.number(0, (k - 1) // 2) for k in kernel] * 2}


def reversed_sequences(d):
    x = d.floats(d.shape(d.number(2, 4), 1, 6))
    batch = d.number(0, 1)
    return [x, d.integers([x.shape[batch]], 1, x.shape[1 - batch] + 1)], {"batch_axis": batch, "time_axis": 1 - batch}


def scattered_in_many(d):
    x = d.floats(d.shape(d.number(1, 4), 2, 5))
    depth = d.number(1, x.ndim)
    total = int(np.prod(x.shape[:depth]))
    places = d.rng.permutation(total)[: d.number(1, total)]
    index = np.stack(np.unravel_index(places, x.shape[:depth]), -1).astype(np.int64)
    index -= np.int64(x.shape[:depth]) * (d.integers(index.shape, 0, 2))
    return [x, index, d.floats([len(places), *x.shape[depth:]])], {"reduction": d.among("none", "add", "mul", "max", "min")}


def encoded(d):
    kind = d.among(np.float32, np.int64)
    return [d.integers(d.shape(d.number(0, 3)), -5, 6), np.int64(d.number(3, 6)), np.array([0, 3], kind)], {"axis": d.number(-1, 0)}


def extreme_place(d):
    x = d.integers(d.shape(d.number(1, 4), 1, 5), 0, 3).astype(d.among(np.float32, np.int32, np.int8))
    return [x], {"axis": d.axis(x.ndim), "keepdims": d.number(0, 1), "select_last_index": d.number(0, 1)}


def remainder(d):
    kind = d.among(np.int32, np.int64, np.uint8, np.int8, np.float32)
    by = d.integers(d.shape(d.number(0, 2), 1, 5), 1, 7) * (1 if kind == np.uint8 else d.among(-1, 1))
    return [d.integers([*d.shape(d.number(0, 1)), *([n for n in by.shape])], 0 if kind == np.uint8 else -50, 50).astype(kind), by.astype(kind)], {
        "fmod": 1 if kind == np.float32 else d.number(0, 1)}


def scales_of(d, shape, axis, block):
    shape = list(shape)
    if block:
        shape[axis] = -(-shape[axis] // block)
        return shape
    return d.among([], [shape[axis]])


def quantised(d, op):
    x = d.floats(d.shape(d.number(1, 4), 2, 9)) * 4
    axis, block, kind = d.axis(x.ndim), d.among(0, 0, 2, 3), d.among(np.uint8, np.int8, np.uint16, np.int16)
    shape = scales_of(d, x.shape, axis, block)
    limits = np.iinfo(kind)
    scale, zero = (np.abs(d.floats(shape)) / 8 + np.float32(0.01)).astype(np.float32), d.integers(shape, limits.min, limits.max + 1, kind)
    if op == "DequantizeLinear":
        x = d.integers(x.shape, limits.min, limits.max + 1, kind)
    return [x, scale, zero if d.number(0, 3) or op == "QuantizeLinear" else None], {"axis": axis, **({"block_size": block} if block else {})}


def quantised_product(d):
    m, k, n = d.shape(3, 1, 40)
    batch = d.shape(d.number(0, 1), 1, 3)
    a, b = d.among(np.uint8, np.int8), d.among(np.uint8, np.int8)
    limits = lambda kind: (np.iinfo(kind).min, np.iinfo(kind).max + 1)
    scale = lambda low: np.float32(low + d.rng.random() * low)
    return [d.integers([*batch, m, k], *limits(a), a), scale(0.01), d.integers([], *limits(a), a), d.integers([k, n], *limits(b), b), scale(0.01),
            d.integers([], *limits(b), b), scale(0.1), d.integers([], *limits(a), a)], {}


def axis_of(d, op):
    x = d.floats(d.shape(d.number(1, 4), 1, 7))
    return [x], {"axis": d.axis(x.ndim)}


def p_norm(d):
    x = d.floats(d.shape(d.number(1, 4), 1, 7))
    return [x], {"axis": d.axis(x.ndim), "p": d.number(1, 2)}


def grouped(d):
    groups = d.number(1, 3)
    channels = groups * d.number(1, 3)
    return [d.floats([d.number(1, 2), channels, *d.shape(d.number(1, 2), 1, 6)]), d.floats([channels]), d.floats([channels])], {
        "num_groups": groups, "epsilon": 0.1}  # onnxruntime's variance is a difference, wrong by 1e-4 of near numbers


def local(d):
    return [d.floats([2, d.number(1, 9), *d.shape(2, 2, 5)])], {"size": d.among(1, 3, 5), "alpha": 0.01, "beta": 0.6, "bias": 1.5}


def triangle(d):
    x = d.floats(d.shape(d.number(2, 4), 1, 7))
    return [x, np.int64(d.number(-8, 8))], {"upper": d.number(0, 1)}


def centred(d):
    x = d.floats(d.shape(d.number(1, 4), 1, 9))
    axes = d.permutation(x.ndim)[: d.number(1, x.ndim)]
    return [x, np.int64([d.number(1, 12) for _ in axes])], {"axes": axes}


def attended(d):
    batch, heads, queries, keys, width = d.number(1, 2), d.number(1, 3), d.number(1, 5), d.number(1, 6), d.among(4, 8)
    repeats, has_three = d.among(1, 1, 2), d.number(0, 1)
    if has_three:
        q, k, v = (d.floats([batch, n, h * width]) for n, h in ((queries, heads * repeats), (keys, heads), (keys, heads)))
    else:
        q, k, v = (d.floats([batch, h, n, width]) for n, h in ((queries, heads * repeats), (keys, heads), (keys, heads)))
    attributes = {"is_causal": d.number(0, 1), "softcap": d.among(0.0, 0.0, 2.0), **({"scale": 0.3} if d.number(0, 1) else {})}
    if has_three:
        attributes |= {"q_num_heads": heads * repeats, "kv_num_heads": heads}
    mask = None
    if d.number(0, 1):
        mask = d.floats([queries, keys]) if d.number(0, 1) else d.rng.random((queries, keys)) > 0.3
        if mask.dtype == bool:
            mask[:, 0] = True
    return [q, k, v, mask], attributes


def rotated(d):
    batch, heads, steps, width = d.number(1, 2), d.number(1, 3), d.number(1, 5), d.among(4, 8)
    turned = d.among(0, width // 2) if width == 8 else 0
    half = (turned or width) // 2
    x = d.floats([batch, heads, steps, width])
    if d.number(0, 1):
        return [x, d.floats([9, half]), d.floats([9, half]), d.integers([batch, steps], 0, 9)], {"rotary_embedding_dim": turned, "interleaved": d.number(0, 1)}
    return [x, d.floats([batch, steps, half]), d.floats([batch, steps, half])], {"rotary_embedding_dim": turned, "interleaved": d.number(0, 1)}


def deformed(d):
    kernel, strides, pads = d.shape(2, 1, 3), d.shape(2, 1, 2), d.shape(2, 0, 1) * 2
    group, offsets = d.among(1, 1, 2), d.among(1, 2)
    channels, side = 2 * d.number(1, 2), d.shape(2, 4, 7)
    out = [(side[i] + 2 * pads[i] - kernel[i]) // strides[i] + 1 for i in range(2)]
    taps = kernel[0] * kernel[1]
    return [d.floats([2, channels, *side]), d.floats([group * d.number(1, 3), channels // group, *kernel]),
            d.floats([2, offsets * 2 * taps, *out]), None, *([d.rng.random((2, offsets * taps, *out)).astype(np.float32)] if d.number(0, 1) else [])], {
                "group": group, "offset_group": offsets, "strides": strides, "pads": pads, "kernel_shape": kernel}


def sampled_in_space(d):
    x = d.floats([2, d.number(1, 3), *d.shape(3, 2, 5)])
    return [x, d.floats([2, *d.shape(3, 1, 4), 3]) / 2], {"mode": d.among("linear", "nearest"), "align_corners": d.number(0, 1),
                                                          "padding_mode": d.among("zeros", "border", "reflection")}


def losses(d, op):
    classes, rest = d.number(2, 5), d.shape(d.number(0, 2), 1, 4)
    target = d.integers([3, *rest], 0, classes)
    attributes = {"reduction": d.among("none", "mean", "sum"), **({"ignore_index": 1} if d.number(0, 1) else {})}
    return [d.floats([3, classes, *rest]), target, *([np.abs(d.floats([classes]))] if d.number(0, 1) else [])], attributes


def compressed(d):
    x = d.floats(d.shape(d.number(1, 3), 1, 7))
    axis = {"axis": d.axis(x.ndim)} if d.number(0, 1) else {}
    length = x.shape[axis["axis"]] if axis else x.size
    return [x, d.rng.random(d.number(1, length)) > 0.4], axis


def resized_by_scales(d):
    x = d.floats([1, d.number(1, 3), *d.shape(2, 4, 9)])  # onnxruntime leaves as it is what 1.3 makes no larger
    # onnxruntime takes whole sizes for scaled ones to align corners by, and smooths asymmetric places at their middles.
    attributes = {"mode": d.among("nearest", "linear", "cubic"), "antialias": 0,
                  "coordinate_transformation_mode": d.among("half_pixel", "asymmetric", "half_pixel", "half_pixel_symmetric")}
    if attributes["mode"] == "nearest" and attributes["coordinate_transformation_mode"] == "half_pixel_symmetric":
        attributes["coordinate_transformation_mode"] = "half_pixel"  # of places between two, onnx's choice is another than onnxruntime's
    if attributes["mode"] == "cubic":
        attributes |= {"cubic_coeff_a": -0.5, "exclude_outside": d.number(0, 1)}
    if attributes["mode"] != "nearest" and attributes["coordinate_transformation_mode"] == "half_pixel" and d.number(0, 1):
        attributes["antialias"] = 1
    return [x, None, np.float32([1, 1, d.among(0.5, 0.7, 1.5, 2, 3), d.among(0.5, 0.6, 1.3, 2)])], attributes


def heads_of(d):
    batch, heads, width, steps, keys = d.number(1, 2), d.number(1, 3), d.among(4, 8), d.number(1, 5), d.number(1, 6)
    size = heads * width
    bias = d.floats([3 * size]) if d.number(0, 1) else None
    mask = d.integers([batch, keys], 0, 2, np.int32) if d.number(0, 1) else None
    if mask is not None:
        mask[:, 0] = 1
    more = d.floats([1, heads, steps, keys]) if d.number(0, 1) else None
    return [d.floats([batch, steps, size]), d.floats([batch, keys, size]), d.floats([batch, keys, size]), bias, mask, more], {"num_heads": heads}


def grouped_heads(d):
    batch, heads, repeats, width, past = d.number(1, 2), d.number(1, 2), d.among(1, 2, 3), d.among(16, 32), d.among(0, 0, 1, 4)
    steps = 1 if past else d.number(1, 5)
    total = past + steps
    attributes = {"num_heads": heads * repeats, "kv_num_heads": heads, "do_rotary": d.number(0, 1), "rotary_interleaved": d.number(0, 1)}
    if d.number(0, 1):
        attributes["local_window_size"] = d.number(1, 6)
    attributes |= d.among({}, {"softcap": 2.0}, {"scale": 0.4}, {"smooth_softmax": 1})
    table = [d.floats([16, width // 2]) for _ in range(2)] if attributes["do_rotary"] else []
    q, k, v = (d.floats([batch, steps, n * width]) for n in (heads * repeats, heads, heads))
    if d.coin():
        q, k, v = np.concatenate([q, k, v], -1), None, None
    return [q, k, v, d.floats([batch, heads, past, width]), d.floats([batch, heads, past, width]), np.full([batch], total - 1, np.int32), np.int32(total),
            *table], attributes


def few_bits(d):
    rows, columns, block, bits = d.number(1, 6), d.number(1, 20), d.among(16, 32, 64), d.among(4, 8)
    depth = d.number(1, 4) * block - d.among(0, 0, 1) * 8
    blocks = -(-depth // block)
    packed = d.integers([columns, blocks, block * bits // 8], 0, 256, np.uint8)
    zeros = d.integers([columns * -(-blocks * bits // 8)], 0, 256, np.uint8) if d.number(0, 1) else None
    return [d.floats([rows, depth]), packed, np.abs(d.floats([columns * blocks])) / 16, zeros], {"K": depth, "N": columns, "bits": bits, "block_size": block}


CASES = {
    "LSTM": (lambda d: recurrent(d, "LSTM"), 14, 3), "GRU": (lambda d: recurrent(d, "GRU"), 14, 2), "RNN": (lambda d: recurrent(d, "RNN"), 14, 2),
    "Unique": (unique, 11, 4), "NonMaxSuppression": (suppressed, 11), "RoiAlign": (regions, 16), "DFT": (transformed, 20, 1, 1e-4), "Col2Im": (columns, 18),
    "LpPool": (norm_pool, 18), "ReverseSequence": (reversed_sequences, 10), "ScatterND": (scattered_in_many, 18), "OneHot": (encoded, 11),
    "ArgMax": (extreme_place, 13), "ArgMin": (extreme_place, 13), "Mod": (remainder, 13), "QuantizeLinear": (lambda d: quantised(d, "QuantizeLinear"), 21),
    "DequantizeLinear": (lambda d: quantised(d, "DequantizeLinear"), 21), "QLinearMatMul": (quantised_product, 21), "Softmax": (lambda d: axis_of(d, ""), 11),
    "LogSoftmax": (lambda d: axis_of(d, ""), 13), "Hardmax": (lambda d: axis_of(d, ""), 11), "LpNormalization": (p_norm, 1), "GroupNormalization": (grouped, 21),
    "LRN": (local, 13), "Trilu": (triangle, 14), "CenterCropPad": (centred, 18), "Attention": (attended, 23, 1, 1e-4), "RotaryEmbedding": (rotated, 23),
    "DeformConv": (deformed, 19, 1, 1e-4), "GridSample": (sampled_in_space, 20, 1, 1e-4),
    "SoftmaxCrossEntropyLoss": (lambda d: losses(d, ""), 13), "NegativeLogLikelihoodLoss": (lambda d: losses(d, ""), 13), "Compress": (compressed, 11),
    "Resize": (resized_by_scales, 19, 1, 1e-4), "com.microsoft.MultiHeadAttention": (heads_of, 17, 1, 1e-4),
    "com.microsoft.GroupQueryAttention": (grouped_heads, 17, 3, 1e-4), "com.microsoft.MatMulNBits": (few_bits, 17, 1, 1e-3),
}  # fmt: skip


if __name__ == "__main__":
    sys.exit(drawn_cases.main(drawn_cases.compared(CASES), *sys.argv[1:4]))
