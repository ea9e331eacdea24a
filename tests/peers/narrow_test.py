"""Element types of few bits against ml_dtypes and onnxruntime: every conversion of every number of 16 bits, weights
that are packed in the file, and what refuses them.

    PYTHONPATH=build/release/bindings/python narrow_test.py [PATTERN]
"""

import sys

import named_tests

try:
    import hypothesis
    import ml_dtypes
    import numpy as np
    import onnxruntime
    import tiny
    from hypothesis import strategies as st
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

EXAMPLES = hypothesis.settings(max_examples=20, deadline=None, database=None, derandomize=True)
FLOATS = {"FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn, "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
          "FLOAT8E5M2": ml_dtypes.float8_e5m2, "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
          "FLOAT4E2M1": ml_dtypes.float4_e2m1fn, "FLOAT8E8M0": ml_dtypes.float8_e8m0fnu}  # fmt: skip
INTEGERS = {"INT4": (4, np.int8), "UINT4": (4, np.uint8), "INT2": (2, np.int8), "UINT2": (2, np.uint8)}
FLOAT = TensorProto.FLOAT
CONTRIBUTED = "com.microsoft"  # whose QuantizeLinear the quantiser writes where the standard's has not the type yet


def model_of(nodes, inputs, outputs, weights=(), opset=25):
    ports = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
    made = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs]
    graph = helper.make_graph(nodes, "narrow", ports, made, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(CONTRIBUTED, 1)],
                             ir_version=13)


def run(model, *inputs):
    loaded = tiny.Model.load(tiny.default_context(), model.SerializeToString())
    return [np.array(out.numpy()) for out in loaded.run(list(inputs))]


