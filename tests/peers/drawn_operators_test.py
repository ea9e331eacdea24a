"""Operators with drawn attributes and shapes, against onnxruntime; the same draws every time.

    PYTHONPATH=build/release/bindings/python drawn_operators_test.py [PATTERN [SEED [COUNT]]]
"""

import sys

import drawn_cases

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)


def convolution(d, op="Conv"):
    rank, group = d.number(1, 2), d.among(1, 1, 2, 3)
    kernel, channels, many = d.shape(rank, 1, 3), group * d.number(1, 4), group * d.number(1, 5)
    shape = (channels, many // group) if op == "ConvTranspose" else (many, channels // group)
    x = d.floats([d.number(1, 2), channels, *d.shape(rank, 7, 15)])
    attributes = {"group": group, "strides": d.shape(rank, 1, 3), "dilations": d.shape(rank, 1, 2), "pads": d.shape(2 * rank, 0, 2)}
    if op == "ConvTranspose":
        attributes["output_padding"] = [min(d.number(0, 2), max(s, r) - 1) for s, r in zip(attributes["strides"], attributes["dilations"])]
    return [x, d.floats([*shape, *kernel]) / 2, *([d.floats([many])] if d.number(0, 1) else [])], attributes


def pool(d, op):
    rank = d.number(1, 3)
    kernel = d.shape(rank, 1, 4)
    attributes = {"kernel_shape": kernel, "strides": d.shape(rank, 1, 3), "ceil_mode": d.number(0, 1)}
    attributes["pads"] = [d.number(0, (k - 1) // 2) for k in kernel] * 2
    attributes |= {"count_include_pad": d.number(0, 1)} if op == "AveragePool" else {}
    return [d.floats([d.number(1, 2), d.number(1, 5), *d.shape(rank, 5, 12)])], attributes


def padded(d):
    rank, mode = d.number(1, 4), d.among("constant", "reflect", "edge", "wrap")
    x = d.floats(d.shape(rank, 4, 8))
    amounts = d.shape(2 * rank, -1 if mode == "constant" else 0, 3)
    return [x, np.int64(amounts), *([np.float32(1.5)] if mode == "constant" else [])], {"mode": mode}


def sliced(d):
    rank = d.number(1, 4)
    x, axes = d.floats(d.shape(rank, 2, 9)), d.permutation(rank)[: d.number(1, rank)]
    steps = [d.among(1, 1, 2, 3, -1, -2) for _ in axes]
    bounds = [[d.number(-10, 10) for _ in axes] for _ in range(2)]
    return [x, *map(np.int64, bounds), np.int64(axes), np.int64(steps)], {}


def resized(d):
    rank = d.number(1, 2)
    mode = d.among("nearest", "linear", "cubic") if rank == 2 else d.among("nearest", "linear")
    attributes = {"mode": mode, "coordinate_transformation_mode": d.among("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")}
    if mode == "nearest":
        attributes["nearest_mode"] = d.among("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    sizes = d.shape(rank, 2, 16)
    x = d.floats([1, d.number(1, 3), *d.shape(rank, 3, 9)])
    return [x, None, None, np.int64([*x.shape[:2], *sizes])], attributes


def gathered(d, op="Gather"):
    x = d.floats(d.shape(d.number(1, 4), 2, 7))
    axis = d.axis(x.ndim)
    places = d.shape(d.number(0, 3)) if op == "Gather" else [d.number(1, n) for n in x.shape]
    return [x, d.integers(places, -x.shape[axis], x.shape[axis])], {"axis": axis}


def scattered(d):
    x = d.floats(d.shape(d.number(1, 3), 2, 7))
    axis, shape = d.axis(x.ndim), [d.number(1, n) for n in x.shape]
    reduction = d.among("none", "add", "mul", "max", "min")
    # Without a reduction equal places have no order.
    places = d.integers(shape, -x.shape[axis], x.shape[axis]) if reduction != "none" else np.argsort(d.floats(x.shape), axis)[tuple(map(slice, shape))]
    return [x, places, d.floats(shape)], {"axis": axis, "reduction": reduction}


def gathered_in_many(d):
    x = d.floats(d.shape(d.number(2, 4), 2, 5))
    batch = d.number(0, x.ndim - 2)
    depth = d.number(1, x.ndim - batch)
    places = np.stack([d.integers([*x.shape[:batch], 3], 0, x.shape[batch + k]) for k in range(depth)], -1)
    return [x, places], {"batch_dims": batch}


def best(d):
    x = d.floats(d.shape(d.number(1, 3), 2, 9))
    axis = d.axis(x.ndim)
    return [x, np.int64([d.number(1, x.shape[axis])])], {"axis": axis, "largest": d.number(0, 1)}


def reduced(d):
    x = d.floats(d.shape(d.number(1, 4)))
    axes = d.permutation(x.ndim)[: d.number(1, x.ndim)]
    return [x, np.int64(axes)], {"keepdims": d.number(0, 1)}


def normalized(d):
    x = d.floats(d.shape(d.number(2, 4), 2, 8))
    axis = d.axis(x.ndim)
    shape = x.shape[axis:]
    return [x, d.floats(shape), *([d.floats(shape)] if d.number(0, 1) else [])], {"axis": axis, "epsilon": 1e-3}


def multiplied(d):
    batch, m, k, n = d.shape(d.number(0, 2), 1, 4), *d.shape(3, 1, 40)
    other = [size if d.number(0, 1) else 1 for size in batch][d.number(0, len(batch)):]
    return [d.floats([*batch, m, k]), d.floats([*other, k, n])], {}


def general_product(d):
    m, k, n = d.shape(3, 1, 30)
    turned = d.number(0, 1), d.number(0, 1)
    operands = [d.floats([m, k][:: -1 if turned[0] else 1]), d.floats([k, n][:: -1 if turned[1] else 1])]
    return [*operands, d.floats(d.among([m, n], [n], [m, 1], []))], {"transA": turned[0], "transB": turned[1], "alpha": 0.5, "beta": 1.5}


def quantised_convolution(d):
    (x, w, *_), attributes = convolution(d)
    zero = d.integers([], 0, 255, np.uint8)
    scales = np.float32(0.02), np.abs(d.floats([w.shape[0]])) / 50 + np.float32(0.004), np.float32(0.1)
    return [d.integers(x.shape, 0, 256, np.uint8), scales[0], zero, d.integers(w.shape, -127, 128, np.int8), scales[1],
            np.zeros(w.shape[0], np.int8), scales[2], d.integers([], 0, 255, np.uint8), d.integers([w.shape[0]], -300, 300, np.int32)], attributes


def integer_product(d):
    m, k, n = d.shape(3, 1, 70)
    kind = d.among(np.uint8, np.int8)
    return [d.integers([m, k], 0, 120, np.uint8), d.integers([k, n], 0, 120, kind), d.integers([], 0, 99, np.uint8), d.integers([], 0, 99, kind)], {}


def sampled(d):
    x = d.floats([2, d.number(1, 3), *d.shape(2, 3, 8)])
    return [x, d.floats([2, *d.shape(2, 2, 6), 2]) / 2], {"mode": d.among("linear", "nearest", "cubic"), "align_corners": d.number(0, 1),
                                                          "padding_mode": d.among("zeros", "border", "reflection")}


def summed(d):
    x = d.floats(d.shape(d.number(1, 4)))
    return [x, np.int64(d.axis(x.ndim))], {"exclusive": d.number(0, 1), "reverse": d.number(0, 1)}


def blocks(d, op):
    size, mode = d.number(2, 3), d.among("DCR", "CRD")
    if op == "SpaceToDepth":
        return [d.floats([2, d.number(1, 3), size * d.number(1, 3), size * d.number(1, 3)])], {"blocksize": size}
    return [d.floats([2, size * size * d.number(1, 3), *d.shape(2)])], {"blocksize": size, "mode": mode}


def equation(d):
    text = d.among("bij,bjk->bik", "ij,kj->ki", "bhid,bhjd->bhij", "ii->i", "ij->ji", "ijk,ij->k", "bi,bi->b", "...ij,...jk->...ik", "i,j->ij", "ijk->")
    sizes = {letter: d.number(2, 6) for letter in "bhijkd"}
    terms = text.split("->")[0].replace("...", "b").split(",")
    return [d.floats([sizes[letter] for letter in term]) for term in terms], {"equation": text}


def cut(d):
    x = d.floats(d.shape(d.number(1, 4), 3, 9))
    axis = d.axis(x.ndim)
    first = d.number(1, x.shape[axis] - 1)
    return [x, np.int64([first, x.shape[axis] - first])], {"axis": axis}


CASES = {
    "Conv": (convolution, 22), "ConvTranspose": (lambda d: convolution(d, "ConvTranspose"), 22), "MaxPool": (lambda d: pool(d, "MaxPool"), 22),
    "AveragePool": (lambda d: pool(d, "AveragePool"), 22), "Pad": (padded, 21), "Slice": (sliced, 21), "Resize": (resized, 19), "Gather": (gathered, 21),
    "GatherElements": (lambda d: gathered(d, "GatherElements"), 21), "ScatterElements": (scattered, 18), "GatherND": (gathered_in_many, 21),
    "TopK": (best, 21, 2), "ReduceSum": (reduced, 18), "ReduceMax": (reduced, 18), "ReduceMean": (reduced, 18), "ReduceL2": (reduced, 18),
    "ReduceProd": (reduced, 18), "ReduceLogSumExp": (reduced, 18), "LayerNormalization": (normalized, 17), "MatMul": (multiplied, 21),
    "Gemm": (general_product, 21), "QLinearConv": (quantised_convolution, 21, 1, 1), "MatMulInteger": (integer_product, 21), "GridSample": (sampled, 20, 1, 1e-4),
    "CumSum": (summed, 21), "DepthToSpace": (lambda d: blocks(d, "DepthToSpace"), 21), "SpaceToDepth": (lambda d: blocks(d, "SpaceToDepth"), 21),
    "Einsum": (equation, 21), "Split": (cut, 21, 2),
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(drawn_cases.main(drawn_cases.compared(CASES), *sys.argv[1:4]))
