"""Complex numbers as what operators move, choose and add, control flow and sequences carry, and models take and give,
against NumPy by way of onnx's reference evaluator; and what has no complex numbers.

    PYTHONPATH=build/release/bindings/python complex_test.py [PATTERN]
"""

import sys

import named_tests

try:
    import numpy as np
    import tiny
    from onnx import TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

KINDS = {np.complex64: TensorProto.COMPLEX64, np.complex128: TensorProto.COMPLEX128}
INT64, FLOAT, BOOL = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL


def numbers(shape, kind=np.complex64, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(kind)


def model_of(nodes, inputs, outputs, weights=(), opset=24):
    """A model of inputs {name: (element type, shape)} and outputs the same, where a type may be a whole TypeProto."""
    ports = [[helper.make_tensor_value_info(name, *of) if isinstance(of, tuple) else helper.make_value_info(name, of)
              for name, of in some.items()] for some in (inputs, outputs)]  # fmt: skip
    graph = helper.make_graph(nodes, "complex", *ports, list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)


def load(model):
    return tiny.Model.load(tiny.default_context(), model.SerializeToString())


def complex_of(pairs):
    """What an output of pairs stands for."""
    pairs = np.array(pairs.numpy())
    kind = np.complex64 if pairs.dtype == np.float32 else np.complex128
    return np.ascontiguousarray(pairs).view(kind)[..., 0]


def run(model, *inputs, which=(0,)):
    """The outputs of these numbers are complex."""
    made = load(model).run(list(inputs))
    return [complex_of(out) if i in which else np.array(out.numpy()) for i, out in enumerate(made)]


def same(got, want):
    assert len(got) == len(want), (len(got), len(want))
    for a, b in zip(got, want):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == np.asarray(b).dtype and a.shape == np.asarray(b).shape, (a.dtype, a.shape, b)


def int64s(*values):
    return np.array(values, np.int64)


# Operator, its other inputs by position, attributes, and how many outputs.  The first input is 3x4x6 unless it is said.
MOVED = [
    ("Transpose", {}, {"perm": [2, 0, 1]}, 1, {}),
    ("Reshape", {1: int64s(-1, 8)}, {}, 1, {}),
    ("Flatten", {}, {"axis": -1}, 1, {}),
    ("Squeeze", {1: int64s(-2)}, {}, 1, {"shape": (3, 1, 5)}),
    ("Unsqueeze", {1: int64s(-1, 0)}, {}, 1, {}),
    ("Slice", {1: int64s(1), 2: int64s(-1), 3: int64s(-1), 4: int64s(2)}, {}, 1, {}),
    ("Concat", {1: numbers((3, 4, 2), seed=1)}, {"axis": -1}, 1, {}),
    ("Split", {1: int64s(1, 3, 2)}, {"axis": -1}, 3, {}),
    ("Gather", {1: int64s(2, -1, 0)}, {"axis": -1}, 1, {}),
    ("GatherElements", {1: np.random.default_rng(2).integers(0, 6, (3, 4, 6))}, {"axis": -1}, 1, {}),
    ("GatherND", {1: int64s(1, 2, 0, 3).reshape(2, 2)}, {}, 1, {}),
    ("Tile", {1: int64s(2, 1, 2)}, {}, 1, {}),
    ("Expand", {1: int64s(2, 3, 4, 6)}, {}, 1, {}),
    ("Pad", {1: int64s(0, 1, 0, 2, 0, 1), 2: numbers((), seed=3)}, {}, 1, {}),
    ("Pad", {1: int64s(1, 2)}, {"mode": "reflect"}, 1, {"shape": (5,)}),
    ("DepthToSpace", {}, {"blocksize": 2}, 1, {"shape": (1, 8, 2, 3)}),
    ("SpaceToDepth", {}, {"blocksize": 2}, 1, {"shape": (1, 2, 4, 6)}),
    ("Trilu", {1: np.array(1, np.int64)}, {"upper": 0}, 1, {}),
    ("Compress", {1: np.array([True, False, True, True])}, {"axis": 1}, 1, {}),
    ("ReverseSequence", {1: int64s(1, 3, 2, 3)}, {}, 1, {}),
    ("ScatterElements", {1: int64s(0, 2, 1, 1).reshape(1, 2, 2), 2: numbers((1, 2, 2), seed=4)}, {}, 1, {}),
    ("ScatterElements", {1: int64s(0, 2, 2, 1).reshape(1, 2, 2), 2: numbers((1, 2, 2), seed=4)}, {"reduction": "add"}, 1, {}),
    ("ScatterND", {1: int64s(0, 2).reshape(2, 1), 2: numbers((2, 4, 6), seed=5)}, {}, 1, {}),
    ("CenterCropPad", {1: int64s(5, 4)}, {"axes": [0, 2]}, 1, {}),
    ("Identity", {}, {}, 1, {}),
]  # fmt: skip


def model_of_row(row, kind):
    operator, others, attributes, count, options = row
    x = numbers(options.get("shape", (3, 4, 6)), kind)
    others = {i: v.astype(kind) if v.dtype.kind == "c" else v for i, v in others.items()}
    names = ["x"] + [f"in{i}" for i in others]
    node = helper.make_node(operator, names, [f"y{i}" for i in range(count)], **attributes)
    weights = [numpy_helper.from_array(np.asarray(v), f"in{i}") for i, v in others.items()]
    return model_of([node], {"x": (KINDS[kind], x.shape)}, {f"y{i}": (KINDS[kind], None) for i in range(count)}, weights), x


def elements_are_moved():
    for kind in KINDS:
        for row in MOVED:
            model, x = model_of_row(row, kind)
            try:
                want = ReferenceEvaluator(model).run(None, {"x": x})
                same(run(model, x, which=range(row[3])), want)
            except Exception as e:
                e.args = (f"{row[0]}: {e}",)
                raise


def a_constant_is_moved_before_any_run():
    c = numbers((2, 3))
    nodes = [helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(c)),
             helper.make_node("Transpose", ["c"], ["t"]), helper.make_node("Gather", ["t", "i"], ["y"])]  # fmt: skip
    weights = [numpy_helper.from_array(c, "unused"), numpy_helper.from_array(int64s(2, 0), "i")]
    same(run(model_of(nodes, {}, {"y": (TensorProto.COMPLEX64, None)}, weights)), [c.T[[2, 0]]])


