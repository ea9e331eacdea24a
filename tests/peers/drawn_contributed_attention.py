"""Draws of com.microsoft's attention and embeddings, for drawn_contributed_test.py."""

import numpy as np
from contributed_attention import attend, packed_attention, split
from contributed_case import drawn_case
from drawn_contributed_quantized import scales, steps


def mask(d, batch, steps_, total):
    """Any of its forms: how many keys each sequence has, where they end and begin, which keys, or which of each step."""
    lengths = d.integers([batch], 1, total + 1, np.int32)
    keys = (d.rng.random((batch, total)) > 0.3).astype(np.int32)
    rows = (d.rng.random((batch, steps_, total)) > 0.3).astype(np.int32)
    keys[:, 0], rows[..., 0] = 1, 1
    bounds = np.concatenate([lengths, np.minimum(lengths - 1, d.integers([batch], 0, 2, np.int32))]).astype(np.int32)
    return d.among(None, lengths, bounds, keys, rows)


def attention(d, op):
    batch, time, size, heads, head = d.number(1, 3), d.number(1, 6), d.number(1, 20), d.number(1, 3), d.among(1, 4, 8, 16)
    past = d.among(0, 0, 1, 4)
    hidden, values = heads * head, heads * (head if past else d.among(head, 2 * head))
    if op == "QAttention":
        values = hidden
    width, causal = 2 * hidden + values, d.number(0, 1)
    attributes = {"num_heads": heads, "unidirectional": causal}
    state = d.floats([2, batch, heads, past, head]) if past else None
    given_mask = None if past else mask(d, batch, time, time)
    if op == "QAttention":
        kind = d.among(np.uint8, np.int8)
        columns = d.among([], [width])
        given = {"x": steps(d, [batch, time, size], np.uint8), "w": steps(d, [size, width], kind), "b": d.floats([width]),
                 "x_scale": scales(d, [], 0.02), "w_scale": scales(d, columns, 0.01), "mask": given_mask, "x_zero": steps(d, [], np.uint8),
                 "w_zero": np.zeros(columns, kind) if columns else steps(d, [], kind), "past": state}  # fmt: skip
        return drawn_case(d, op, given, 2 if past else 1, constant=["w", "w_scale", "w_zero"], **attributes)
    if values != hidden:
        attributes["qkv_hidden_sizes"] = [hidden, hidden, values]
    if d.coin():
        attributes["scale"] = d.among(0.3, 1.0)
    if given_mask is not None and given_mask.ndim > 1 and d.coin():
        attributes["mask_filter_value"] = -3.0
    given = {"x": d.floats([batch, time, size]), "w": d.floats([size, width]) / 2, "b": d.floats([width]), "mask": given_mask, "past": state,
             "added": d.floats([d.among(1, batch), d.among(1, heads), time, past + time]) if d.coin() else None}  # fmt: skip
    return drawn_case(d, op, given, 2 if past else 1, **attributes)


def multi_head(d, op):
    batch, time, keys, heads, head = d.number(1, 3), d.number(1, 5), d.number(1, 7), d.number(1, 3), d.among(4, 8)
    form, past = d.among("apart", "packed", "pairs", "cross", "past"), d.number(1, 5)
    hidden = heads * head
    q, causal = d.floats([batch, time, hidden]), d.number(0, 1)
    attributes = {"num_heads": heads}
    if form == "packed":
        x = d.floats([batch, time, heads, 3, head])
        wanted = attend(*(x[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3)), causal=causal)
        return drawn_case(d, op, {"q": x}, wanted={"y0": wanted}, unidirectional=causal, **attributes)
    if form == "pairs":
        x = d.floats([batch, keys, heads, 2, head])
        wanted = attend(split(q, heads), *(x[:, :, :, i].transpose(0, 2, 1, 3) for i in (0, 1)))
        return drawn_case(d, op, {"q": q, "k": x}, wanted={"y0": wanted}, **attributes)
    if form == "cross":
        return drawn_case(d, op, {"q": q, "k": d.floats([batch, heads, keys, head]), "v": d.floats([batch, heads, keys, head])}, **attributes)
    if d.coin():
        attributes["scale"] = 0.4
    if form == "apart":
        values = hidden * d.among(1, 2)
        given = {"q": q, "k": d.floats([batch, keys, hidden]), "v": d.floats([batch, keys, values]),
                 "bias": d.floats([2 * hidden + values]) if d.coin() else None, "mask": d.among(None, mask(d, batch, time, keys)),
                 "added": d.floats([d.among(1, batch), d.among(1, heads), time, keys]) if d.coin() else None}  # fmt: skip
        if given["mask"] is not None and given["mask"].shape == (2 * batch,):  # its own bounds have other forms
            given["mask"] = None
        return drawn_case(d, op, given, **attributes)
    total = past + time
    given = {"q": q, "k": d.floats([batch, time, hidden]), "v": d.floats([batch, time, hidden]), "bias": d.floats([3 * hidden]) if d.coin() else None,
             "mask": None if causal or d.coin() else np.sort((d.rng.random((batch, total)) > 0.3).astype(np.int32), 1) | np.eye(1, total, total - 1, dtype=np.int32),
             "added": d.floats([1, heads, time, total]) if d.coin() else None, "past_key": d.floats([batch, heads, past, head]),
             "past_value": d.floats([batch, heads, past, head])}  # fmt: skip
    return drawn_case(d, op, given, ["y", "key", "value"], unidirectional=causal, **attributes)


