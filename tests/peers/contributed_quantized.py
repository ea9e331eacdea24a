"""Operators of integers with a scale and a zero point of com.microsoft, for contributed_test.py."""

import numpy as np
from contributed_case import Case, floats, integers, random


def number(kind, value):
    return np.array(value, kind)


def whole(x, scale, zero, kind):
    limits = np.iinfo(kind)
    return np.clip(np.round(x / scale) + zero, limits.min, limits.max).astype(kind)


def elementwise():
    for kind in (np.uint8, np.int8):
        zero = 128 if kind == np.uint8 else 0
        scale = lambda name, value: {f"{name}_scale": number(np.float32, value), f"{name}_zero": number(kind, zero + 3)}
        x, row = integers(1, kind, 3, 5, 8), integers(2, kind, 8)
        a, b, y = scale("a", 0.02), scale("b", 0.03), scale("y", 0.04)
        for op in ("QLinearAdd", "QLinearMul"):
            yield Case(f"{op}_{kind.__name__}", op, {"a": x} | a | {"b": row} | b | y, steps=1)
            left, right = x * np.float64(0.02), row * np.float64(0.03)
            yield Case(f"{op}_{kind.__name__}_no_zeros", op,
                       {"a": x} | a | {"b": row} | b | y | {"a_zero": None, "b_zero": None, "y_zero": None}, steps=1,
                       wanted={"y0": whole(left + right if op == "QLinearAdd" else left * right, 0.04, 0, kind)})  # fmt: skip
            # Halves, and a zero point that is odd.
            yield Case(f"{op}_{kind.__name__}_halves", op,
                       {"a": x} | scale("a", 0.25) | {"b": row} | scale("b", 0.5 if op == "QLinearAdd" else 0.25)
                       | scale("y", 0.5 if op == "QLinearAdd" else 2))  # fmt: skip
        yield Case(f"QLinearSigmoid_{kind.__name__}", "QLinearSigmoid", {"a": x} | a | scale("y", 0.005), steps=1,
                   weights=["a_scale", "a_zero", "y_scale", "y_zero"])  # fmt: skip
        yield Case(f"QLinearLeakyRelu_{kind.__name__}", "QLinearLeakyRelu", {"a": x} | a | y, steps=1, alpha=0.2)
        for opset, axis in ((13, -1), (13, 1), (11, 1)):
            yield Case(f"QLinearSoftmax_{kind.__name__}_{opset}_{axis}", "QLinearSoftmax",
                       {"a": x} | a | {"y_scale": number(np.float32, 1 / 256),
                                       "y_zero": number(kind, 0 if kind == np.uint8 else -128)}, steps=1, opset=opset,
                       axis=axis, weights=["a_scale", "a_zero", "y_scale", "y_zero"])  # fmt: skip
        means = ((x.astype(np.float64) - (zero + 3)) * 0.02).mean(1)
        yield Case(f"QLinearReduceMean_{kind.__name__}", "QLinearReduceMean", {"a": x} | a | y, steps=1, axes=[1],
                   keepdims=0, wanted={"y0": whole(means, 0.04, zero + 3, kind)})  # fmt: skip
        chosen = random(4).integers(0, 2, (3, 5, 8)).astype(bool)
        yield Case(f"QLinearWhere_{kind.__name__}", "QLinearWhere",
                   {"if": chosen, "a": x} | a | {"b": row} | b | y, steps=1,
                   weights=["a_scale", "a_zero", "b_scale", "b_zero", "y_scale", "y_zero"])  # fmt: skip
        yield Case(f"QLinearConcat_{kind.__name__}", "QLinearConcat",
                   y | {"a": x} | a | {"b": integers(5, kind, 3, 2, 8)} | b, steps=1, axis=1,
                   weights=["a_scale", "a_zero", "b_scale", "b_zero", "y_scale", "y_zero"])  # fmt: skip