def elements_are_chosen():
    x, other = numbers((4, 3)), numbers((4, 3), seed=1)
    which = np.random.default_rng(0).integers(0, 2, (4, 3)).astype(bool)
    node = helper.make_node("Where", ["w", "x", "o"], ["y"])
    kind = TensorProto.COMPLEX64
    model = model_of([node], {"w": (BOOL, (4, 3)), "x": (kind, (4, 3)), "o": (kind, ("n", 3))}, {"y": (kind, None)})
    same(run(model, which, x, other), [np.where(which, x, other)])
    one_hot = helper.make_node("OneHot", ["i", "d", "v"], ["y"], axis=0)
    model = model_of([one_hot], {"i": (INT64, (2,)), "v": (kind, (2,))}, {"y": (kind, None)},
                     [numpy_helper.from_array(np.array(3, np.int64), "d")])  # fmt: skip
    v = numbers((2,))
    same(run(model, int64s(2, 0), v), [np.where(np.eye(3, dtype=bool)[:, [2, 0]], v[1], v[0])])


def what_is_linear_is_of_both_parts():
    """Resize by halves: each part is what a tensor of floats would be."""
    x = numbers((1, 1, 3, 3))
    kind = TensorProto.COMPLEX64
    sizes = [numpy_helper.from_array(np.float32([1, 1, 2, 2]), "scales")]
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="linear")
    got = run(model_of([node], {"x": (kind, x.shape)}, {"y": (kind, None)}, sizes, opset=19), x)[0]
    floats = load(model_of([node], {"x": (FLOAT, x.shape)}, {"y": (FLOAT, None)}, sizes, opset=19))
    real, imaginary = (np.array(floats.run([np.ascontiguousarray(part)])[0].numpy()) for part in (x.real, x.imag))
    same([got], [(real + 1j * imaginary).astype(np.complex64)])


