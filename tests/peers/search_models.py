"""Decoders of a layer or two inside of com.microsoft's searches, as onnxruntime's converters write them."""

import numpy as np
from builder import FLOAT, Builder, port
from onnx import TensorProto, helper

INT32 = TensorProto.INT32


class Body(Builder):
    """A graph with weights from a generator."""

    def __init__(self, name, drawn, prefix=""):
        super().__init__(name, prefix)
        self.drawn = drawn

    def normal(self, *shape, scale=0.6):
        return self.constant(self.drawn.standard_normal(shape) * scale, np.float32)


def heads_of(body, x, heads, size):
    split = body.op("Reshape", [x, body.constant([0, 0, heads, size])])
    return body.op("Transpose", [split], perm=[0, 2, 1, 3])


def attend(body, query, key, value, bias, heads, size, hidden):
    scores = body.op("MatMul", [query, body.op("Transpose", [key], perm=[0, 1, 3, 2])])
    scores = body.op("Mul", [scores, body.constant(size**-0.5, np.float32)])
    if bias:
        scores = body.op("Add", [scores, bias])
    mixed = body.op("MatMul", [body.op("Softmax", [scores], axis=-1), value])
    return body.op("Reshape", [body.op("Transpose", [mixed], perm=[0, 2, 1, 3]), body.constant([0, 0, hidden])])


def masked(body, mask):
    """What hides the places of a mask [rows, n]: [rows, 1, 1, n]."""
    wide = body.op("Unsqueeze", [body.op("Cast", [mask], to=FLOAT), body.constant([1, 2])])
    return body.op("Mul", [body.op("Sub", [body.constant(1, np.float32), wide]), body.constant(-10000, np.float32)])


def causal(body, past, tokens):
    """[tokens, past + tokens]: what comes later is hidden."""
    shape = body.op("Shape", [past])
    before = body.op("Gather", [shape, body.constant(3)], axis=0)
    here = body.op("Gather", [body.op("Shape", [tokens]), body.constant(1)], axis=0)
    zero, one = body.constant(0), body.constant(1)
    total = body.op("Add", [before, here])
    columns = body.op("Range", [zero, total, one])
    rows = body.op("Unsqueeze", [body.op("Range", [before, total, one]), body.constant([1])])
    late = body.op("Greater", [columns, rows])
    return body.op("Mul", [body.op("Cast", [late], to=FLOAT), body.constant(-10000, np.float32)])


def distances(body, keys):
    """[tokens]: the further back a key is the less it counts for the last one's query."""
    total = body.op("Gather", [body.op("Shape", [keys]), body.constant(2)], axis=0)
    back = body.op("Range", [body.op("Neg", [body.op("Sub", [total, body.constant(1)])]), body.constant(1), body.constant(1)])
    return body.op("Mul", [body.op("Cast", [back], to=FLOAT), body.constant(0.37, np.float32)])


