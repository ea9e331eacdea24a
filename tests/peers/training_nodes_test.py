"""The operator Gradient of ai.onnx.preview.training against PyTorch: models that ask for slopes of what they computed.

    PYTHONPATH=build/release/bindings/python training_nodes_test.py
"""

import sys
import unittest

try:
    import numpy as np
    import tiny
    import torch
    from onnx import TensorProto, helper
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

DOMAIN = "ai.onnx.preview.training"


def run(nodes, given, outputs):
    """The outputs of a model of these nodes, in the inputs' order of `given`."""
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape) for name, value in given.items()]
    wanted = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    sets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(helper.make_graph(nodes, "g", ports, wanted), opset_imports=sets, ir_version=8)
    made = tiny.Model.load(tiny.default_context(), model.SerializeToString()).run(list(given.values()))
    return [np.asarray(tensor) for tensor in made]


def gradient(inputs, outputs, **attributes):
    return helper.make_node("Gradient", inputs, outputs, domain=DOMAIN, name="slopes", **attributes)


def floats(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


class GradientNode(unittest.TestCase):
    def test_slopes_of_a_network(self):
        given = {"x": floats(1, 5, 4), "w": floats(2, 4, 3), "b": floats(3, 3)}
        nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["s"]),
                 helper.make_node("Tanh", ["s"], ["t"]), helper.make_node("ReduceSum", ["t"], ["y"], keepdims=0),
                 gradient(["w", "b"], ["dw", "db"], xs=["w", "b"], y="y")]  # fmt: skip
        y, dw, db = run(nodes, given, ["y", "dw", "db"])
        x, w, b = (torch.tensor(given[n], requires_grad=n != "x") for n in ("x", "w", "b"))
        total = torch.tanh(x @ w + b).sum()
        total.backward()
        for got, want in ((y, total.detach()), (dw, w.grad), (db, b.grad)):
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-5, atol=1e-5)

    def test_slopes_beside_what_is_held(self):
        given = {"x": floats(1, 7), "z": floats(2, 7)}
        nodes = [helper.make_node("Mul", ["x", "x"], ["q"]), helper.make_node("Mul", ["q", "z"], ["y"]),
                 gradient(["x", "z"], ["dx"], xs=["x"], zs=["z"], y="y")]  # fmt: skip
        (dx,) = run(nodes, given, ["dx"])
        np.testing.assert_allclose(dx, 2 * given["x"] * given["z"], rtol=1e-6)

    def test_slopes_of_slopes(self):
        given = {"x": floats(1, 7)}
        nodes = [helper.make_node("Mul", ["x", "x"], ["q"]), helper.make_node("Mul", ["q", "x"], ["y"]),
                 gradient(["x"], ["dx"], xs=["x"], y="y"), gradient(["x"], ["ddx"], xs=["x"], y="dx")]  # fmt: skip
        dx, ddx = run(nodes, given, ["dx", "ddx"])
        np.testing.assert_allclose(dx, 3 * given["x"] ** 2, rtol=1e-5)
        np.testing.assert_allclose(ddx, 6 * given["x"], rtol=1e-5)

    def test_mistakes_are_named(self):
        given = {"x": floats(1, 7)}
        square = helper.make_node("Mul", ["x", "x"], ["y"])
        for attributes, wanted in (({"y": "y"}, "xs"), ({"xs": ["x"], "y": "nobody"}, "nobody"),
                                   ({"xs": ["x", "x"], "y": "y"}, "1 inputs for 2 names")):  # fmt: skip
            with self.assertRaisesRegex(tiny.Error, wanted):
                run([square, gradient(["x"], ["dx"], **attributes)], given, ["dx"])


if __name__ == "__main__":
    unittest.main()
