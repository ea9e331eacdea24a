"""One operator of onnxruntime's own (com.microsoft) as a small model, for contributed_test.py."""

import numpy as np
from onnx import helper, numpy_helper

# A value that lies between two of eight bits goes to either where it was summed in another order.
QUANTISED = 2e-2


def random(seed):
    return np.random.default_rng(seed)


def floats(seed, *shape):
    return random(seed).standard_normal(shape).astype(np.float32)


def integers(seed, kind, *shape):
    limits = np.iinfo(kind)
    return random(seed).integers(limits.min, limits.max + 1, shape).astype(kind)


class Case:
    """One node: inputs by name (None: left out), those of `weights` as initializers. `wanted` are the outputs by
    name of an operator that onnxruntime has no kernel for; `steps` how far integers may be apart."""

    def __init__(self, name, op, inputs, outputs=1, weights=(), tolerance=1e-4, wanted=None, steps=0,
                 domain="com.microsoft", standard=17, **attributes):  # fmt: skip
        self.name, self.inputs, self.tolerance = name, dict(inputs), tolerance
        self.wanted, self.steps = wanted, steps
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
