"""Draws of com.microsoft's sums, norms, products, pictures and spectra, for drawn_contributed_test.py."""

import numpy as np
from contributed_case import drawn_case, standard
from contributed_layout import bucket, erf_gelu, grouped, moved, pairs
from drawn_operators_test import convolution

ACTIVATIONS = {
    "Relu": (lambda x: np.maximum(x, 0), 0), "Tanh": (np.tanh, 0), "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 0),
    "LeakyRelu": (lambda x, slope: np.where(x < 0, slope * x, x), 1), "HardSigmoid": (lambda x, slope, base: np.clip(slope * x + base, 0, 1), 2),
}  # fmt: skip


def activation(d):
    """Its name, the numbers it takes, and itself in NumPy."""
    name = d.among(*ACTIVATIONS)
    function, count = ACTIVATIONS[name]
    numbers = [round(float(d.rng.uniform(0.1, 0.9)), 3) for _ in range(count)]
    return name, numbers, lambda x: function(x, *numbers)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gelu(d, op):
    x = d.floats([*d.shape(d.number(0, 3)), d.width()]) * 3
    has_bias = op == "BiasGelu" or (op == "FastGelu" and d.coin())
    return drawn_case(d, op, {"x": x, **({"b": d.floats(x.shape[-1:])} if has_bias else {})},
                      **({"alpha": d.among(0.7, 1.0, 1.702)} if op == "QuickGelu" else {}))  # fmt: skip


def skip_norm(d, op):
    batch, steps, width = d.number(1, 3), d.number(1, 6), d.width()
    whole = [steps, width] if d.coin() else [batch, steps, width]
    skips = [whole] if len(whole) == 2 else [whole, [1, steps, width], [steps, width]]
    given = {"x": d.floats(whole), "skip": d.floats(d.among(*skips)), "gamma": d.floats([width])}
    if op == "SkipLayerNormalization":
        given["beta"] = d.floats([width]) if d.coin() else None
    if d.coin():
        given["bias"] = d.floats([width])
    return drawn_case(d, op, given, d.among(["y"], ["y", "", "", "sum"]), epsilon=d.among(1e-12, 1e-5, 1e-3))


def group_norm(d, op):
    groups = d.number(1, 4)
    channels = groups * d.number(1, 6)
    shape = [d.number(1, 2), *d.shape(2, 1, 6), channels]
    x, gamma, beta, silu, last = d.floats(shape), d.floats([channels]), d.floats([channels]), d.number(0, 1), d.number(0, 1)
    given, total, outputs = {"x": x, "gamma": gamma, "beta": beta}, x, ["y"]
    turned = (lambda t: t) if last else (lambda t: moved(t, -1, 1))
    if op == "SkipGroupNorm":
        skip = d.floats(d.among(shape, [shape[0], 1, 1, channels], [shape[0], channels]))
        total = x + (skip if skip.ndim == 4 else skip[:, None, None])
        given["skip"] = turned(skip) if skip.ndim == 4 else skip
        if d.coin():
            given["bias"] = d.floats([channels])
            total = total + given["bias"]
        outputs = d.among(["y"], ["y", "sum"])
    wanted = {"y": turned(grouped(total, gamma, beta, groups, silu)), "sum": turned(total)}
    return drawn_case(d, op, given | {"x": turned(x)}, outputs, wanted={n: wanted[n] for n in outputs}, groups=groups, activation=silu,
                      channels_last=last, epsilon=1e-5)  # fmt: skip


def simplified(d, op):
    x = d.floats(d.shape(d.number(1, 4), 1, 9))
    axis = d.axis(x.ndim)
    return drawn_case(d, op, {"x": x, "gamma": d.floats(x.shape[axis:])}, domain="", axis=axis, epsilon=1e-5)


def biased(d, op):
    x = d.floats([d.number(1, 3), d.number(1, 6), 2 * d.width()])
    b, skip = d.floats(x.shape[-1:]), d.floats(x.shape)
    if op == "BiasAdd":
        return drawn_case(d, op, {"x": x, "b": b, "skip": skip}, wanted={"y0": x + b + skip})
    left, right = np.split((x + b).astype(np.float64), 2, -1)
    return drawn_case(d, op, {"x": x, "b": b}, wanted={"y0": (left * erf_gelu(right)).astype(np.float32)})


