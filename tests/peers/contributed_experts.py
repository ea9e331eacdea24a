"""Mixtures of experts (com.microsoft MoE and QMoE), for contributed_test.py: where onnxruntime's processor kernel has
none of a form against the definition, in float64.

Shapes with free sizes take the form for many tokens, in which each expert has as many rows as the run finds."""

import math

import numpy as np
from contributed_case import Case, floats, random


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def activated(x, gate, kind, fusion=0, alpha=1.0, beta=0.0, limit=math.inf):
    if kind == "swiglu":
        if fusion:
            x, gate = (x[..., 0::2], x[..., 1::2]) if fusion == 1 else np.split(x, 2, -1)
        x, gate = np.minimum(x, limit), np.clip(gate, -limit, limit)
        return x * sigmoid(alpha * x) * (gate + beta)
    y = {"relu": lambda: np.maximum(x, 0), "silu": lambda: x * sigmoid(x), "identity": lambda: x}[kind]()
    return y if gate is None else y * gate


def mixture(x, router, weights, k, kind, normalized, mixed_by=None, **attributes):
    """Of weights and biases [(w, b)] of the first, the second and perhaps a gate's product."""
    x = x.astype(np.float64)
    shares = np.exp(router - router.max(1, keepdims=True))
    shares = mixed_by if mixed_by is not None else shares / shares.sum(1, keepdims=True)
    y = np.zeros((len(x), weights[1][0].shape[1]))
    for token, row in enumerate(x):
        best = np.argsort(-router[token], kind="stable")[:k]
        factors = shares[token, best].astype(np.float64)
        for expert, factor in zip(best, factors / factors.sum() if normalized else factors):
            product = lambda i, row: weights[i][0][expert] @ row + (0 if weights[i][1] is None else weights[i][1][expert])
            gate = product(2, row) if len(weights) > 2 else None
            y[token] += factor * product(1, activated(product(0, row), gate, kind, **attributes))
    return y.astype(np.float32)


SWIGLU = {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 2.0}


def experts():
    hidden, inner, count = 24, 20, 5
    for tokens in (1, 2, 19):  # one copy of the network for each choice, or one for each expert
        x, router = floats(1, tokens, hidden), floats(2, tokens, count) * 2
        first, second = floats(3, count, inner, hidden) / 5, floats(4, count, hidden, inner) / 5
        b1, b2 = floats(5, count, inner), floats(6, count, hidden)
        given = {"x": x, "router": router, "first": first, "b1": b1, "second": second, "b2": b2}
        weights = ("first", "b1", "second", "b2", "gate", "b3")
        for kind in ("relu", "gelu", "silu", "identity"):
            yield Case(f"MoE_{kind}_{tokens}", "MoE", given, weights=weights, k=2, activation_type=kind)
        yield Case(f"MoE_normalized_{tokens}", "MoE", given | {"b1": None, "b2": None}, weights=weights, k=3,
                   normalize_routing_weights=1)  # fmt: skip
        yield Case(f"MoE_inputs_{tokens}", "MoE", given, k=1, activation_type="silu")
        wide = {"first": floats(3, count, 2 * inner, hidden) / 5, "b1": floats(5, count, 2 * inner)}
        yield Case(f"MoE_swiglu_{tokens}", "MoE", given | wide, weights=weights, k=2, activation_type="swiglu",
                   swiglu_fusion=1, **SWIGLU)  # fmt: skip
        wanted = mixture(x, router, [(wide["first"], wide["b1"]), (second, b2)], 2, "swiglu", False, fusion=2)
        yield Case(f"MoE_halves_{tokens}", "MoE", given | wide, weights=weights, k=2, activation_type="swiglu",
                   swiglu_fusion=2, wanted={"y0": wanted})  # fmt: skip
        gate = {"gate": floats(7, count, inner, hidden) / 5, "b3": floats(8, count, inner)}
        for kind in ("silu", "swiglu"):
            wanted = mixture(x, router, [(first, b1), (second, b2), (gate["gate"], gate["b3"])], 2, kind, False)
            yield Case(f"MoE_gate_{kind}_{tokens}", "MoE", given | gate, weights=weights, k=2, activation_type=kind,
                       wanted={"y0": wanted})  # fmt: skip
    x = floats(1, 2, 4, hidden)
    yield Case("MoE_no_tokens", "MoE", given | {"x": x[:0, 0], "router": floats(2, 0, count)}, weights=weights, k=2,
               wanted={"y0": x[:0, 0]})  # fmt: skip
    yield Case("MoE_batches", "MoE", given | {"x": x, "router": floats(2, 8, count)}, weights=weights, k=2)