def shapes_have_no_pairs():
    x = numbers((3, 4, 6))
    nodes = [helper.make_node("Shape", ["x"], ["s"], start=-2), helper.make_node("Size", ["x"], ["n"]),
             helper.make_node("NonZero", ["x"], ["z"])]  # fmt: skip
    model = model_of(nodes, {"x": (TensorProto.COMPLEX64, ("a", 4, "c"))},
                     {"s": (INT64, None), "n": (INT64, None), "z": (INT64, None)})  # fmt: skip
    x[0, 1] = 0
    x[1, 2] = 1j * x[1, 2].imag
    same(run(model, x, which=()), [int64s(4, 6), np.array(72, np.int64), np.array(np.nonzero(x))])


def bits_are_taken():
    x = numbers((3, 4))
    for to, kind in ((INT64, np.int64), (TensorProto.DOUBLE, np.float64), (TensorProto.UINT64, np.uint64)):
        there = helper.make_node("BitCast", ["x"], ["y"], to=to)
        model = model_of([there], {"x": (TensorProto.COMPLEX64, x.shape)}, {"y": (to, None)}, opset=26)
        same(run(model, x, which=()), [x.view(kind)])
        back = helper.make_node("BitCast", ["x"], ["y"], to=TensorProto.COMPLEX64)
        model = model_of([back], {"x": (to, x.shape)}, {"y": (TensorProto.COMPLEX64, None)}, opset=26)
        same(run(model, x.view(kind)), [x])


def control_flow_carries_them():
    kind = TensorProto.COMPLEX64
    x, other = numbers((3, 2)), numbers((3, 2), seed=1)

    def graph(nodes, name, inputs, outputs):
        return helper.make_graph(nodes, name, *[[helper.make_tensor_value_info(n, *of) for n, of in some.items()]
                                                for some in (inputs, outputs)])  # fmt: skip

    branches = {name: graph([helper.make_node("Identity", [of], ["out"])], name, {}, {"out": (kind, None)})
                for name, of in (("then_branch", "x"), ("else_branch", "o"))}  # fmt: skip
    choose = helper.make_node("If", ["c"], ["y"], **branches)
    model = model_of([choose], {"c": (BOOL, ()), "x": (kind, (3, 2)), "o": (kind, (3, 2))}, {"y": (kind, None)})
    for condition in (True, False):
        same(run(model, np.array(condition), x, other), [x if condition else other])

    rolled = [helper.make_node("Split", ["state"], ["first", "rest"], axis=0, num_outputs=2),
              helper.make_node("Concat", ["rest", "first"], ["next"], axis=0), helper.make_node("Identity", ["c"], ["on"]),
              helper.make_node("Identity", ["next"], ["kept"])]  # fmt: skip
    body = graph(rolled, "body", {"i": (INT64, ()), "c": (BOOL, ()), "state": (kind, (2, 2))},
                 {"on": (BOOL, ()), "next": (kind, (2, 2)), "kept": (kind, (2, 2))})  # fmt: skip
    loop = helper.make_node("Loop", ["n", "", "x"], ["y", "all"], body=body)
    model = model_of([loop], {"n": (INT64, ()), "x": (kind, (2, 2))}, {"y": (kind, None), "all": (kind, None)})
    for rounds in (1, 3, 6):
        states = [np.roll(x[:2], -(i + 1), axis=0) for i in range(rounds)]
        same(run(model, np.array(rounds, np.int64), x[:2], which=(0, 1)), [states[-1], np.array(states)])

    # Steps are the last axis of what is scanned and of what is collected.
    steps = [helper.make_node("Identity", ["step"], ["last"]), helper.make_node("Concat", ["state", "step"], ["both"], axis=0)]
    body = graph(steps, "step", {"state": (kind, (3,)), "step": (kind, (3,))}, {"last": (kind, (3,)), "both": (kind, (6,))})
    scan = helper.make_node("Scan", ["state", "x"], ["y", "all"], body=body, num_scan_inputs=1, scan_input_axes=[-1],
                            scan_output_axes=[-1])  # fmt: skip
    model = model_of([scan], {"state": (kind, (3,)), "x": (kind, (3, 5))}, {"y": (kind, None), "all": (kind, None)})
    state, x = numbers((3,), seed=2), numbers((3, 5))
    before = np.concatenate([state[:, None], x[:, :-1]], axis=1)
    same(run(model, state, x, which=(0, 1)), [x[:, -1], np.concatenate([before, x])])