def pictures():
    for kind in (np.uint8, np.int8):
        zero = 120 if kind == np.uint8 else 3
        x = integers(1, kind, 2, 4, 7, 6)
        last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
        a = {"a_scale": number(np.float32, 0.02), "a_zero": number(kind, zero)}
        y = {"y_scale": number(np.float32, 0.015), "y_zero": number(kind, zero - 2)}
        for name, given, attributes in (("first", x, {}), ("last", last, {"channels_last": 1})):
            yield Case(f"QLinearGlobalAveragePool_{kind.__name__}_{name}", "QLinearGlobalAveragePool",
                       {"a": given} | a | y, steps=1, **attributes)  # fmt: skip
            yield Case(f"QLinearAveragePool_{kind.__name__}_{name}", "QLinearAveragePool", {"a": given} | a | y, steps=1,
                       kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], **attributes)  # fmt: skip
            halves = {"a_scale": number(np.float32, 0.25), "y_scale": number(np.float32, 0.25),
                      "a_zero": number(kind, zero), "y_zero": number(kind, zero - zero % 2 + 1)}  # fmt: skip
            yield Case(f"QLinearAveragePool_{kind.__name__}_{name}_halves", "QLinearAveragePool",
                       {"a": given} | {key: halves[key] for key in ("a_scale", "a_zero", "y_scale", "y_zero")},
                       kernel_shape=[1, 2], strides=[1, 2], **attributes)  # fmt: skip
            w = integers(2, np.int8, 5, 4, 3, 3)
            weights = {"w": w, "w_scale": random(3).uniform(0.001, 0.002, 5).astype(np.float32),
                       "w_zero": np.zeros(5, np.int8)}  # fmt: skip
            out = {"y_scale": number(np.float32, 0.05), "y_zero": number(kind, zero)}
            yield Case(f"QLinearConv_{kind.__name__}_{name}", "QLinearConv",
                       {"a": given} | a | weights | out | {"bias": integers(4, np.int16, 5).astype(np.int32)}, steps=1,
                       weights=[*weights, *a, *out, "bias"], pads=[1, 1, 0, 1], strides=[2, 1],
                       **attributes)  # fmt: skip
        yield Case(f"NhwcMaxPool_{kind.__name__}", "NhwcMaxPool", {"a": last}, kernel_shape=[3, 2], strides=[2, 1],
                   pads=[1, 0, 1, 1])  # fmt: skip


def products():
    a = {"a": integers(1, np.uint8, 5, 32), "a_scale": number(np.float32, 0.02), "a_zero": number(np.uint8, 120)}
    y = {"y_scale": number(np.float32, 0.2), "y_zero": number(np.uint8, 128)}
    for turned in (0, 1):
        b = {"b": integers(2, np.int8, *((24, 32) if turned else (32, 24))), "b_scale": number(np.float32, 0.01),
             "b_zero": number(np.int8, 2), "bias": integers(3, np.int16, 24).astype(np.int32)}  # fmt: skip
        for name, more in (("real", {}), ("whole", y)):
            yield Case(f"QGemm_{turned}_{name}", "QGemm", a | b | more, steps=1 if more else 0, transB=turned,
                       weights=[*b, "a_scale", "a_zero", *more])  # fmt: skip
    columns = {"b": integers(2, np.int8, 32, 24), "b_scale": random(4).uniform(0.01, 0.02, 24).astype(np.float32),
               "b_zero": integers(5, np.int8, 24)}  # fmt: skip
    yield Case("QGemm_columns", "QGemm", a | columns, weights=[*columns, "a_scale", "a_zero"], alpha=0.5)
    yield Case("MatMulInteger16", "MatMulInteger16", {"a": integers(1, np.int16, 2, 3, 8) // 16,
                                                      "b": integers(2, np.int16, 8, 5) // 16})  # fmt: skip
    left, right = integers(1, np.uint8, 3, 4), integers(2, np.uint8, 4)
    whole = (left.astype(np.int32) - 7) * (right.astype(np.int32) - 250)
    yield Case("MulInteger", "MulInteger", {"a": left, "a_zero": number(np.uint8, 7), "b": right,
                                            "b_zero": number(np.uint8, 250)}, wanted={"y0": whole})  # fmt: skip
    yield Case("ReduceSumInteger", "ReduceSumInteger", {"a": left}, axes=[1], keepdims=0,
               wanted={"y0": left.astype(np.uint32).sum(1, dtype=np.uint32)})  # fmt: skip


def packed(values, bits):
    """Numbers of so many bits in bytes along the last axis, the lowest first."""
    each = 8 // bits
    missing = -values.shape[-1] % each
    values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])
    parts = values.reshape(*values.shape[:-1], -1, each).astype(np.uint8)
    return np.bitwise_or.reduce(parts << (np.arange(each, dtype=np.uint8) * bits), axis=-1)