def gpt(rng, vocabulary=17, hidden=8, heads=2, layers=2, places=64, fused=False):
    """A decoder with plain attention, or with com.microsoft's."""
    size = hidden // heads
    body = Body("decoder", rng)
    x = body.op("Add", [body.op("Gather", [body.normal(vocabulary, hidden), "input_ids"]),
                body.op("Gather", [body.normal(places, hidden), "position_ids"])])  # fmt: skip
    if not fused:
        bias = body.op("Add", [masked(body, "attention_mask"), causal(body, "past_0", "input_ids")])
    for i in range(layers):
        normal = body.op("LayerNormalization", [x, body.normal(hidden), body.normal(hidden)], axis=-1)
        if fused:
            given = [normal, body.normal(hidden, 3 * hidden), body.normal(3 * hidden), "attention_mask", f"past_{i}"]
            mixed, _ = body.ops("Attention", given, 2, [f"mixed_{i}", f"present_{i}"],
                                domain="com.microsoft", num_heads=heads, unidirectional=1)  # fmt: skip
        else:
            parts = [heads_of(body, body.op("MatMul", [normal, body.normal(hidden, hidden)]), heads, size) for _ in range(3)]
            first = body.constant([0])
            key = body.op("Squeeze", [body.op("Slice", [f"past_{i}", first, body.constant([1]), first]), first])
            value = body.op("Squeeze", [body.op("Slice", [f"past_{i}", body.constant([1]), body.constant([2]), first]), first])
            key, value = body.op("Concat", [key, parts[1]], axis=2), body.op("Concat", [value, parts[2]], axis=2)
            both = [body.op("Unsqueeze", [one, first]) for one in (key, value)]
            body.op("Concat", [*both], axis=0, output=f"present_{i}")
            mixed = attend(body, parts[0], key, value, bias, heads, size, hidden)
        x = body.op("Add", [x, body.op("MatMul", [mixed, body.normal(hidden, hidden)])])
    body.op("MatMul", [x, body.normal(hidden, vocabulary, scale=1.5)], output="logits")
    past = [2, "rows", heads, "past", size]
    inputs = [port("input_ids", INT32, ["rows", "tokens"]), port("position_ids", INT32, ["rows", "tokens"]),
              port("attention_mask", INT32, ["rows", "all"])]  # fmt: skip
    inputs += [port(f"past_{i}", FLOAT, past) for i in range(layers)]
    outputs = [port("logits", FLOAT, ["rows", "tokens", vocabulary])]
    outputs += [port(f"present_{i}", FLOAT, [2, "rows", heads, "all", size]) for i in range(layers)]
    return body.graph(inputs, outputs)


