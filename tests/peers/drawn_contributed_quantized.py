"""Draws of com.microsoft's operators of integers with a scale and a zero point, for drawn_contributed_test.py."""

import numpy as np
from contributed_case import QUANTISED, drawn_case
from contributed_experts import few_bits, mixture, packed
from contributed_quantized import whole
from drawn_operators_test import convolution

BYTES = (np.uint8, np.int8)


def limits(kind):
    return np.iinfo(kind).min, np.iinfo(kind).max + 1


def steps(d, shape, kind):
    """Values of all that the kind has."""
    return d.integers(shape, *limits(kind), kind)


def scales(d, shape, middle):
    return np.asarray(d.rng.uniform(middle / 2, middle * 2, shape), np.float32)


def scale(d, name, kind, middle=0.03, may_lack=True):
    """Its number and its zero point, which may be left out."""
    zero = steps(d, [], kind) if not may_lack or d.number(0, 3) else None
    return {f"{name}_scale": scales(d, [], middle), f"{name}_zero": zero}


def real(x, of):
    """What steps mean by `of`, a scale and a zero point."""
    by, zero = of.values()
    return (x.astype(np.float64) - (0 if zero is None else zero)) * by


def rounded(values, of, kind):
    by, zero = of.values()
    return whole(values, by, 0 if zero is None else zero, kind)


def broadcast(d, shape):
    """A shape that broadcasts to this one."""
    return d.among(shape, shape[d.number(0, len(shape) - 1) :], [n if d.coin() else 1 for n in shape])


def binary(d, op):
    kind, shape = d.among(*BYTES), [*d.shape(d.number(0, 2)), d.width()]
    sides = [shape, broadcast(d, shape)]
    if d.coin():
        sides.reverse()
    a, b = (steps(d, side, kind) for side in sides)
    of = [scale(d, name, kind) for name in "aby"]
    values = real(a, of[0]) + real(b, of[1]) if op == "QLinearAdd" else real(a, of[0]) * real(b, of[1])
    # onnxruntime's kernel wants the zero points, which its schema does not.
    has_zeros = all(one[f"{n}_zero"] is not None for n, one in zip("aby", of))
    return drawn_case(d, op, {"a": a, **of[0], "b": b, **of[1], **of[2]}, steps=1,
                      **({} if has_zeros else {"wanted": {"y0": rounded(values, of[2], kind)}}))  # fmt: skip


def unary(d, op):
    kind = d.among(*BYTES)
    x = steps(d, [*d.shape(d.number(0, 3)), d.width()], kind)
    given = {"a": x, **scale(d, "a", kind), **scale(d, "y", kind, 0.02 if op == "QLinearLeakyRelu" else 0.005)}
    return drawn_case(d, op, given, steps=1, constant=[n for n in given if n != "a"] if d.coin() else (),
                      **({"alpha": d.among(0.01, 0.2, 1.5)} if op == "QLinearLeakyRelu" else {}))  # fmt: skip


def softmax(d, op):
    """Of numbers that are near: what is all of its row, onnxruntime gives as 0."""
    kind, opset = d.among(*BYTES), d.among(11, 13)
    x = steps(d, d.shape(d.number(1, 4), 2, 12), kind)
    given = {"a": x, **scale(d, "a", kind, 0.005), "y_scale": np.array(1 / 256, np.float32), "y_zero": np.array(0 if kind == np.uint8 else -128, kind)}
    return drawn_case(d, op, given, steps=1, constant=[n for n in given if n != "a"], opset=opset, axis=d.axis(x.ndim))


def mean(d, op):
    kind = d.among(*BYTES)
    x = steps(d, d.shape(d.number(1, 4)), kind)
    axes, keeps, a, y = sorted(d.permutation(x.ndim)[: d.number(1, x.ndim)]), d.number(0, 1), scale(d, "a", kind), scale(d, "y", kind, 0.02)
    wanted = rounded(real(x, a).mean(tuple(axes), keepdims=bool(keeps)), y, kind)
    return drawn_case(d, op, {"a": x, **a, **y}, steps=1, wanted={"y0": wanted}, axes=axes, keepdims=keeps)


def where(d, op):
    kind, shape = d.among(*BYTES), [*d.shape(d.number(0, 2)), d.width()]
    of = {name: scale(d, name, kind, may_lack=False) for name in "aby"}
    given = {"if": d.rng.random(broadcast(d, shape)) > 0.5, "a": steps(d, shape, kind), **of["a"], "b": steps(d, broadcast(d, shape), kind), **of["b"], **of["y"]}
    return drawn_case(d, op, given, steps=1, constant=[n for n in given if "_" in n])