def biased_softmax(d, op):
    shape = d.shape(d.number(2, 4), 1, 6)
    axis, inner = d.number(1, len(shape) - 1), d.number(0, 1)
    # Broadcast along the axes before `axis` that are inner, or along the first ones.
    among = d.number(0, axis)
    bias = [n if (i < among if inner else i >= among) or i >= axis else 1 for i, n in enumerate(shape)]
    x, b = d.floats(shape), d.floats(bias)
    y = softmax((x + b).astype(np.float64).reshape(*shape[:axis], -1)).reshape(shape)
    return drawn_case(d, op, {"x": x, "b": b}, wanted={"y0": y.astype(np.float32)}, axis=axis, is_inner_broadcast=inner)


def biased_dropout(d, op):
    x = d.floats(d.shape(d.number(1, 4)))
    given, total = {"x": x, "b": d.floats(d.among(x.shape, x.shape[-1:]))}, x
    total = x + given["b"]
    if d.coin():
        given["skip"] = d.floats(x.shape)
        total = total + given["skip"]
    return drawn_case(d, op, given, ["y", "mask"], wanted={"y": total, "mask": np.ones(x.shape, bool)})


def product(d, op):
    batch, (m, k, n) = d.shape(d.number(0, 2), 1, 3), d.shape(3, 1, 20)
    attributes = {"transA": d.number(0, 1), "transB": d.number(0, 1), "alpha": d.among(0.125, 1.0, 2.5)}
    other = d.among(batch, [], [1] * len(batch))
    if op == "FusedMatMul" and batch:
        attributes |= {"transBatchA": d.number(0, 1), "transBatchB": d.number(0, 1)}
        other = batch if attributes["transBatchA"] or attributes["transBatchB"] else other
    a, b = d.floats([*batch, m, k]), d.floats([*other, k, n])
    y = attributes["alpha"] * (a.astype(np.float64) @ b)
    more = {}
    if op == "FusedMatMulActivation":
        name, numbers, function = activation(d)
        attributes |= {"activation": name} | dict(zip(("activation_alpha", "activation_beta"), numbers))
        more["wanted"] = {"y0": function(y).astype(np.float32)}

    def laid(x, side):
        if attributes[f"trans{side}"]:
            x = np.swapaxes(x, -1, -2)
        return np.ascontiguousarray(np.moveaxis(x, -2, 0) if attributes.get(f"transBatch{side}") else x)

    return drawn_case(d, op, {"a": laid(a, "A"), "b": laid(b, "B")}, **more, **attributes)


def fused_gemm(d, op):
    m, k, n = d.shape(3, 1, 24)
    name, numbers, _ = activation(d)
    attributes = {"transA": d.number(0, 1), "transB": d.number(0, 1), "alpha": d.among(0.5, 1.0), "beta": d.among(2.0, 1.0), "activation": name}
    given = {"a": d.floats([k, m] if attributes["transA"] else [m, k]), "b": d.floats([n, k] if attributes["transB"] else [k, n])}
    if d.coin():
        given["c"] = d.floats(d.among([n], [m, n], [1, n], [m, 1], [1]))
    return drawn_case(d, op, given, **attributes, **dict(zip(("activation_alpha", "activation_beta"), numbers)))


def fast_gelu_product(d, op):
    k, n = d.shape(2, 1, 20)
    x, w = d.floats([*d.shape(d.number(1, 2)), k]), d.floats([k, n])
    given, y = {"x": x, "w": w}, x.astype(np.float64) @ w
    if d.coin():
        given["b"] = d.floats([n])
        y = y + given["b"]
    wanted = (0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y**3)))).astype(np.float32)
    return drawn_case(d, op, given, wanted={"y0": wanted})


def fused_convolution(d, op):
    (x, w, *bias), attributes = convolution(d)
    name, numbers, _ = activation(d)
    given = {"x": x, "w": w, "b": bias[0] if bias else None}
    if d.coin():
        given["z"] = d.floats(standard("Conv", [x, w], **attributes).shape)
    return drawn_case(d, op, given, activation=name, **attributes, **({"activation_params": numbers} if numbers else {}))


def last_convolution(d, op):
    (x, w, *bias), attributes = convolution(d)
    bias = bias[0] if bias else np.zeros(w.shape[0], np.float32)
    y = moved(standard("Conv", [x, w, bias], **attributes), 1, -1)
    given = {"x": moved(x, 1, -1), "w": w, "b": bias}
    if op == "NhwcFusedConv":
        if d.coin():
            given["z"] = d.floats(y.shape)
            y = y + given["z"]
        name, numbers, function = activation(d)
        attributes |= {"activation": name, **({"activation_params": numbers} if numbers else {})}
        y = function(y).astype(np.float32)
    return drawn_case(d, op, given, wanted={"y0": y}, **attributes)