def decoder(d, op):
    batch, heads, head, room = d.number(1, 3), d.number(1, 3), d.among(4, 8, 16), d.number(2, 12)
    past = d.number(0, room - 1)
    hidden = heads * head
    given = {name: d.floats([batch, 1, hidden]) for name in "qkv"}
    key, value = d.floats([batch, heads, room, head]), d.floats([batch, heads, room, head])
    mask_ = (d.rng.random((batch, past + 1)) > 0.3).astype(np.int32) if d.coin() else None
    added = d.floats([1, heads, 1, past + 1]) if d.coin() else None
    if mask_ is not None:
        mask_[:, -1] = 1
    given |= {"mask": mask_, "added": added, "past_key": key.copy(), "past_value": value.copy(), "length": np.int32([past])}
    key[:, :, past], value[:, :, past] = (split(given[n], heads)[:, :, 0] for n in "kv")
    outside = 0 if mask_ is None else np.where(mask_, 0, -10000)[:, None, None]
    y = attend(split(given["q"], heads), key[:, :, : past + 1], value[:, :, : past + 1], outside + (0 if added is None else added))
    return drawn_case(d, op, given, ["y", "key", "value"], wanted={"y": y, "key": key, "value": value}, num_heads=heads,
                      past_present_share_buffer=1)  # fmt: skip


def packed(d, op):
    batch, longest, heads, head, size = d.number(1, 4), d.number(1, 6), d.number(1, 3), d.among(4, 8), d.number(1, 16)
    lengths = d.integers([batch], 1, longest + 1)
    lengths[d.number(0, batch - 1)] = longest
    hidden, tokens = heads * head, int(lengths.sum())
    filled = (np.arange(longest) < lengths[:, None]).ravel()
    places = {"offsets": np.argsort(~filled, kind="stable").astype(np.int32).reshape(batch, longest),
              "bounds": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)}  # fmt: skip
    added = d.floats([1, heads, longest, longest]) if d.coin() else None
    more = {} if added is None else {"added": added}
    if op == "PackedAttention":
        x, w, b = d.floats([tokens, size]), d.floats([size, 3 * hidden]) / 2, d.floats([3 * hidden])
        q, k, v = np.split(x @ w + b, 3, axis=1)
        given = {"x": x, "w": w, "b": b}
    else:
        q, k, v, b = d.floats([tokens, hidden]), d.floats([tokens, hidden]), d.floats([tokens, hidden]), d.floats([3 * hidden]) if d.coin() else None
        given = {"q": q, "k": k, "v": v, "bias": b}
        if d.coin():
            given |= {"q": np.stack([t.reshape(tokens, heads, head) for t in (q, k, v)], 2), "k": None, "v": None}
        if b is not None:
            q, k, v = (t + part for t, part in zip((q, k, v), np.split(b, 3)))
    return drawn_case(d, op, given | places | more, wanted={"y0": packed_attention(lengths, heads, q, k, v, added)}, num_heads=heads)


def rotary(d, op):
    batch, time, heads, head, positions = d.number(1, 3), d.number(1, 6), d.number(1, 3), d.among(4, 8, 16), d.number(8, 20)
    turned = d.among(0, head // 2)
    half = (turned or head) // 2
    has_heads = d.coin()
    x = d.floats([batch, heads, time, head] if has_heads else [batch, time, heads * head])
    places = d.integers([batch, time], 0, positions) if d.coin() else d.integers([1], 0, positions - time + 1)
    attributes = {"interleaved": d.number(0, 1)}
    if turned:
        attributes |= {"rotary_embedding_dim": turned, "num_heads": heads}
    return drawn_case(d, op, {"x": x, "place": places, "cos": d.floats([positions, half]), "sin": d.floats([positions, half])}, **attributes)


def embedding(d, op):
    batch, time, hidden, words, kinds, positions = d.number(1, 3), d.number(1, 6), d.width(), d.number(1, 12), d.number(1, 3), d.number(6, 9)
    sizes = {"words": words, "positions": positions, "kinds": kinds}
    has_kinds = d.coin()
    tables = {name: [size, hidden] for name, size in sizes.items()} | {"gamma": [hidden], "beta": [hidden]}
    given = {"ids": d.integers([batch, time], 0, words, np.int32), "segments": d.integers([batch, time], 0, kinds, np.int32) if has_kinds else None}
    mask_ = (np.arange(time) < d.integers([batch, 1], 1, time + 1)).astype(np.int32) if d.coin() else None
    if op == "EmbedLayerNormalization":
        given |= {name: d.floats(shape) for name, shape in tables.items()}
        given["kinds"] = given["kinds"] if has_kinds else None
        given |= {"mask": mask_, "places": d.integers([d.among(1, batch), time], 0, positions, np.int32) if d.coin() else None}
        return drawn_case(d, op, given, d.among(["y", "index"], ["y", "index", "sum"]), epsilon=d.among(1e-12, 1e-5), mask_index_type=int(mask_ is not None))
    given |= {name: steps(d, shape, np.uint8) for name, shape in tables.items()} | {"mask": mask_}
    given |= {f"{name}_scale": scales(d, [], 0.02) for name in tables} | {f"{name}_zero": steps(d, [], np.uint8) for name in tables}
    if not has_kinds:
        given |= {"kinds": None, "kinds_scale": None, "kinds_zero": None}
    return drawn_case(d, op, given, 2, constant=[n for n in given if n not in ("ids", "segments", "mask")])


DRAWS = {
    "Attention": attention, "QAttention": attention, "MultiHeadAttention": multi_head, "DecoderMaskedMultiHeadAttention": decoder,
    "PackedAttention": packed, "PackedMultiHeadAttention": packed, "RotaryEmbedding": rotary, "EmbedLayerNormalization": embedding,
    "QEmbedLayerNormalization": embedding,
}  # fmt: skip