def t5(rng, vocabulary=17, hidden=8, heads=2, layers=2, decodes=False):
    """An encoder and a decoder; the former makes the first token's logits too if it `decodes`."""
    size = hidden // heads
    shared = {}

    def of(body, name, *shape, scale=0.6):
        if name not in shared:
            shared[name] = (rng.standard_normal(shape) * scale).astype(np.float32)
        return body.weight(f"{body.prefix}{name}", shared[name])

    def layer(body, x, i, own, cross, bias):
        """One of the decoder's, of the past keys and values (None: there are none); and the new ones."""
        parts = [heads_of(body, body.op("MatMul", [x, of(body, f"self{i}{k}", hidden, hidden)]), heads, size) for k in "qkv"]
        key, value = parts[1:]
        names = [f"present_key_self_{i}", f"present_value_self_{i}"]
        if own:
            body.op("Concat", [own[0], key], axis=2, output=names[0])
            body.op("Concat", [own[1], value], axis=2, output=names[1])
        else:
            body.op("Identity", [key], output=names[0])
            body.op("Identity", [value], output=names[1])
        mixed = attend(body, parts[0], *names, distances(body, names[0]), heads, size, hidden)
        x = body.op("Add", [x, body.op("MatMul", [mixed, of(body, f"out{i}", hidden, hidden)])])
        query = heads_of(body, body.op("MatMul", [x, of(body, f"query{i}", hidden, hidden)]), heads, size)
        mixed = attend(body, query, *cross, bias, heads, size, hidden)
        return body.op("Add", [x, body.op("MatMul", [mixed, of(body, f"cross{i}", hidden, hidden)])])

    def scores(body, x):
        body.op("MatMul", [x, of(body, "scores", hidden, vocabulary, scale=1.5)], output="logits")

    encoder = Body("encoder", rng, "encoder_")
    x = encoder.op("Gather", [of(encoder, "embedding", vocabulary, hidden), "encoder_input_ids"])
    bias = masked(encoder, "encoder_attention_mask")
    parts = [heads_of(encoder, encoder.op("MatMul", [x, encoder.normal(hidden, hidden)]), heads, size) for _ in range(3)]
    states = encoder.op("Add", [x, attend(encoder, *parts, bias, heads, size, hidden)], output="encoder_hidden_states")
    for i in range(layers):
        for k in ("key", "value"):
            one = encoder.op("MatMul", [states, encoder.normal(hidden, hidden)])
            split = encoder.op("Reshape", [one, encoder.constant([0, 0, heads, size])])
            encoder.op("Transpose", [split], perm=[0, 2, 1, 3], output=f"present_{k}_cross_{i}")
    cross = [[f"present_{k}_cross_{i}" for k in ("key", "value")] for i in range(layers)]
    if decodes:
        y = encoder.op("Gather", [f"{encoder.prefix}embedding", "decoder_input_ids"])
        for i in range(layers):
            y = layer(encoder, y, i, None, cross[i], bias)
        scores(encoder, y)

    decoder = Body("decoder", rng, "decoder_")
    y = decoder.op("Gather", [of(decoder, "embedding", vocabulary, hidden), "input_ids"])
    bias = masked(decoder, "encoder_attention_mask")
    if decodes:  # as onnxruntime's converters leave it
        spare = decoder.op("ReduceSum", [decoder.op("Mul", ["encoder_hidden_states", decoder.constant(0, np.float32)])], keepdims=0)
        y = decoder.op("Add", [y, spare])
    for i in range(layers):
        own = [f"past_key_self_{i}", f"past_value_self_{i}"]
        y = layer(decoder, y, i, own, [f"past_key_cross_{i}", f"past_value_cross_{i}"], bias)
    scores(decoder, y)

    kept, seen = ["rows", heads, "past", size], ["rows", heads, "source", size]
    mask = port("encoder_attention_mask", INT32, ["rows", "source"])
    pairs = [(k, i) for i in range(layers) for k in ("key", "value")]
    own = [port(f"present_{k}_self_{i}", FLOAT, ["rows", heads, "now", size]) for k, i in pairs]
    cross = [port(f"present_{k}_cross_{i}", FLOAT, seen) for k, i in pairs]
    logits = port("logits", FLOAT, ["rows", 1, vocabulary])
    hidden_states = port("encoder_hidden_states", FLOAT, ["rows", "source", hidden])
    inputs = [port("encoder_input_ids", INT32, ["rows", "source"]), mask]
    outputs = cross
    if decodes:
        inputs.append(port("decoder_input_ids", INT32, ["rows", 1]))
        outputs = [logits, hidden_states, *own, *cross]
    first = encoder.graph(inputs, outputs)
    inputs = [port("input_ids", INT32, ["rows", 1]), mask]
    if decodes:
        inputs.append(hidden_states)
    inputs += [port(f"past_{k}_self_{i}", FLOAT, kept) for k, i in pairs]
    inputs += [port(f"past_{k}_cross_{i}", FLOAT, seen) for k, i in pairs]
    return first, decoder.graph(inputs, [logits, *own])


BEAM = ["input_ids", "max_length", "min_length", "num_beams", "num_return_sequences", "length_penalty",
        "repetition_penalty", "vocab_mask", "prefix_vocab_mask", "attention_mask"]  # fmt: skip
GREEDY = ["input_ids", "max_length", "min_length", "repetition_penalty", "vocab_mask", "prefix_vocab_mask",
          "attention_mask"]  # fmt: skip


def model(op, given, graphs, outputs, free=False, **attributes):
    """The model of one search, whose inputs `given` (a dictionary of arrays) are the graph's."""
    order = BEAM if op == "BeamSearch" else GREEDY
    names = [name if name in given else "" for name in order]
    while not names[-1]:
        names.pop()
    whole = Builder("search")
    whole.ops(op, names, len(outputs), outputs, "search", domain="com.microsoft", **graphs, **attributes)
    ports = {}
    for name, value in given.items():
        shape = ["batch", "length"] if free and value.ndim == 2 and name == "input_ids" else value.shape
        ports[name] = (shape, helper.np_dtype_to_tensor_dtype(value.dtype))
    results = {"sequences": (["b", "r", "l"] if op == "BeamSearch" else ["b", "l"], INT32),
               "sequences_scores": (["b", "r"], FLOAT), "scores": (["t", "b", "m", "v"], FLOAT)}  # fmt: skip
    return whole.finished(ports, {name: results[name] for name in outputs}, 17, ["com.microsoft"])