def cropped(d, op):
    x, count = d.floats([d.number(1, 3), d.number(1, 4), *d.shape(2, 2, 9)]), d.number(1, 5)
    given = {"x": x, "regions": d.rng.uniform(-0.2, 1.2, (count, 4)).astype(np.float32), "batch": d.integers([count], 0, len(x), np.int32),
             "size": np.int32(d.shape(2, 1, 6))}  # fmt: skip
    return drawn_case(d, op, given, constant=["size"], mode=d.among("bilinear", "nearest"), extrapolation_value=d.among(0.0, 0.5))


def sampled(d, op):
    given = {"x": d.floats([2, d.number(1, 4), *d.shape(2, 2, 8)]), "grid": d.floats([2, *d.shape(2, 1, 6), 2])}
    return drawn_case(d, op, given, mode=d.among("bilinear", "nearest", "bicubic"), align_corners=d.number(0, 1),
                      padding_mode=d.among("zeros", "border", "reflection"))  # fmt: skip


def finite(d, op):
    given = {f"x{i}": d.floats(d.shape(d.number(0, 3))) for i in range(d.number(1, 4))}
    for x in given.values():
        if d.number(0, 3) == 0:
            x.reshape(-1)[d.number(0, x.size - 1)] = d.among(np.inf, -np.inf, np.nan)
    flags = d.among({}, {"isinf_only": 1}, {"isnan_only": 1})
    bad = lambda x: (np.isinf(x).any() and "isnan_only" not in flags) or (np.isnan(x).any() and "isinf_only" not in flags)
    return drawn_case(d, op, given, wanted={"y0": np.array(not any(bad(x) for x in given.values()))}, **flags)


def spectrum(d, op):
    axes = d.number(1, 3)
    x = d.floats([*d.shape(d.number(0, 1)), *d.shape(axes - 1, 1, 5), 2 * d.number(1, 8)])
    of = tuple(range(-axes, 0))
    y = pairs(np.fft.rfftn(x, axes=of))
    given, wanted = (x, y) if op == "Rfft" else (y, x)
    return drawn_case(d, op, {"x": given}, wanted={"y0": wanted}, signal_ndim=axes, onesided=1, normalized=0)


def complex_product(d, op):
    shape = d.shape(d.number(1, 3), 1, 6)
    a, b = (d.floats([*one, 2]) for one in (shape, d.among(shape, shape[d.number(0, len(shape) - 1) :], [1] * len(shape))))
    left, right = (x[..., 0] + 1j * x[..., 1] for x in (a, b))
    return drawn_case(d, op, {"a": a, "b": b}, wanted={"y0": pairs(left * (right.conj() if op == "ComplexMulConj" else right))})


def inverse(d, op):
    n = d.number(1, 16)
    x = (d.floats([*d.shape(d.number(0, 2), 1, 3), n, n]) / n + np.eye(n, dtype=np.float32))[..., d.permutation(n), :]
    return drawn_case(d, op, {"x": np.ascontiguousarray(x)}, wanted={"y0": np.linalg.inv(x.astype(np.float64)).astype(np.float32)})


def distances(d, op):
    k = d.number(1, 40)
    return drawn_case(d, op, {"a": d.floats([d.number(1, 9), k]), "b": d.floats([d.number(1, 20), k])}, metric=d.among("sqeuclidean", "euclidean"))


def unfolded(d, op):
    x = d.floats(d.shape(d.number(1, 4), 1, 9))
    dim = d.axis(x.ndim)
    size, step = d.number(1, x.shape[dim]), d.number(1, 4)
    seen = np.lib.stride_tricks.sliding_window_view(x, size, dim)
    seen = seen[(slice(None),) * (dim % x.ndim) + (slice(None, None, step),)]
    return drawn_case(d, op, {"x": x}, wanted={"y0": np.ascontiguousarray(seen)}, dim=dim, size=size, step=step)


def expanded(d, op):
    x = d.floats(d.shape(d.number(0, 3)))
    return drawn_case(d, op, {"x": x, "axis": np.array(d.number(-x.ndim - 1, x.ndim), np.int32)}, constant=["axis"])


def triangle(d, op):
    x = d.floats(d.shape(d.number(2, 4), 1, 7))
    return drawn_case(d, op, {"x": x} | ({"k": np.array(d.number(-8, 8))} if d.coin() else {}), constant=["k"], upper=d.number(0, 1))


def gathered(d, op):
    x = d.floats(d.shape(d.number(1, 4), 1, 6))
    places = [*d.shape(d.number(0, 2), 1, 5), d.number(1, x.ndim)]
    most = np.int64(x.shape[: places[-1]])
    kind = d.among(np.int32, np.int64)
    return drawn_case(d, op, {"x": x, "i": (d.rng.random(places) * most).astype(kind)})


