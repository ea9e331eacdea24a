"""Layouts, regions, spectra and matrices of com.microsoft, for contributed_test.py."""

import math

import numpy as np
from contributed_case import Case, floats, random


def moved(x, source, target):
    return np.ascontiguousarray(np.moveaxis(x, source, target))


def pictures():
    x, w, b = floats(1, 2, 4, 7, 6), floats(2, 5, 4, 3, 3), floats(3, 5)
    last = moved(x, 1, -1)
    yield Case("NhwcFusedConv", "NhwcFusedConv", {"x": last, "w": w, "b": b, "z": floats(4, 2, 7, 6, 5)},
               pads=[1, 1, 1, 1], activation="Relu", wanted={"y0": nhwc_conv(x, w, b, floats(4, 2, 7, 6, 5))})  # fmt: skip
    yield Case("NhwcConv", "NhwcConv", {"x": last, "w": w, "b": b}, pads=[1, 1, 1, 1],
               wanted={"y0": nhwc_conv(x, w, b)})  # fmt: skip
    yield Case("GridSample", "GridSample", {"x": x, "grid": floats(4, 2, 3, 5, 2) * np.float32(0.7)},
               align_corners=1, mode="bilinear")  # fmt: skip
    regions = np.array([[0.1, 0.2, 0.9, 0.8], [0, 0, 1, 1], [0.8, 0.7, 0.2, 0.1], [-0.3, 0.4, 1.2, 0.6]], np.float32)
    for mode in ("bilinear", "nearest"):
        for size in ((4, 5), (1, 3)):
            yield Case(f"CropAndResize_{mode}_{size[0]}", "CropAndResize",
                       {"x": x, "regions": regions, "batch": np.array([0, 1, 1, 0], np.int32),
                        "size": np.array(size, np.int32)}, weights=["size"], mode=mode,
                       extrapolation_value=0.5)  # fmt: skip