def wanted(model, x):
    """Of onnxruntime, as the nodes stand: what it fuses it also computes in fewer bits."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})[0]


def cast(x, kind, to, **attributes):
    node = helper.make_node("Cast", ["x"], ["y"], to=to, **attributes)
    return run(model_of([node], [("x", kind, x.shape)], [("y", to)], opset=26), x)[0]


def same(got, want):
    differ = got != want
    assert not differ.any(), (np.flatnonzero(differ)[:5], got[differ][:5], want[differ][:5])


def interesting():
    """All numbers of 16 bits, and those of 32 beside what lies between two of 8 bits."""
    halves = np.arange(1 << 16, dtype=np.uint16)
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 4000, dtype=np.uint64).astype(np.uint32)
    near = np.concatenate([halves.view(np.float16).astype(np.float32).view(np.uint32)[:31744:7] + np.uint32(d)
                           for d in (1, 0xFFFFFFFF)])  # fmt: skip
    words = np.concatenate([halves.view(np.float16).astype(np.float32), bits.view(np.float32), near.view(np.float32)])
    return words


def floats_are_rounded():
    x = interesting()
    for name, kind in FLOATS.items():
        number = getattr(TensorProto, name)
        if name == "FLOAT8E8M0":
            # Its reference is the standard's text: up, down, or to the nearest, halves up.
            continue
        with np.errstate(all="ignore"):
            want = x.astype(kind)
        if name == "FLOAT4E2M1":
            # What is no number becomes a zero of some sign.
            number_of, want = cast(x[~np.isnan(x)], FLOAT, number), want[~np.isnan(x)]
            same(number_of, want.view(np.uint8))
            continue
        same_but_nan(cast(x, FLOAT, number, saturate=0), want.view(np.uint8), kind)
        most = np.float32(ml_dtypes.finfo(kind).max)
        with np.errstate(all="ignore"):
            want = np.clip(x, -most, most).astype(kind)
        same_but_nan(cast(x, FLOAT, number), want.view(np.uint8), kind)


def all_conversions_round_alike():
    """CastLike, and QuantizeLinear by 1, of a runtime value and of a constant, are the Cast: infinities too."""
    x = np.float32([0, -0.0, 1, 0.3, np.inf, -np.inf, np.nan, 447, 464, 464.1, 480, -465, 240, 248, 249, 57344, 61440, 61441, 1e30, -1e30])
    for name in set(FLOATS) - {"FLOAT8E8M0"}:
        number = getattr(TensorProto, name)
        attributes = ({},) if name == "FLOAT4E2M1" else ({}, {"saturate": 0}, {"saturate": 1})
        for given in attributes:
            want = cast(x, FLOAT, number, **given)
            like = helper.make_tensor("like", number, [1], [0.0])
            one = numpy_helper.from_array(np.float32(1), "one")
            for made in (helper.make_node("CastLike", ["x", "like"], ["y"], **given),
                         helper.make_node("QuantizeLinear", ["x", "one"], ["y"], output_dtype=number, **given)):  # fmt: skip
                same(run(model_of([made], [("x", FLOAT, x.shape)], [("y", number)], [like, one]), x)[0], want)
                constant = numpy_helper.from_array(x, "x")
                same(run(model_of([made], [], [("y", number)], [like, one, constant]))[0], want)


def same_but_nan(got, want, kind):
    """Every NaN is as good as another."""
    left, right = (np.isnan(v.view(kind).astype(np.float32)) for v in (got, want))
    same(left, right)
    same(got[~left], want[~right])


def bits_are_taken():
    """BitCast between types of as many bits; no others."""
    def bits(x, kind, to):
        node = helper.make_node("BitCast", ["x"], ["y"], to=to)
        return run(model_of([node], [("x", kind, x.shape)], [("y", to)], opset=26), x)[0]

    x = np.arange(256, dtype=np.uint8)
    for name in set(FLOATS) - {"FLOAT4E2M1"}:
        number = getattr(TensorProto, name)
        same(bits(x, TensorProto.UINT8, number), x)
        same(bits(x.view(np.int8), TensorProto.INT8, number), x)
        same(bits(x, number, TensorProto.INT8), x.view(np.int8))
        same(bits(x, TensorProto.FLOAT8E5M2, number), x)
    for few in (4, 2):
        unsigned = np.arange(1 << few, dtype=np.uint8)
        signed = ((unsigned.astype(np.int8) + (1 << few - 1)) % (1 << few) - (1 << few - 1)).astype(np.int8)
        kinds = [getattr(TensorProto, f"{sign}INT{few}") for sign in ("U", "")]
        same(bits(unsigned, kinds[0], kinds[1]), signed)
        same(bits(signed, kinds[1], kinds[0]), unsigned)
        if few == 4:
            same(bits(unsigned, TensorProto.FLOAT4E2M1, kinds[1]), signed)
            same(bits(signed, kinds[1], TensorProto.FLOAT4E2M1), unsigned)
    try:
        bits(x, TensorProto.UINT8, TensorProto.UINT4)
        raise AssertionError("8 bits became 4")
    except tiny.Error as e:
        assert "8 bits" in str(e), e


def powers_of_two_are_rounded():
    x = np.abs(interesting())
    x = x[np.isfinite(x)]
    exponents = np.floor(np.log2(np.maximum(x.astype(np.float64), 2.0**-127))).astype(int)
    for mode in ("down", "up", "nearest"):
        got = cast(x, FLOAT, TensorProto.FLOAT8E8M0, round_mode=mode).astype(int) - 127
        low = 2.0 ** exponents.astype(np.float64)
        more = {"down": False, "up": x > low, "nearest": x >= 1.5 * low}[mode]
        if mode == "nearest":
            more = np.where(exponents == -127, x > 1.5 * low, more)
        same(got, np.minimum(exponents + more, 127))
    same(cast(np.float32([-1, np.nan]), FLOAT, TensorProto.FLOAT8E8M0), np.uint8([255, 255]))


def floats_are_read():
    for name, kind in FLOATS.items():
        codes = np.arange(16 if name == "FLOAT4E2M1" else 256, dtype=np.uint8)
        number = getattr(TensorProto, name)
        for to, made in ((FLOAT, np.float32), (TensorProto.FLOAT16, np.float16)):
            with np.errstate(all="ignore"):
                want = codes.view(kind).astype(np.float32).astype(made)
            np.testing.assert_array_equal(cast(codes, number, to), want)


def integers_wrap():
    x = np.arange(-40, 40).astype(np.float32) / 2
    for name, (bits, made) in INTEGERS.items():
        number = getattr(TensorProto, name)
        low = np.trunc(x).astype(np.int64) & ((1 << bits) - 1)
        want = (low - ((low >> (bits - 1)) << bits if made == np.int8 else 0)).astype(made)
        same(cast(x, FLOAT, number), want)
        same(cast(want, number, TensorProto.INT64), want.astype(np.int64))


@EXAMPLES
@hypothesis.given(st.integers(0, 2**32), st.sampled_from(("INT4", "UINT4")), st.sampled_from((None, 16, 32)), st.booleans(),
                  st.integers(1, 70), st.sampled_from(("", CONTRIBUTED)))  # fmt: skip
def packed_weights(seed, name, block, has_zero, columns, domain):
    block = None if domain else block  # onnxruntime's own has none
    rng = np.random.default_rng(seed)
    rows, (bits, made) = 64, INTEGERS[name]
    low = -8 if made == np.int8 else 0
    values = rng.integers(low, low + 16, (rows, columns)).astype(made)
    shape = (rows // block, columns) if block else (columns,)
    scale = rng.uniform(0.01, 0.1, shape).astype(np.float32)
    weights = [numpy_helper.from_array(scale, "scale"), helper.make_tensor("w", getattr(TensorProto, name), values.shape,
                                                                           values.ravel().tolist())]  # fmt: skip
    names = ["w", "scale"]
    if has_zero:
        zero = rng.integers(low, low + 16, shape).astype(made)
        weights.append(helper.make_tensor("zero", getattr(TensorProto, name), shape, zero.ravel().tolist()))
        names.append("zero")
    quantised = {"axis": 0, "block_size": block} if block else {"axis": 1}
    nodes = [helper.make_node("DequantizeLinear", names, ["real"], domain=domain, **quantised),
             helper.make_node("MatMul", ["x", "real"], ["y"])]
    model = model_of(nodes, [("x", FLOAT, (3, rows))], [("y", FLOAT)], weights, opset=21)
    x = rng.standard_normal((3, rows)).astype(np.float32)
    np.testing.assert_allclose(run(model, x)[0], wanted(model, x), rtol=1e-4, atol=1e-4)


@EXAMPLES
@hypothesis.given(st.integers(0, 2**32), st.sampled_from(("INT4", "UINT4", "FLOAT8E4M3FN", "FLOAT8E5M2")),
                  st.sampled_from(("", CONTRIBUTED)))  # fmt: skip
def quantised_and_back(seed, name, domain):
    domain = "" if name.startswith("F") else domain  # onnxruntime's own takes no floats
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((5, 8)) * 4).astype(np.float32)
    kind = getattr(TensorProto, name)
    weights = [numpy_helper.from_array(np.float32(0.37).reshape(()), "scale"),
               helper.make_tensor("zero", kind, (), [0 if name.startswith("F") else 3])]  # fmt: skip
    nodes = [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], domain=domain),
             helper.make_node("Transpose", ["q"], ["t"], perm=[1, 0]),
             helper.make_node("DequantizeLinear", ["t", "scale", "zero"], ["y"], domain=domain)]  # fmt: skip
    model = model_of(nodes, [("x", FLOAT, x.shape)], [("y", FLOAT)], weights, opset=21)
    np.testing.assert_allclose(run(model, x)[0], wanted(model, x), rtol=1e-6, atol=1e-6)


def others_refuse_them():
    for name in ("INT4", "FLOAT8E5M2"):
        kind = getattr(TensorProto, name)
        cases = [([helper.make_node("Add", ["x", "x"], ["y"])], [("x", kind, (3,))]),
                 ([helper.make_node("Cast", ["x"], ["q"], to=kind), helper.make_node("Neg", ["q"], ["y"])],
                  [("x", FLOAT, (3,))]),
                 ([helper.make_node("Concat", ["x", "x"], ["y"], axis=0)], [("x", kind, (3,))])]  # fmt: skip
        for nodes, inputs in cases:
            x = np.zeros(3, np.float32 if inputs[0][1] == FLOAT else INTEGERS.get(name, (8, np.uint8))[1])
            try:
                run(model_of(nodes, inputs, [("y", kind)]), x)
            except tiny.Error as error:
                assert f"the element type {name} is not supported" in str(error), str(error)
            else:
                raise AssertionError(f"{nodes[-1].op_type} of {name}: no error")


TESTS = (floats_are_rounded, all_conversions_round_alike, powers_of_two_are_rounded, floats_are_read, integers_wrap, packed_weights,
         quantised_and_back, bits_are_taken, others_refuse_them)  # fmt: skip


if __name__ == "__main__":
    sys.exit(named_tests.run(TESTS))