def padded(d, op):
    mode = d.among("constant", "reflect", "edge")
    x = d.floats(d.shape(d.number(1, 4), 3, 7))
    pads = np.int64(d.shape(2 * x.ndim, -1 if mode == "constant" else 0, 2))
    given = {"x": x, "pads": d.among(pads, pads[None])}
    if mode == "constant" and d.coin():
        given["value"] = np.float32([2])
    return drawn_case(d, op, given, constant=["pads"], mode=mode)


def repeated(d, op):
    given = {"ids": d.integers([d.number(1, 3), d.number(1, 12)], 0, 4), "scores": None}
    given["scores"] = d.floats([len(given["ids"]), d.number(4, 9)])
    return drawn_case(d, op, given, ngram_size=d.number(1, 4))


def positions(d, op):
    buckets, heads, keys, both = d.among(8, 16, 32), d.number(1, 4), d.number(1, 40), d.number(0, 1)
    # Whose logarithms are not near whole ones.
    most, table = d.among(37, 50, 77), d.floats([buckets, heads])
    rows = [[bucket(k - q, buckets, most, both) for k in range(keys)] for q in range(keys)]
    return drawn_case(d, op, {"table": table, "queries": np.array(keys), "keys": np.array(keys)}, constant=["queries", "keys"],
                      max_distance=most, is_bidirectional=both, wanted={"y0": np.ascontiguousarray(table[np.array(rows)].transpose(2, 0, 1)[None])})  # fmt: skip


def unique(d, op):
    return drawn_case(d, op, {"x": d.integers([d.number(1, 30)], 0, 9).astype(np.float32)}, 3)


def counted(d, op):
    kind, delta = d.among(np.int32, np.int64, np.float32, np.float64, np.int16), d.among(-3, -1, 1, 2)
    start = d.number(-9, 9)
    limit = start + delta * d.number(0, 9) + d.among(0, 1 if delta > 0 else -1)
    given = {"start": start, "limit": limit} | ({} if delta == 1 else {"delta": delta})
    return drawn_case(d, op, {n: np.array(v, kind) for n, v in given.items()})


def padding(d, op):
    batch, steps, width = d.number(1, 4), d.number(1, 7), d.width()
    x, lengths = d.floats([batch, steps, width]), d.integers([batch], 0, steps + 1, np.int32)
    lengths[0] = max(lengths[0], 1)
    filled = (np.arange(steps) < lengths[:, None]).ravel()
    order = np.argsort(~filled, kind="stable").astype(np.int32).reshape(batch, steps)
    tokens = x.reshape(-1, width)[filled]
    if op == "RestorePadding":
        whole = np.where(filled[:, None], x.reshape(-1, width), 0).reshape(x.shape)
        return drawn_case(d, op, {"x": tokens, "offsets": order}, wanted={"y0": whole})
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return drawn_case(d, op, {"x": x, "lengths": lengths}, 4, wanted={"y0": tokens, "y1": order, "y2": bounds, "y3": np.int32([lengths.max()])})


DRAWS = {
    "Gelu": gelu, "BiasGelu": gelu, "FastGelu": gelu, "QuickGelu": gelu, "SkipLayerNormalization": skip_norm,
    "SkipSimplifiedLayerNormalization": skip_norm, "GroupNorm": group_norm, "SkipGroupNorm": group_norm, "SimplifiedLayerNormalization": simplified,
    "BiasAdd": biased, "BiasSplitGelu": biased, "BiasSoftmax": biased_softmax, "BiasDropout": biased_dropout, "FusedMatMul": product,
    "TransposeMatMul": product, "FusedMatMulActivation": product, "FusedGemm": fused_gemm, "GemmFastGelu": fast_gelu_product,
    "FusedConv": fused_convolution, "NhwcConv": last_convolution, "NhwcFusedConv": last_convolution, "CropAndResize": cropped, "GridSample": sampled,
    "IsAllFinite": finite, "Rfft": spectrum, "Irfft": spectrum, "ComplexMul": complex_product, "ComplexMulConj": complex_product, "Inverse": inverse,
    "CDist": distances, "UnfoldTensor": unfolded, "ExpandDims": expanded, "Trilu": triangle, "GatherND": gathered, "Pad": padded,
    "NGramRepeatBlock": repeated, "RelativePositionBias": positions, "Unique": unique, "Range": counted, "RemovePadding": padding,
    "RestorePadding": padding,
}  # fmt: skip