def nhwc_conv(x, w, b, z=None):
    """With a padding of 1 around; with z its sum is cut at 0."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    y = np.einsum("nchwij,ocij->nhwo", seen.astype(np.float64), w) + b
    return (y if z is None else np.maximum(y + z, 0)).astype(np.float32)


def grouped(x, gamma, beta, groups, silu):
    """Of x with the channels last."""
    shape = x.shape
    parts = moved(x.astype(np.float64), -1, 1).reshape(shape[0], groups, -1)
    y = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + 1e-5)
    y = np.moveaxis(y.reshape(shape[0], shape[-1], *shape[1:-1]), 1, -1) * gamma + beta
    return (y / (1 + np.exp(-y)) if silu else y).astype(np.float32)


def normalizations():
    x, gamma, beta = floats(1, 2, 4, 3, 8), floats(2, 8), floats(3, 8)
    for silu in (0, 1):
        wanted = grouped(x, gamma, beta, 2, silu)
        yield Case(f"GroupNorm_{silu}", "GroupNorm", {"x": x, "gamma": gamma, "beta": beta}, groups=2,
                   activation=silu, wanted={"y0": wanted})  # fmt: skip
        yield Case(f"GroupNorm_first_{silu}", "GroupNorm", {"x": moved(x, -1, 1), "gamma": gamma, "beta": beta},
                   groups=2, activation=silu, channels_last=0, wanted={"y0": moved(wanted, -1, 1)})  # fmt: skip
    for name, skip in (("whole", floats(4, 2, 4, 3, 8)), ("rows", floats(4, 2, 8))):
        total = x + (skip if skip.ndim == 4 else skip[:, None, None]) + floats(5, 8)
        yield Case(f"SkipGroupNorm_{name}", "SkipGroupNorm",
                   {"x": x, "gamma": gamma, "beta": beta, "skip": skip, "bias": floats(5, 8)}, 2, groups=4,
                   activation=1, wanted={"y0": grouped(total, gamma, beta, 4, 1), "y1": total})  # fmt: skip
    for op, count, names in (("LayerNormalization", 1, ("gamma", "beta")),
                             ("SimplifiedLayerNormalization", 1, ("gamma",))):  # fmt: skip
        yield Case(op, op, {"x": x} | {n: {"gamma": gamma, "beta": beta}[n] for n in names}, count, domain="",
                   standard=11 if len(names) == 2 else 17, axis=-1, epsilon=1e-6)  # fmt: skip


def erf_gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def sums():
    x, b, skip = floats(1, 2, 5, 8), floats(2, 8), floats(3, 2, 5, 8)
    yield Case("BiasAdd", "BiasAdd", {"x": x, "b": b, "skip": skip}, wanted={"y0": x + b + skip})
    left, right = np.split((x + b).astype(np.float64), 2, -1)
    yield Case("BiasSplitGelu", "BiasSplitGelu", {"x": x, "b": b},
               wanted={"y0": (left * erf_gelu(right)).astype(np.float32)})  # fmt: skip
    total = (x + floats(4, 1, 1, 8)).astype(np.float64)
    e = np.exp(total - total.max(-1, keepdims=True))
    yield Case("BiasSoftmax", "BiasSoftmax", {"x": x, "b": floats(4, 1, 1, 8)}, axis=2, is_inner_broadcast=0,
               wanted={"y0": (e / e.sum(-1, keepdims=True)).astype(np.float32)})  # fmt: skip
    yield Case("BiasDropout", "BiasDropout", {"x": x, "b": b, "skip": skip}, 2,
               wanted={"y0": x + b + skip, "y1": np.ones(x.shape, bool)})  # fmt: skip
    w = floats(5, 8, 6)
    y = x.astype(np.float64) @ w + floats(6, 6)
    yield Case("GemmFastGelu", "GemmFastGelu", {"x": x, "w": w, "b": floats(6, 6)},
               wanted={"y0": (0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y**3)))).astype(np.float32)})  # fmt: skip
    yield Case("TransposeMatMul", "TransposeMatMul", {"x": x, "w": w.T.copy()}, transB=1, alpha=0.5)
    yield Case("FusedMatMulActivation", "FusedMatMulActivation", {"x": x, "w": w}, activation="Relu",
               wanted={"y0": np.maximum(x @ w, 0)})  # fmt: skip
    for name, values in (("yes", [1, 2]), ("inf", [1, np.inf]), ("nan", [np.nan, 2])):
        for flags in ({}, {"isinf_only": 1}, {"isnan_only": 1}):
            bad = (name == "inf" and "isnan_only" not in flags) or (name == "nan" and "isinf_only" not in flags)
            yield Case(f"IsAllFinite_{name}_{'_'.join(flags)}", "IsAllFinite",
                       {"x": np.array(values, np.float32), "y": np.ones((2, 2), np.float32)},
                       wanted={"y0": np.array(not bad)}, **flags)  # fmt: skip


def pairs(x):
    return np.stack([x.real, x.imag], -1).astype(np.float32)


def spectra():
    x = floats(1, 3, 4, 10)
    one, two = np.fft.rfft(x), np.fft.rfft2(x)
    yield Case("Rfft", "Rfft", {"x": x}, wanted={"y0": pairs(one)}, signal_ndim=1, onesided=1, normalized=0)
    yield Case("Rfft_2", "Rfft", {"x": x}, wanted={"y0": pairs(two)}, signal_ndim=2, onesided=1, normalized=0)
    yield Case("Irfft", "Irfft", {"x": pairs(one)}, wanted={"y0": x}, signal_ndim=1, onesided=1, normalized=0)
    yield Case("Irfft_2", "Irfft", {"x": pairs(two)}, wanted={"y0": x}, signal_ndim=2, onesided=1, normalized=0)
    a, b = one, np.fft.rfft(floats(2, 3, 4, 10))
    yield Case("ComplexMul", "ComplexMul", {"a": pairs(a), "b": pairs(b)}, wanted={"y0": pairs(a * b)})
    yield Case("ComplexMulConj", "ComplexMulConj", {"a": pairs(a), "b": pairs(b)}, wanted={"y0": pairs(a * b.conj())})


def matrices():
    for n in (1, 2, 5, 12):
        x = floats(n, 3, n, n)
        yield Case(f"Inverse_{n}", "Inverse", {"x": x}, wanted={"y0": np.linalg.inv(x.astype(np.float64)).astype(np.float32)},
                   tolerance=1e-3)  # fmt: skip
    turned = np.eye(4, dtype=np.float32)[[2, 0, 3, 1]] * 3
    yield Case("Inverse_zero_pivot", "Inverse", {"x": turned}, wanted={"y0": np.linalg.inv(turned)})
    a, b = floats(1, 7, 5), floats(2, 9, 5)
    for metric in ("sqeuclidean", "euclidean"):
        yield Case(f"CDist_{metric}", "CDist", {"a": a, "b": b}, metric=metric)
    x = floats(3, 3, 10, 4)
    seen = np.lib.stride_tricks.sliding_window_view(x, 4, 1)[:, ::3]
    yield Case("UnfoldTensor", "UnfoldTensor", {"x": x}, dim=1, size=4, step=3, wanted={"y0": np.ascontiguousarray(seen)})
    yield Case("ExpandDims", "ExpandDims", {"x": x, "axis": np.array(-1, np.int32)}, weights=["axis"])
    yield Case("Trilu", "Trilu", {"x": x, "k": np.array(1)}, weights=["k"], upper=0)
    yield Case("GatherND", "GatherND", {"x": x, "i": random(4).integers(0, 3, (5, 2))})
    yield Case("Pad", "Pad", {"x": x, "pads": np.array([0, 1, 2, 1, 0, 1]), "value": np.array([2], np.float32)},
               weights=["pads"])  # fmt: skip
    ids = random(5).integers(0, 3, (2, 9))
    yield Case("NGramRepeatBlock", "NGramRepeatBlock", {"ids": ids, "scores": floats(6, 2, 5)}, ngram_size=2)
    yield Case("NGramRepeatBlock_1", "NGramRepeatBlock", {"ids": ids, "scores": floats(6, 2, 5)}, ngram_size=1)


def bucket(d, buckets, most, both):
    """T5's, of a distance, as its first publication has them."""
    first = 0
    if both:
        buckets //= 2
        first, d = (buckets if d > 0 else 0), abs(d)
    else:
        d = max(-d, 0)
    exact = buckets // 2
    if d < exact:
        return first + d
    return first + min(exact + int(math.log(d / exact) / math.log(most / exact) * (buckets - exact)), buckets - 1)