def packed(numbers, bits):
    """[.., n] below 2^bits, the lowest bits first; the last byte is filled up."""
    each = 8 // bits
    filled = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, -numbers.shape[-1] % each)])
    filled = filled.reshape(*filled.shape[:-1], -1, each).astype(np.uint32)
    return (filled << (bits * np.arange(each, dtype=np.uint32))).sum(-1).astype(np.uint8)


def few_bits(seed, shape, bits, block, has_zero):
    """Weights of a product, their scales and zeros as inputs, and what they stand for."""
    numbers = random(seed).integers(0, 1 << bits, shape).astype(np.uint8)
    blocks = shape[-1] // block if block else 1
    scale = (random(seed + 1).random((*shape[:-1], blocks)) * 0.1 + 0.02).astype(np.float32)
    zero = random(seed + 2).integers(0, 1 << bits, scale.shape).astype(np.uint8)
    if not has_zero:
        zero[:] = 1 << (bits - 1)
    spread = lambda t: np.repeat(t, shape[-1] // blocks, -1)
    meant = (numbers.astype(np.float64) - spread(zero)) * spread(scale)
    if not block:
        scale, zero = scale[..., 0], zero[..., 0]
    return packed(numbers, bits), scale, packed(zero, bits) if has_zero else None, meant


def quantised_experts():
    hidden, inner, count = 32, 48, 5
    # onnxruntime rounds what blocks of 8 bits are multiplied with to 8 bits, and asks for whole bytes of zeros.
    forms = [(4, 0, 0), (4, 0, 1), (4, 16, 0), (4, 16, 1), (8, 0, 1), (8, 16, 1), (2, 16, 0)]
    for tokens in (1, 2, 19):
        x, router = floats(1, tokens, hidden), floats(2, tokens, count) * 2
        for bits, block, has_zero in forms:
            q1, s1, z1, w1 = few_bits(3, (count, 2 * inner, hidden), bits, block, has_zero)
            q2, s2, z2, w2 = few_bits(6, (count, hidden, inner), bits, block, has_zero)
            b1, b2 = floats(9, count, 2 * inner), floats(10, count, hidden)
            given = {"x": x, "router": router, "q1": q1, "s1": s1, "b1": b1, "q2": q2, "s2": s2, "b2": b2,
                     "q3": None, "s3": None, "b3": None, "z1": z1, "z2": z2}  # fmt: skip
            attributes = {"k": 2, "expert_weight_bits": bits, "activation_type": "swiglu", "swiglu_fusion": 1,
                          "weights": [n for n in given if n not in ("x", "router")]}  # fmt: skip
            if block:
                attributes["block_size"] = block
            name = f"QMoE_{bits}_bits_{block}{'_zero' if has_zero else ''}_{tokens}"
            wanted = mixture(x, router, [(w1, b1), (w2, b2)], 2, "swiglu", True, fusion=1)
            yield Case(name, "QMoE", given, wanted={"y0": wanted} if (bits, block) == (8, 16) else None, **attributes)
        shares = np.abs(floats(11, tokens, count)) + np.float32(0.1)
        for normalized in (0, 1):
            yield Case(f"QMoE_shares_{normalized}_{tokens}", "QMoE", given | {"z3": None, "shares": shares},
                       normalize_routing_weights=normalized, **attributes)  # fmt: skip


CASES = (experts, quantised_experts)
