"""Attention and embeddings of com.microsoft, for contributed_test.py."""

import numpy as np
from contributed_case import Case, floats, integers, random


def masks(batch, sequence, total):
    lengths = np.array([total - 2, total][:batch], np.int32)
    keys = (np.arange(total) < lengths[:, None]).astype(np.int32)
    rows = random(5).integers(0, 2, (batch, sequence, total)).astype(np.int32)
    rows[..., 0] = 1
    return {"lengths": lengths, "bounds": np.concatenate([lengths, np.minimum(lengths, 1)]).astype(np.int32),
            "keys": keys, "rows": rows}  # fmt: skip


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attend(q, k, v, added=0, causal=False):
    """Of [batch, heads, sequence, size]: [batch, sequence, heads * size]."""
    scores = q.astype(np.float64) @ np.swapaxes(k, 2, 3) / np.sqrt(q.shape[-1]) + added
    if causal:
        scores = np.where(np.tri(*scores.shape[2:], k=scores.shape[3] - scores.shape[2]) > 0, scores, -np.inf)
    y = (softmax(scores) @ v).transpose(0, 2, 1, 3)
    return y.reshape(*y.shape[:2], -1).astype(np.float32)


def split(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def attention():
    batch, sequence, size, heads, head, past = 2, 5, 12, 3, 8, 3
    hidden = heads * head
    x, w, b = floats(1, batch, sequence, size), floats(2, size, 3 * hidden), floats(3, 3 * hidden)
    plain = {"x": x, "w": w, "b": b}
    yield Case("Attention", "Attention", plain, num_heads=heads)
    yield Case("Attention_causal", "Attention", plain, num_heads=heads, unidirectional=1)
    yield Case("Attention_scale", "Attention", plain, num_heads=heads, scale=0.7)
    for name, mask in masks(batch, sequence, sequence).items():
        yield Case(f"Attention_mask_{name}", "Attention", plain | {"mask": mask}, num_heads=heads)
    yield Case("Attention_filter", "Attention", plain | {"mask": masks(batch, sequence, sequence)["keys"]},
               num_heads=heads, mask_filter_value=-1.5)  # fmt: skip
    wide = np.zeros((batch, 1, 16, 16), np.int32) + np.tril(np.ones((16, 16), np.int32))
    state = plain | {"mask": None, "past": floats(4, 2, batch, heads, past, head)}
    yield Case("Attention_past", "Attention", state, 2, num_heads=heads, unidirectional=1)
    q, k, v = (split(t, heads) for t in np.split(x @ w + b, 3, -1))
    k, v = np.concatenate([state["past"][0], k], 2), np.concatenate([state["past"][1], v], 2)
    yield Case("Attention_past_wide_mask", "Attention", state | {"mask": wide}, 2, num_heads=heads,
               wanted={"y0": attend(q, k, v, causal=True), "y1": np.stack([k, v])})  # fmt: skip
    yield Case("Attention_added", "Attention",
               plain | {"mask": None, "past": None, "added": floats(6, 1, heads, sequence, sequence)},
               num_heads=heads)  # fmt: skip
    sizes = [hidden, hidden, 2 * hidden]
    yield Case("Attention_sizes", "Attention",
               {"x": x, "w": floats(7, size, 4 * hidden), "b": floats(8, 4 * hidden)}, num_heads=heads,
               qkv_hidden_sizes=sizes)  # fmt: skip
    for kind in (np.uint8, np.int8):
        quantised = {"x": integers(9, np.uint8, batch, sequence, size), "w": integers(10, kind, size, 3 * hidden),
                     "b": b, "x_scale": np.array(0.02, np.float32),
                     "w_scale": np.array(0.01, np.float32), "mask": masks(batch, sequence, sequence)["lengths"],
                     "x_zero": np.array(120, np.uint8), "w_zero": np.array(3, kind)}  # fmt: skip
        yield Case(f"QAttention_{kind.__name__}", "QAttention", quantised, num_heads=heads,
                   weights=["w", "w_scale", "w_zero"])  # fmt: skip
        columns = {"w_scale": random(11).uniform(0.01, 0.02, 3 * hidden).astype(np.float32),
                   "w_zero": np.zeros(3 * hidden, kind)}  # fmt: skip
        yield Case(f"QAttention_{kind.__name__}_columns", "QAttention", quantised | columns, num_heads=heads,
                   weights=["w", "w_scale", "w_zero"])  # fmt: skip
        with_past = {"mask": None, "past": floats(12, 2, batch, heads, past, head)}
        yield Case(f"QAttention_{kind.__name__}_past", "QAttention", quantised | with_past, 2, num_heads=heads,
                   unidirectional=1, weights=["w", "w_scale", "w_zero"])  # fmt: skip


def multi_head():
    batch, sequence, keys, heads, head, past = 2, 5, 7, 3, 8, 4
    hidden = heads * head
    q, k, v = floats(1, batch, sequence, hidden), floats(2, batch, keys, hidden), floats(3, batch, keys, 2 * hidden)
    apart = {"q": q, "k": k, "v": v, "bias": floats(4, 4 * hidden)}
    yield Case("MultiHeadAttention", "MultiHeadAttention", apart, num_heads=heads)
    yield Case("MultiHeadAttention_bare", "MultiHeadAttention", {"q": q, "k": k, "v": v}, num_heads=heads)
    for name in ("lengths", "keys", "rows"):
        yield Case(f"MultiHeadAttention_mask_{name}", "MultiHeadAttention",
                   apart | {"mask": masks(batch, sequence, keys)[name]}, num_heads=heads)  # fmt: skip
    yield Case("MultiHeadAttention_added", "MultiHeadAttention",
               apart | {"mask": None, "added": floats(5, batch, 1, sequence, keys)}, num_heads=heads)  # fmt: skip
    packed = floats(6, batch, sequence, heads, 3, head)
    three = [packed[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3)]
    for causal in (0, 1):
        yield Case(f"MultiHeadAttention_packed_{causal}", "MultiHeadAttention", {"q": packed}, num_heads=heads,
                   unidirectional=causal, wanted={"y0": attend(*three, causal=causal)})  # fmt: skip
    two = floats(7, batch, keys, heads, 2, head)
    yield Case("MultiHeadAttention_packed_keys", "MultiHeadAttention", {"q": q, "k": two}, num_heads=heads,
               wanted={"y0": attend(split(q, heads), *(two[:, :, :, i].transpose(0, 2, 1, 3) for i in (0, 1)))})  # fmt: skip
    cross = {"q": q, "k": floats(8, batch, heads, keys, head), "v": floats(9, batch, heads, keys, head)}
    yield Case("MultiHeadAttention_cross", "MultiHeadAttention", cross, num_heads=heads)
    state = {"q": q, "k": floats(2, batch, sequence, hidden), "v": floats(3, batch, sequence, hidden),
             "bias": floats(4, 3 * hidden), "mask": None, "added": None,
             "past_key": floats(10, batch, heads, past, head),
             "past_value": floats(11, batch, heads, past, head)}  # fmt: skip
    yield Case("MultiHeadAttention_past", "MultiHeadAttention", state, ["y", "key", "value"], num_heads=heads)
    yield Case("MultiHeadAttention_past_causal", "MultiHeadAttention", state, ["y", "key", "value"], num_heads=heads,
               unidirectional=1)  # fmt: skip
    yield Case("MultiHeadAttention_past_mask", "MultiHeadAttention",
               state | {"mask": masks(batch, sequence, past + sequence)["keys"]}, ["y", "key", "value"],
               num_heads=heads)  # fmt: skip
    one = lambda seed: floats(seed, batch, 1, hidden)
    kept = lambda seed: floats(seed, batch, heads, 9, head)
    decoder = {"q": one(1), "k": one(2), "v": one(3), "mask": None, "added": None, "past_key": kept(4),
               "past_value": kept(5), "length": np.array([past], np.int32)}  # fmt: skip
    op = "DecoderMaskedMultiHeadAttention"
    key, value = decoder["past_key"].copy(), decoder["past_value"].copy()
    key[:, :, past], value[:, :, past] = (split(decoder[n], heads)[:, :, 0] for n in "kv")
    seen = masks(batch, 1, past + 1)["keys"]
    for name, mask in (("", None), ("_mask", seen)):
        hidden_keys = 0 if mask is None else np.where(mask, 0, -10000)[:, None, None]
        y = attend(split(decoder["q"], heads), key[:, :, : past + 1], value[:, :, : past + 1], hidden_keys)
        yield Case(f"{op}{name}", op, decoder | {"mask": mask}, ["y", "key", "value"], num_heads=heads,
                   past_present_share_buffer=1, wanted={"y": y, "key": key, "value": value})  # fmt: skip


def grouped():
    batch, heads, groups, head, positions = 2, 4, 2, 16, 32
    op = "GroupQueryAttention"
    angle = np.arange(positions)[:, None] / 10.0 ** (np.arange(head // 2) / 4)
    tables = {"cos": np.cos(angle).astype(np.float32), "sin": np.sin(angle).astype(np.float32)}

    def case(name, sequence, past, room, lengths, total, rotary=False, packed=False, batch=batch, extra=None,
             **attributes):  # fmt: skip
        q, k, v = (floats(i, batch, sequence, n * head) for i, n in ((1, heads), (2, groups), (3, groups)))
        inputs = {"q": q, "k": k, "v": v}
        if packed:
            inputs = {"q": np.concatenate([q, k, v], -1), "k": None, "v": None}
        # What the past has behind a sequence's own end is no matter, and 0 in what is given back.
        kept = lambda seed: floats(seed, batch, groups, room, head)
        inputs |= {"past_key": kept(4), "past_value": kept(5),
                   "lengths": np.array(lengths, np.int32) - 1, "total": np.array(total, np.int32)}  # fmt: skip
        if rotary:
            inputs |= tables
        if extra:
            inputs |= {"cos": inputs.get("cos"), "sin": inputs.get("sin")} | extra
        return Case(f"{op}_{name}", op, inputs, ["y", "key", "value"], weights=["total", "cos", "sin"],
                    num_heads=heads, kv_num_heads=groups, do_rotary=int(rotary), **attributes)  # fmt: skip

    yield case("first", 6, 0, 0, [6, 6], 6)
    yield case("first_packed_rotary", 6, 0, 0, [6, 6], 6, rotary=True, packed=True)
    yield case("first_interleaved", 6, 0, 0, [6, 6], 6, rotary=True, rotary_interleaved=1)
    yield case("one_more", 1, 5, 5, [6, 6], 6, rotary=True)
    yield case("room", 1, 5, 12, [6, 4], 6, rotary=True)
    yield case("room_grows", 1, 5, 5, [6, 3], 6, rotary=True)
    yield case("prompt_and_room", 3, 0, 9, [3, 2], 3)
    yield case("window", 1, 9, 12, [10, 10], 10, local_window_size=4)
    yield case("first_window", 8, 0, 0, [8, 8], 8, local_window_size=3)
    yield case("softcap", 1, 5, 5, [6, 6], 6, softcap=2.0, scale=1.3)
    yield case("several_more", 3, 5, 5, [8], 8, rotary=True, batch=1)
    yield case("smooth", 6, 0, 0, [6, 6], 6, smooth_softmax=1)
    none = {"position_ids": None, "added": None}
    yield case("sink", 6, 0, 0, [6, 6], 6, extra=none | {"sink": floats(9, heads)})
    yield case("added", 1, 5, 5, [6, 6], 6, extra={"position_ids": None, "added": floats(8, 1, heads, 1, 6)})
    yield case("not_causal", 6, 0, 0, [6, 6], 6, causal=0)


def packed_attention(lengths, heads, q, k, v, added=None):
    """Of [tokens, hidden], sequences of these lengths one behind the other, which are gone through one by one."""
    out, first = [], 0
    for n in lengths:
        one = lambda x: x[first : first + n].reshape(n, heads, -1).transpose(1, 0, 2).astype(np.float64)
        scores = one(q) @ one(k).transpose(0, 2, 1) / np.sqrt(q.shape[1] // heads)
        if added is not None:
            scores = scores + added[0, :, :n, :n]
        out.append((softmax(scores) @ one(v)).transpose(1, 0, 2).reshape(n, -1))
        first += n
    return np.concatenate(out).astype(np.float32)


def packed():
    lengths, sequence, heads, head, size = [3, 5, 1], 5, 2, 8, 12
    tokens, hidden = sum(lengths), heads * head
    filled = [b * sequence + s for b, n in enumerate(lengths) for s in range(n)]
    rest = sorted(set(range(len(lengths) * sequence)) - set(filled))
    offsets = np.array(filled + rest, np.int32).reshape(len(lengths), sequence)
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    added = floats(6, 1, heads, sequence, sequence)

    reference = lambda *given: {"y0": packed_attention(lengths, heads, *given)}
    x, w, b = floats(1, tokens, size), floats(2, size, 3 * hidden), floats(3, 3 * hidden)
    q, k, v = np.split(x @ w + b, 3, axis=1)
    places = {"offsets": offsets, "bounds": bounds}
    for name, bias in (("", None), ("_added", added)):
        more = {} if bias is None else {"added": bias}
        yield Case(f"PackedAttention{name}", "PackedAttention", {"x": x, "w": w, "b": b} | places | more,
                   wanted=reference(q, k, v, bias), num_heads=heads)  # fmt: skip
    op = "PackedMultiHeadAttention"
    yield Case(op, op, {"q": q, "k": k, "v": v, "bias": None} | places, wanted=reference(q, k, v, None),
               num_heads=heads)  # fmt: skip
    together = np.stack([t.reshape(tokens, heads, head) for t in (q, k, v)], 2)
    yield Case(f"{op}_together", op, {"q": together, "k": None, "v": None, "bias": b} | places,
               wanted=reference(q + b[:hidden], k + b[hidden : 2 * hidden], v + b[2 * hidden :], None),
               num_heads=heads)  # fmt: skip


def rotary():
    batch, sequence, heads, head = 2, 5, 3, 16
    angle = np.arange(20)[:, None] / 10.0 ** (np.arange(head // 2) / 4)
    tables = {"cos": np.cos(angle).astype(np.float32), "sin": np.sin(angle).astype(np.float32)}
    x = floats(1, batch, sequence, heads * head)
    places = random(2).integers(0, 20, (batch, sequence))
    for i in (0, 1):
        yield Case(f"RotaryEmbedding_{i}", "RotaryEmbedding", {"x": x, "place": places} | tables, interleaved=i,
                   weights=["cos", "sin"])  # fmt: skip
    yield Case("RotaryEmbedding_offset", "RotaryEmbedding", {"x": x, "place": np.array([3])} | tables,
               weights=["cos", "sin"])  # fmt: skip
    yield Case("RotaryEmbedding_heads", "RotaryEmbedding",
               {"x": floats(3, batch, heads, sequence, head), "place": places} | tables)  # fmt: skip
    part = {name: table[:, : head // 4] for name, table in tables.items()}
    yield Case("RotaryEmbedding_part", "RotaryEmbedding", {"x": x, "place": places} | part, num_heads=heads,
               rotary_embedding_dim=head // 2)  # fmt: skip


def embeddings():
    batch, sequence, hidden = 2, 5, 16
    ids = random(1).integers(0, 20, (batch, sequence)).astype(np.int32)
    segments = random(2).integers(0, 2, (batch, sequence)).astype(np.int32)
    tables = {"words": floats(3, 20, hidden), "positions": floats(4, 9, hidden), "kinds": floats(5, 2, hidden),
              "gamma": floats(6, hidden), "beta": floats(7, hidden)}  # fmt: skip
    op = "EmbedLayerNormalization"
    mask = (np.arange(sequence) < np.array([[3], [5]])).astype(np.int32)
    full = {"ids": ids, "segments": segments} | tables
    yield Case(op, op, full | {"mask": mask}, ["y", "index", "sum"], weights=list(tables), mask_index_type=1)
    yield Case(f"{op}_no_mask", op, full, ["y", "index"], weights=list(tables), epsilon=1e-5)
    few = full | {"segments": None, "kinds": None}
    yield Case(f"{op}_few", op, few, ["y", "index"], weights=["words"])
    places = random(8).integers(0, 9, (batch, sequence)).astype(np.int32)
    yield Case(f"{op}_positions", op, full | {"mask": None, "places": places}, ["y", "index"])
    op = "QEmbedLayerNormalization"
    small = {name: integers(i, np.uint8, *table.shape) for i, (name, table) in enumerate(tables.items())}
    scales = {f"{name}_scale": np.array(0.01 + 0.002 * i, np.float32) for i, name in enumerate(tables)}
    zeros = {f"{name}_zero": np.array(120 + i, np.uint8) for i, name in enumerate(tables)}
    yield Case(op, op, {"ids": ids, "segments": segments} | small | {"mask": mask} | scales | zeros, 2,
               weights=[*small, *scales, *zeros])  # fmt: skip


CASES = (attention, multi_head, grouped, packed, rotary, embeddings)
