"""Models of which input data decides the sizes, in both engines."""

import sys

try:
    import hypothesis
    import numpy as np
    import onnxruntime
    import tiny
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

EXAMPLES = hypothesis.settings(max_examples=15, deadline=None, database=None, derandomize=True)
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
NUMPY = {FLOAT: np.float32, INT64: np.int64, BOOL: np.bool_}
CONTEXTS = [tiny.Context(device=device) for device in ("cpu", "interp")]
onnxruntime.set_default_logger_severity(4)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


MANY = 70  # elements of an input, of which fewer would be read before the run and be part of the program's key


def among_many(*numbers):
    return np.float32([*numbers, *[0] * (MANY - len(numbers))])


def as_integers(given, made):
    return node("Cast", [given], [made], to=INT64)


class Both:
    """A model in both engines; inputs are (name, type, shape), outputs (name, type, rank), constants by name."""

    def __init__(self, nodes, inputs, outputs, declares_outputs=True, **constants):
        graph = helper.make_graph(
            nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs],
            [helper.make_tensor_value_info(name, kind, [f"{name}{k}" for k in range(rank)] if declares_outputs else None)
             for name, kind, rank in outputs],
            [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()
        self.theirs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        self.ours = [tiny.Model.load(context, model) for context in CONTEXTS]
        self.content = model
        self.names = [name for name, *_ in inputs]

    def check(self, *arrays, tolerance=1e-5):
        given = dict(zip(self.names, arrays))
        want = self.theirs.run(None, given)
        for model in self.ours:
            for _ in range(2):  # what one run computes is not the next one's
                got = [np.array(one.numpy()) for one in model.run(list(arrays))]
                for one, other in zip(got, want, strict=True):
                    assert one.dtype == other.dtype and one.shape == other.shape, (one.shape, other.shape)
                    np.testing.assert_allclose(one, other, tolerance, tolerance)
        return want


def graph_of(nodes, *outputs, inputs=()):
    """A branch or a body: outputs and inputs are (name, type, shape)."""
    return helper.make_graph(nodes, "inner", [helper.make_tensor_value_info(*i) for i in inputs],
                             [helper.make_tensor_value_info(*o) for o in outputs])


def number(given, made):
    """One integer, [1], that only the run knows."""
    return [as_integers(given, f"{made}s"), node("ReduceSum", [f"{made}s"], [made], keepdims=1)]


def sent_back(both, arrays, text):
    for model in both.ours:
        try:
            model.run(arrays)
        except tiny.Error as error:
            assert text in str(error), str(error)
        else:
            raise AssertionError("no error")


OPEN = [as_integers("given", "d"), node("ReduceSum", ["d"], ["total"], keepdims=0), node("Range", ["zero", "total", "one"], ["p"]),
        node("Mod", ["p", "many"], ["place"]), node("Gather", ["x", "place"], ["y"])]  # rows of x, as many as `given` says
OPEN_CONSTANTS = {"zero": np.int64(0), "one": np.int64(1), "many": np.int64(MANY)}