def sequences_hold_them():
    kind = TensorProto.COMPLEX64
    x = numbers((3, 5))
    parts = helper.make_node("SplitToSequence", ["x", "two"], ["s"], axis=-1)
    more = helper.make_node("SequenceInsert", ["s", "x", "at"], ["t"])
    whole = helper.make_node("ConcatFromSequence", ["t"], ["y"], axis=-1)
    one = helper.make_node("SequenceAt", ["t", "at"], ["z"])
    weights = [numpy_helper.from_array(np.array(2, np.int64), "two"), numpy_helper.from_array(np.array(1, np.int64), "at")]
    of = helper.make_sequence_type_proto(helper.make_tensor_type_proto(kind, None))
    model = model_of([parts, more, whole, one], {"x": (kind, (3, 5))}, {"y": (kind, None), "z": (kind, None)}, weights)
    same(run(model, x, which=(0, 1)), [np.concatenate([x[:, :2], x, x[:, 2:]], axis=1), x])
    # As an input and an output of the model.
    model = model_of([more], {"s": of, "x": (kind, (3, 5))}, {"t": of}, weights[1:])
    got = load(model).run([[x[:, :2], x[:, 2:]], x])[0]
    same([complex_of(one) for one in got], [x[:, :2], x, x[:, 2:]])


def pairs_are_taken_and_said():
    """A model says of what shape the pairs are, takes them as such, and tells what it wanted."""
    kind = TensorProto.COMPLEX64
    model = load(model_of([helper.make_node("Transpose", ["x"], ["y"])], {"x": (kind, ("n", 3))}, {"y": (kind, (3, "n"))}))
    assert model.input_shape(0) == (-1, 3, 2), model.input_shape(0)
    assert model.output_shape(0) == (3, -1, 2), model.output_shape(0)
    assert model.input_dtype(0) == model.output_dtype(0) == tiny.float32
    x = numbers((4, 3))
    pairs = np.stack([x.real, x.imag], axis=-1)
    same([complex_of(model.run([pairs])[0])], [x.T])
    same([complex_of(model.run([x[::-1]])[0])], [x[::-1].T])
    for wrong, why in ((x.real.copy(), "has the shape"), (x.astype(np.complex128), "is of type"), (x[:, :2], "must be 3")):
        try:
            model.run([wrong])
            raise AssertionError(f"{wrong.shape} of {wrong.dtype} was taken")
        except tiny.Error as e:
            assert why in str(e), e


def others_refuse_them():
    kind = TensorProto.COMPLEX64
    for node in (helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("Unique", ["x"], ["y"]),
                 helper.make_node("Cast", ["x"], ["y"], to=FLOAT), helper.make_node("Relu", ["x"], ["y"])):  # fmt: skip
        try:
            load(model_of([node], {"x": (kind, (3,))}, {"y": (kind, None)})).run([numbers(3)])
            raise AssertionError(f"{node.op_type} took complex numbers")
        except tiny.Error as e:
            assert "COMPLEX64" in str(e) and node.op_type in str(e), e
    for node, why in ((helper.make_node("Cast", ["x"], ["y"], to=kind), "COMPLEX64"),
                      (helper.make_node("BitCast", ["x"], ["y"], to=kind), "32 bits")):  # fmt: skip
        try:
            load(model_of([node], {"x": (FLOAT, (3,))}, {"y": (kind, None)}, opset=26)).run([np.float32([1, 2, 3])])
            raise AssertionError(f"{node.op_type} made complex numbers")
        except tiny.Error as e:
            assert why in str(e), e
    most = helper.make_node("ScatterElements", ["x", "i", "x"], ["y"], reduction="max")
    try:
        load(model_of([most], {"x": (kind, (3,)), "i": (INT64, (3,))}, {"y": (kind, None)})).run([numbers(3), int64s(0, 1, 2)])
        raise AssertionError("the greatest of complex numbers")
    except tiny.Error as e:
        assert "max" in str(e), e


TESTS = [elements_are_moved, a_constant_is_moved_before_any_run, elements_are_chosen, what_is_linear_is_of_both_parts,
         shapes_have_no_pairs, bits_are_taken, control_flow_carries_them, sequences_hold_them, pairs_are_taken_and_said,
         others_refuse_them]  # fmt: skip

if __name__ == "__main__":
    sys.exit(named_tests.run(TESTS))