def few_bits():
    n, k = 6, 80
    for bits in (2, 4, 8):
        for block in (16, 32):
            blocks = -(-k // block)
            values = random(bits).integers(0, 1 << bits, (n, blocks, block))
            values[:, -1, k - (blocks - 1) * block :] = 0
            scales = random(2).uniform(0.01, 0.1, (n, blocks)).astype(np.float32)
            zeros = random(3).integers(0, 1 << bits, (n, blocks))
            given = {"a": floats(4, 2, 3, k), "b": packed(values, bits), "scales": scales}
            for name, more in (("", {}), ("_zeros", {"zeros": packed(zeros, bits)})):
                point = zeros if more else np.full_like(zeros, 1 << (bits - 1))
                w = ((values - point[..., None]) * scales[..., None]).reshape(n, -1)[:, :k]
                wanted = {"y0": (given["a"].astype(np.float64) @ w.T).astype(np.float32)}
                yield Case(f"MatMulNBits_{bits}_{block}{name}", "MatMulNBits", given | more, wanted=wanted, K=k, N=n,
                           bits=bits, block_size=block, weights=["b", "scales", *more])  # fmt: skip
    yield Case("MatMulNBits_like_onnxruntime", "MatMulNBits",
               {"a": floats(4, 2, 3, k), "b": packed(random(6).integers(0, 16, (n, 5, 16)), 4),
                "scales": floats(2, n, 5), "zeros": packed(random(3).integers(0, 16, (n, 5)), 4), "g_idx": None,
                "bias": floats(7, n)}, K=k, N=n, bits=4, block_size=16,
               weights=["b", "scales", "zeros", "bias"])  # fmt: skip
    # With leave to round a to 8 bits, as onnxruntime does; its kernels want blocks of 32 or more, and whole ones of 8 bits.
    for bits, n, k in ((4, 6, 80), (4, 70, 256), (8, 40, 128)):
        blocks = -(-k // 32)
        for name, more in (("", {}), ("_zeros", {"zeros": packed(random(3).integers(0, 1 << bits, (n, blocks)), bits)})):
            yield Case(f"MatMulNBits_{bits}_{n}_in_bytes{name}", "MatMulNBits",
                       {"a": floats(4, 3, k), "b": packed(random(bits).integers(0, 1 << bits, (n, blocks, 32)), bits),
                        "scales": random(2).uniform(0.01, 0.1, (n, blocks)).astype(np.float32)} | more, K=k, N=n, bits=bits,
                       block_size=32, accuracy_level=4, weights=["b", "scales", *more])  # fmt: skip
    for kind in (0, 1):
        yield Case(f"MatMulBnb4_{kind}", "MatMulBnb4",
                   {"a": floats(1, 3, 64), "b": integers(2, np.uint8, 32 * 48), "scales": np.abs(floats(3, 96))},
                   weights=["b", "scales"], K=64, N=48, block_size=32, quant_type=kind)  # fmt: skip
    rows, size = 20, 64
    data = packed(random(1).integers(0, 16, (rows, size)), 4)
    more = {"zeros": packed(random(4).integers(0, 16, (rows, size // 16)), 4)}
    for name, zeros in (("", {}), ("_zeros", more)):
        yield Case(f"GatherBlockQuantized{name}", "GatherBlockQuantized",
                   {"data": data, "rows": random(2).integers(0, rows, (2, 3)), "scales": floats(3, rows, size // 16)}
                   | zeros, weights=["data", "scales", *zeros], block_size=16, gather_axis=0, quantize_axis=1,
                   bits=4)  # fmt: skip


def linear():
    x, scale = floats(1, 4, 6), np.array(0.02, np.float32)
    yield Case("QuantizeLinear", "QuantizeLinear", {"x": x, "scale": scale, "zero": np.array(100, np.uint8)}, steps=1)
    yield Case("DequantizeLinear", "DequantizeLinear", {"x": integers(1, np.int8, 4, 6), "scale": scale,
                                                        "zero": np.array(3, np.int8)})  # fmt: skip
    columns = random(2).uniform(0.01, 0.1, 6).astype(np.float32)
    yield Case("DequantizeLinear_axis", "DequantizeLinear",
               {"x": integers(1, np.int8, 4, 6), "scale": columns, "zero": integers(3, np.int8, 6)}, axis=1)  # fmt: skip


CASES = (elementwise, pictures, products, few_bits, linear)