def concat(d, op):
    kind, shape = d.among(*BYTES), d.shape(d.number(1, 4))
    axis = d.axis(len(shape))
    given = scale(d, "y", kind, may_lack=False)
    for i in range(d.number(1, 4)):
        shape[axis] = d.number(1, 6)
        given |= {f"x{i}": steps(d, shape, kind), **scale(d, f"x{i}", kind, may_lack=False)}
    return drawn_case(d, op, given, steps=1, constant=[n for n in given if "_" in n], axis=axis)


def global_pool(d, op):
    kind, last = d.among(*BYTES), d.number(0, 1)
    x = steps(d, [d.number(1, 3), *d.shape(d.number(2, 4), 1, 9)], kind)
    a, y = scale(d, "a", kind), scale(d, "y", kind, 0.02)
    axes = tuple(range(1, x.ndim - 1) if last else range(2, x.ndim))
    wanted = rounded(real(x, a).mean(axes, keepdims=True), y, kind)  # onnxruntime's kernel wants the zero points
    return drawn_case(d, op, {"a": x, **a, **y}, steps=1, wanted={"y0": wanted}, channels_last=last)


def window(d, rank):
    kernel = d.shape(rank, 1, 4)
    return {"kernel_shape": kernel, "strides": d.shape(rank, 1, 3), "pads": [d.number(0, (k - 1) // 2) for k in kernel] * 2}


def pool(d, op):
    kind, rank = d.among(*BYTES), d.number(1, 2)
    last = op == "NhwcMaxPool" or d.coin()
    room, channels = d.shape(rank, 8, 12), d.number(1, 9)
    x = steps(d, [d.number(1, 2), *room, channels] if last else [d.number(1, 2), channels, *room], kind)
    if op == "NhwcMaxPool":
        return drawn_case(d, op, {"a": x}, **window(d, rank), dilations=d.shape(rank, 1, 2), ceil_mode=d.number(0, 1))
    # onnxruntime counts what lies behind the padding too, which its pools of floats do not.
    counted = d.among({"ceil_mode": 1}, {"count_include_pad": 1}, {})
    return drawn_case(d, op, {"a": x, **scale(d, "a", kind, may_lack=False), **scale(d, "y", kind, 0.02, may_lack=False)}, steps=1, **window(d, rank),
                      channels_last=int(last), **counted)  # fmt: skip


def conv(d, op):
    (x, w, *bias), attributes = convolution(d)
    kind, last, many = d.among(*BYTES), d.number(0, 1), w.shape[0]
    weights = {"w": d.integers(w.shape, -60, 61, np.int8), "w_scale": scales(d, d.among([], [many]), 0.004), "w_zero": None}
    weights["w_zero"] = np.zeros(weights["w_scale"].shape, np.int8)
    given = steps(d, x.shape, kind)
    rest = {**scale(d, "y", kind, 0.1, may_lack=False), "bias": d.integers([many], -3000, 3000, np.int32) if bias else None}
    of = scale(d, "a", kind, may_lack=False)
    return drawn_case(d, op, {"a": np.ascontiguousarray(np.moveaxis(given, 1, -1)) if last else given, **of, **weights, **rest},
                      steps=1, constant=[*of, *weights, *rest], channels_last=last, **attributes)  # fmt: skip


def gemm(d, op):
    (m, k, n), turned = d.shape(3, 1, 40), [d.number(0, 1) for _ in "ab"]
    kinds = d.among(np.uint8, np.int8), np.int8
    a, b = steps(d, [k, m] if turned[0] else [m, k], kinds[0]), d.integers([n, k] if turned[1] else [k, n], -60, 61, kinds[1])
    columns = d.among([], [n])
    given = {"a": a, **scale(d, "a", kinds[0], may_lack=False), "b": b, "b_scale": scales(d, columns, 0.01), "b_zero": np.zeros(columns, kinds[1]),
             "c": d.integers([n], -3000, 3000, np.int32) if d.coin() else None}  # fmt: skip
    is_whole = d.coin()
    if is_whole:
        given |= scale(d, "y", kinds[0], 0.2, may_lack=False)
    return drawn_case(d, op, given, steps=int(is_whole), constant=[n for n in given if n != "a"], transA=turned[0], transB=turned[1],
                      alpha=d.among(1.0, 0.5))  # fmt: skip


def wide_product(d, op):
    batch, (m, k, n) = d.shape(d.number(0, 2), 1, 3), d.shape(3, 1, 20)
    a, b = d.integers([*batch, m, k], -2000, 2000, np.int16), d.integers([*d.among(batch, []), k, n], -2000, 2000, np.int16)
    return drawn_case(d, op, {"a": a, "b": b})


def integer_product(d, op):
    kind, shape = d.among(*BYTES), [*d.shape(d.number(0, 2)), d.width()]
    a, b = steps(d, shape, kind), steps(d, broadcast(d, shape), kind)
    zeros = {name: steps(d, [], kind) if d.coin() else None for name in ("a_zero", "b_zero")}
    left, right = (x.astype(np.int32) - (0 if z is None else int(z)) for x, z in zip((a, b), zeros.values()))
    return drawn_case(d, op, {"a": a, "a_zero": zeros["a_zero"], "b": b, "b_zero": zeros["b_zero"]}, wanted={"y0": left * right})


def integer_sum(d, op):
    kind, wide = d.among((np.uint8, np.uint32), (np.int8, np.int32))
    x = steps(d, d.shape(d.number(1, 4)), kind)
    axes, keeps = sorted(d.permutation(x.ndim)[: d.number(1, x.ndim)]), d.number(0, 1)
    wanted = x.astype(wide).sum(tuple(axes), dtype=wide, keepdims=bool(keeps))
    return drawn_case(d, op, {"a": x}, wanted={"y0": wanted}, axes=axes, keepdims=keeps)


def dynamic_product(d, op):
    kind, (m, k, n) = d.among(*BYTES), d.shape(3, 1, 40)
    batch = d.shape(d.number(0, 1), 1, 3)
    columns = d.among([], [n])
    weights = {"b": steps(d, [k, n], kind), "b_scale": scales(d, columns, 0.01)}
    zero, bias = steps(d, columns, kind) if d.coin() else None, d.floats([n]) if d.coin() else None
    if op == "DynamicQuantizeMatMul":
        given = {"a": d.floats([*batch, m, k]), **weights, "b_zero": zero, "bias": bias}
    else:
        given = {"a": steps(d, [*batch, m, k], np.uint8), "b": weights["b"], "a_scale": scales(d, [], 0.03), "b_scale": weights["b_scale"],
                 "a_zero": steps(d, [], np.uint8) if d.coin() else None, "b_zero": zero, "bias": bias}  # fmt: skip
    return drawn_case(d, op, given, constant=["b", "b_scale", "b_zero", "bias"], tolerance=QUANTISED if op == "DynamicQuantizeMatMul" else 1e-4)


def lstm(d, op):
    time, batch, size, hidden, kind = d.number(1, 6), d.number(1, 3), d.number(1, 20), d.number(1, 20), d.among(*BYTES)
    direction = d.among("forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    per_row = d.coin()
    shape = [ways, 4 * hidden] if per_row else [ways]
    zero = lambda: np.full(shape, 128 if kind == np.uint8 else 0, kind) if per_row else d.integers(shape, 100, 120, kind)
    optional = lambda array: array if d.coin() else None
    given = {"x": d.floats([time, batch, size]), "w": steps(d, [ways, size, 4 * hidden], kind), "r": steps(d, [ways, hidden, 4 * hidden], kind),
             "b": optional(d.floats([ways, 8 * hidden]) / 10), "lengths": optional(d.integers([batch], 1, time + 1, np.int32)),
             "h": optional(d.floats([ways, batch, hidden])), "c": optional(d.floats([ways, batch, hidden])),
             "p": optional(d.floats([ways, 3 * hidden]) / 10), "w_scale": scales(d, shape, 0.002), "w_zero": zero(), "r_scale": scales(d, shape, 0.002),
             "r_zero": zero()}  # fmt: skip
    return drawn_case(d, op, given, 3, constant=["w", "r", "b", "p", "w_scale", "w_zero", "r_scale", "r_zero"], tolerance=QUANTISED,
                      least=1, hidden_size=hidden, direction=direction, input_forget=d.number(0, 1), **({"clip": 0.7} if d.coin() else {}))  # fmt: skip


def bitsandbytes(d, op):
    k, n, block = d.number(1, 8) * 16, d.number(1, 20), d.among(16, 32, 64)
    given = {"a": d.floats([*d.shape(d.number(1, 2)), k]), "b": d.integers([(n * k + 1) // 2], 0, 256, np.uint8), "scales": np.abs(d.floats([-(-n * k // block)]))}
    return drawn_case(d, op, given, constant=["b", "scales"], K=k, N=n, block_size=block, quant_type=d.number(0, 1))


def gathered(d, op):
    rows, block, bits = d.number(1, 12), d.among(16, 32), d.among(4, 8)
    blocks = d.number(1, 3)
    size = blocks * block
    data = packed(d.integers([rows, size], 0, 1 << bits), bits)
    zeros = packed(d.integers([rows, blocks], 0, 1 << bits), bits) if d.coin() else None
    given = {"data": data, "rows": d.integers(d.shape(d.number(0, 2)), -rows, rows, d.among(np.int32, np.int64)), "scales": d.floats([rows, blocks]), "zeros": zeros}
    return drawn_case(d, op, given, constant=["data", "scales", "zeros"], block_size=block, gather_axis=0, quantize_axis=1, bits=bits)


def linear(d, op):
    kind = d.among(np.uint8, np.int8, np.uint16, np.int16)
    shape = d.shape(d.number(1, 3))
    axis = d.axis(len(shape))
    by = d.among([], [shape[axis]])
    given = {"x": d.floats(shape) if op == "QuantizeLinear" else steps(d, shape, kind), "scale": scales(d, by, 0.03), "zero": steps(d, by, kind)}
    return drawn_case(d, op, given, steps=int(op == "QuantizeLinear"), axis=axis)


def experts(d, op):
    tokens, hidden, inner, count = d.among(1, 2, 9, 19), d.number(1, 24), d.number(1, 20), d.number(1, 6)
    kind, k, normalized = d.among("relu", "silu", "identity", "swiglu"), d.number(1, count), d.number(0, 1)
    fusion = d.number(1, 2) if kind == "swiglu" else 0
    x, router = d.floats([tokens, hidden]), d.floats([tokens, count]) * 2
    biases = d.coin()
    wide = 2 * inner if fusion else inner
    first, second = (d.floats([count, n, m]) / 5 for n, m in ((wide, hidden), (hidden, inner)))
    b1, b2 = (d.floats([count, n]) if biases else None for n in (wide, hidden))
    more = {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 2.0} if fusion and d.coin() else {}
    named = {"alpha": more.get("activation_alpha", 1.0), "beta": more.get("activation_beta", 0.0), "limit": more.get("swiglu_limit", np.inf)}
    wanted = mixture(x, router, [(first, b1), (second, b2)], k, kind, normalized, fusion=fusion, **named)
    attributes = more | ({"swiglu_fusion": fusion} if fusion else {})
    given = {"x": x, "router": router, "first": first, "b1": b1, "second": second, "b2": b2}
    return drawn_case(d, op, given, wanted={"y0": wanted}, k=k, activation_type=kind, normalize_routing_weights=normalized, **attributes)


def quantised_experts(d, op):
    tokens, bits, block, count = d.among(1, 2, 9, 19), d.among(2, 4, 8), d.among(0, 16, 32), d.number(1, 6)
    unit = block or 8
    hidden, inner, k, has_zero = d.number(1, 3) * unit, d.number(1, 3) * unit, d.number(1, count), d.coin()
    if has_zero:  # whole bytes of zeros
        hidden, inner = hidden * (8 // bits), inner * (8 // bits)
    x, router = d.floats([tokens, hidden]), d.floats([tokens, count]) * 2
    seed = d.number(0, 1000)
    q1, s1, z1, w1 = few_bits(seed, (count, 2 * inner, hidden), bits, block, has_zero)
    q2, s2, z2, w2 = few_bits(seed + 3, (count, hidden, inner), bits, block, has_zero)
    b1, b2 = d.floats([count, 2 * inner]), d.floats([count, hidden])
    wanted = mixture(x, router, [(w1, b1), (w2, b2)], k, "swiglu", True, fusion=1)
    given = {"x": x, "router": router, "q1": q1, "s1": s1, "b1": b1, "q2": q2, "s2": s2, "b2": b2, "q3": None, "s3": None, "b3": None, "z1": z1, "z2": z2}
    return drawn_case(d, op, given, constant=[n for n in given if n not in ("x", "router")], wanted={"y0": wanted}, k=k, expert_weight_bits=bits,
                      activation_type="swiglu", swiglu_fusion=1, **({"block_size": block} if block else {}))  # fmt: skip


DRAWS = {
    "QLinearAdd": binary, "QLinearMul": binary, "QLinearSigmoid": unary, "QLinearLeakyRelu": unary, "QLinearSoftmax": softmax, "QLinearReduceMean": mean,
    "QLinearWhere": where, "QLinearConcat": concat, "QLinearGlobalAveragePool": global_pool, "QLinearAveragePool": pool, "NhwcMaxPool": pool,
    "QLinearConv": conv, "QGemm": gemm, "MatMulInteger16": wide_product, "MulInteger": integer_product, "ReduceSumInteger": integer_sum,
    "DynamicQuantizeMatMul": dynamic_product, "MatMulIntegerToFloat": dynamic_product, "DynamicQuantizeLSTM": lstm, "MatMulBnb4": bitsandbytes,
    "GatherBlockQuantized": gathered, "QuantizeLinear": linear, "DequantizeLinear": linear, "MoE": experts, "QMoE": quantised_experts,
}  # fmt: skip