def distances():
    table = floats(1, 32, 4)
    for both in (0, 1):
        rows = [[bucket(k - q, 32, 50, both) for k in range(40)] for q in range(40)]
        yield Case(f"RelativePositionBias_{both}", "RelativePositionBias",
                   {"table": table, "queries": np.array(40), "keys": np.array(40)}, weights=["queries", "keys"],
                   max_distance=50, is_bidirectional=both,
                   wanted={"y0": np.ascontiguousarray(table[np.array(rows)].transpose(2, 0, 1)[None])})  # fmt: skip


def sizes_of_data():
    for i, x in enumerate(([3, 1, 3, 2, 1, 1, -0.5], [7])):
        yield Case(f"Unique_{i}", "Unique", {"x": np.float32(x)}, 3)
    for kind in (np.int64, np.float32, np.int32):
        of = {name: np.array(value, kind) for name, value in (("start", 2), ("limit", 9), ("delta", 2))}
        yield Case(f"Range_{kind.__name__}", "Range", of)
        del of["delta"]
        yield Case(f"Range_by_one_{kind.__name__}", "Range", of)


def paddings():
    """Which have kernels on a GPU alone: the reference is NumPy's."""
    x, lengths = floats(1, 3, 5, 4), np.int32([2, 5, 1])
    counts = (np.arange(5) < lengths[:, None]).ravel()
    order = np.argsort(~counts, kind="stable").astype(np.int32).reshape(3, 5)
    tokens = x.reshape(15, 4)[counts]
    yield Case("RemovePadding", "RemovePadding", {"x": x, "lengths": lengths}, 4,
               wanted={"y0": tokens, "y1": order, "y2": np.int32([0, 2, 7, 8]), "y3": np.int32([5])})
    whole = np.where(counts[:, None], x.reshape(15, 4), 0).reshape(3, 5, 4)
    yield Case("RestorePadding", "RestorePadding", {"x": tokens, "offsets": order}, wanted={"y0": whole})


CASES = (pictures, normalizations, sums, spectra, matrices, distances, sizes_of_data, paddings)
