"""One operator of onnxruntime's own (com.microsoft) as a small model, and what it is to give."""

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

# A value that lies between two of eight bits goes to either where it was summed in another order.
QUANTISED = 2e-2
# Drawn outputs below it are what is left of larger numbers that cancel.
LEAST = 1e-2


def random(seed):
    return np.random.default_rng(seed)


def floats(seed, *shape):
    return random(seed).standard_normal(shape).astype(np.float32)


def integers(seed, kind, *shape):
    limits = np.iinfo(kind)
    return random(seed).integers(limits.min, limits.max + 1, shape).astype(kind)


class Case:
    """One node: inputs by name (None: left out), those of `weights` as initializers. `wanted` are the outputs by
    name of an operator that onnxruntime has no kernel for; `steps` how far integers may be apart, `tolerance` reals,
    as a share of the largest or of `least`."""

    def __init__(self, name, op, inputs, outputs=1, weights=(), tolerance=1e-4, least=1e-30, wanted=None, steps=0,
                 domain="com.microsoft", standard=17, **attributes):  # fmt: skip
        self.name, self.inputs, self.tolerance = name, dict(inputs), tolerance
        self.wanted, self.steps, self.least = wanted, steps, least
        self.weights = sorted(n for n in set(weights) if inputs.get(n) is not None)
        self.standard = standard  # the version of the standard's operators
        names = [n if v is not None else "" for n, v in inputs.items()]
        outputs = outputs if isinstance(outputs, list) else [f"y{i}" for i in range(outputs)]
        self.outputs = [n for n in outputs if n]
        self.node = helper.make_node(op, names, outputs, domain=domain, **attributes)

    def given(self):
        return {n: v for n, v in self.inputs.items() if v is not None and n not in self.weights}

    def model(self, free):
        def port(name, value):
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            shape = [f"{name}_{i}" for i in range(value.ndim)] if free else value.shape
            return helper.make_tensor_value_info(name, kind, shape)

        weights = [numpy_helper.from_array(self.inputs[n], n) for n in self.weights]
        graph = helper.make_graph([self.node], self.name, [port(n, v) for n, v in self.given().items()],
                                  [helper.make_empty_tensor_value_info(n) for n in self.outputs],
                                  weights)  # fmt: skip
        sets = [helper.make_opsetid("", self.standard), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=sets, ir_version=8)


def drawn_case(d, op, inputs, outputs=1, constant=(), **more):
    """A case of which `constant` are initializers, and of the others but the first none, all or some."""
    some = d.number(0, 2)
    first = next(name for name, value in inputs.items() if value is not None and name not in constant)
    weights = [name for name in inputs if name != first and (some == 1 or (some == 2 and d.coin()))]
    return Case(op, op, inputs, outputs, [*constant, *weights], **{"least": LEAST, **more})


def run_by_peer(model, given, outputs=None):
    """Without rewriting the graph."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4  # it prints what it refuses
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(outputs, given)


def standard(op, inputs, **attributes):
    """What the standard's operator of that name makes of the inputs."""
    case = Case(op, op, {f"x{i}": x for i, x in enumerate(inputs)}, domain="", **attributes)
    return run_by_peer(case.model(False), case.given())[0]


def wanted_of(case):
    """The outputs by name, of onnxruntime if it has the operator."""
    if case.wanted is not None:
        return case.wanted
    return dict(zip(case.outputs, run_by_peer(case.model(False), case.given(), case.outputs)))


def difference(case, got, want):
    """How far outputs are apart, as a share of what they may be."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf")
    if want.size == 0:
        return 0.0
    got, want = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(want)
    if not (np.array_equal(finite, np.isfinite(got)) and np.array_equal(got[~finite], want[~finite])):
        return float("inf")
    error = np.abs(got[finite] - want[finite]).max(initial=0)
    if case.steps:
        return error / (case.steps + 0.5)
    return error / max(np.abs(want[finite]).max(initial=0), case.least) / case.tolerance if error else 0.0
