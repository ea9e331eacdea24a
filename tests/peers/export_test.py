"""Graphs that are written as models: onnx's checker takes them, onnxruntime computes what the engine does, and the
engine reads them back.

    export_test.py [--models DIR] [NAME..]

Operations by themselves, of several dtypes and with free sizes; programs with recurrences; onnx's own cases of
operators; and the networks of make_models.py that are in DIR (default build/models; those of NAME.. alone), which are
imported, written, and imported again.
"""

import argparse
import pathlib
import re
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnx
    import onnxruntime

    import tiny
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
# By dtype, in parts of the greatest value; sums are in another order.
TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "float16": 2e-3}
# Of eight bits: a sum in another order rounds a value to its neighbour now and then.
NETWORK_TOLERANCE = {"resnet_int8": 1e-2}
CONTEXT = tiny.default_context()


def session(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])


def error(got, want):
    """The greatest difference, in parts of the greatest value."""
    if not got.size or got.dtype.kind in "iub":
        return float(np.any(got != want))
    got, want = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True):
        return np.inf
    greatest = np.abs(want[finite]).max(initial=0)
    return float(np.abs(got[finite] - want[finite]).max(initial=0) / (greatest or 1))


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = folder.name + "/model.onnx"

    def operators(self):
        return {node.op_type for node in onnx.load(self.path).graph.node} - {"Identity"}

    def check(self, make, *arrays, dims=None, wants=()):
        """`make` of placeholders like the arrays, written, run by both, against `make` of the arrays."""
        arrays = [np.asarray(a) for a in arrays]
        inputs = [CONTEXT.input(a.dtype.name, d) for a, d in zip(arrays, dims or [a.shape for a in arrays])]
        tiny.export_onnx(inputs, [make(*inputs)], self.path)
        onnx.checker.check_model(self.path, full_check=True)
        want = make(*(tiny.tensor(a) for a in arrays)).numpy()
        names = [tensor.name for tensor in session(self.path).get_inputs()]
        theirs = session(self.path).run(None, dict(zip(names, arrays)))[0]
        ours = tiny.Model.load(CONTEXT, self.path).run(arrays)[0].numpy()
        tolerance = TOLERANCE.get(want.dtype.name, 0)
        for got in (theirs, ours):
            self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype))
            self.assertLessEqual(error(got, want), tolerance, f"{got}\n{want}")
        self.assertLessEqual(set(wants), self.operators())


def floats(*shape, dtype="float32"):
    return np.random.default_rng(3).normal(size=shape).astype(dtype)


class Operations(Case):
    def test_functions_of_one_element(self):
        x = np.array([-3, -1.5, -0.5, -0.0, 0, 0.5, 1, 2.5, 40], np.float32)
        for name in ("neg abs sqrt floor ceil trunc round exp log sin cos tanh erf reciprocal rsqrt sigmoid relu sign "
                     "square silu softplus expm1 log1p is_nan").split():
            with self.subTest(name):
                self.check(lambda t, name=name: getattr(t, name)(), x)

    def test_functions_of_two(self):
        a, b = np.array([[-7], [7], [3]], np.int32), np.array([[2, -2, 5, 31]], np.int32)
        for name in "add sub mul floor_div floor_mod trunc_div trunc_mod max min and_ or_ xor".split():
            for dtype in ("int32", "int64"):
                with self.subTest(name, dtype=dtype):
                    self.check(lambda s, t, name=name: getattr(s, name)(t), a.astype(dtype), b.astype(dtype))
        for name in "add sub mul div pow max min lt le gt ge eq ne".split():
            for dtype in ("float32", "float64"):
                with self.subTest(name, dtype=dtype):
                    self.check(lambda s, t, name=name: getattr(s, name)(t), np.abs(floats(3, 1, dtype=dtype)),
                               np.concatenate([np.abs(floats(3, 1, dtype=dtype)), [[2]] * 3], 1).astype(dtype))
        for dtype in ("uint32", "int32", "int64"):
            self.check(lambda s, t: s.shl(t), np.array([1, 5, 7], dtype), np.array([0, 3, 70], dtype))
            self.check(lambda s, t: s.shr(t), np.array([1 << 20, 5, 7], dtype), np.array([3, 1, 70], dtype))
        self.check(lambda s: s.shr(tiny.tensor([1, 31, 40], dtype="int32")), np.array([-9, -9, -9], np.int32))

    def test_reductions(self):
        for name in "sum prod reduce_max reduce_min mean logsumexp".split():
            for axes, keepdims in (([1], True), ([0, 2], False), (None, False)):
                with self.subTest(name, axes=axes):
                    self.check(lambda t, name=name: getattr(t, name)(axes=axes, keepdims=keepdims), floats(3, 4, 5))
        for name in ("any", "all"):
            self.check(lambda t, name=name: getattr(t, name)(axes=[1]), floats(4, 3) > 0)

    def test_movement(self):
        x = floats(4, 6, 5)
        for make in (lambda t: t.reshape([8, 15]), lambda t: t.permute([2, 0, 1]), lambda t: t.flip([0, 2]),
                     lambda t: t.pad([1, 0, 2], [0, 3, -1], 0.5), lambda t: t.slice([3, 0, 1], [0, 6, 5], [-1, 2, 2]),
                     lambda t: t.expand([2, 4, 6, 5]), lambda t: t.tile([2, 1, 3]),
                     lambda t: t.as_strided([3, 2, 4], [7, 40, 1], 5), lambda t: t[1:3, -1]):
            self.check(make, x)

    def test_places(self):
        x, index = floats(7, 5), np.array([[3, -1], [0, 6]], np.int64)
        self.check(lambda t, i: t.gather(i, 0), x, index, wants=["Gather"])
        self.check(lambda t, i: tiny.op("ScatterElements", t, i, i.cast("float32"), axis=0, reduction="add"), x, index)
        self.check(lambda t: t.argmax(1), x)
        self.check(lambda t: t.cumsum(0), x)
        self.check(lambda t: tiny.op("TopK", t, [3], axis=1, outputs=2)[1], x, wants=["TopK"])

    def test_larger_operators(self):
        x, w, b = floats(2, 4, 9, 9), floats(6, 2, 3, 3), floats(6)
        weights = [tiny.tensor(w), tiny.tensor(b)]
        self.check(lambda t: t.conv(*weights, padding=([1, 0], [2, 1]), groups=2), x, wants=["Conv"])
        self.check(lambda t: t.conv(*weights, strides=[2, 1], padding=([1, 0], [2, 1]), groups=2), x, wants=["Conv"])
        self.check(lambda t: t.conv(tiny.tensor(floats(3, 4, 1, 1))), x, wants=["Conv"])
        self.check(lambda t: t.conv_transpose(tiny.tensor(floats(4, 3, 3, 3)), strides=[2, 2]), x)
        self.check(lambda t: t.max_pool([3, 3], strides=[2, 2], padding=([1, 1], [1, 1])), x, wants=["MaxPool"])
        self.check(lambda t: t.avg_pool([3, 3], strides=[2, 2], padding=([1, 1], [1, 1])), x, wants=["AveragePool"])
        s = floats(3, 8, 16)
        scale, bias = tiny.tensor(floats(16)), tiny.tensor(floats(16) + 1)
        self.check(lambda t: t.layer_norm(scale, bias, -1, 1e-5), s, wants=["LayerNormalization"])
        self.check(lambda t: t.softmax(1).log_softmax(2), s, wants=["Softmax", "LogSoftmax"])
        self.check(lambda t: t.matmul(tiny.tensor(floats(16, 5))), s, wants=["MatMul"])
        weight, bias = tiny.tensor(floats(5, 16)), tiny.tensor(floats(5))
        self.check(lambda t: t.matmul(weight.permute([1, 0])) + bias, floats(3, 16), wants=["Gemm"])
        self.check(lambda t: t.gelu() + t.leaky_relu(0.1) + t.elu(1.0), s, wants=["Gelu", "LeakyRelu"])

    def test_what_eight_bits_do(self):
        for dtype in ("int8", "uint8", "int16"):
            a, b = np.array([100, 50, 3, 7], dtype), np.array([99, 5, 2, 0], dtype)
            self.check(lambda s, t: (s + t).max(t) * s - t, a, b)
            self.check(lambda s, t: s.lt(t), a, b)

    def test_free_sizes(self):
        rows = tiny.Variable.create(CONTEXT, "rows", 2, 64)
        columns = tiny.Variable.create(CONTEXT, "columns", 2, 64)
        dims = [rows.dim, columns.dim]
        for make in (lambda t: t.softmax(-1), lambda t: t.matmul(t.permute([1, 0])), lambda t: t.mean(axes=[0]),
                     lambda t: t.reshape([-1]), lambda t: t.slice([1, 0], [t.shape[0], t.shape[1] - 1]),
                     lambda t: t.pad([1, 0], [0, 2], 1.0), lambda t: t + t.argmax(0).cast("float32")):
            tensor = CONTEXT.input("float32", dims)
            tiny.export_onnx([tensor], [make(tensor)], self.path)
            onnx.checker.check_model(self.path, full_check=True)
            peer, ours = session(self.path), tiny.Model.load(CONTEXT, self.path)
            for shape in ((4, 6), (9, 3)):
                x = floats(*shape)
                want = make(tiny.tensor(x)).numpy()
                self.assertLessEqual(error(peer.run(None, {"input0": x})[0], want), 2e-5)
                self.assertLessEqual(error(ours.run([x])[0].numpy(), want), 2e-5)

    def test_recurrences(self):
        w, r, b = floats(2, 12, 5), floats(2, 12, 3), floats(2, 24)

        def both_ways(t):
            return tiny.op("LSTM", t, w, r, b, hidden_size=3, direction="bidirectional", outputs=2)[0]

        self.check(both_ways, floats(7, 2, 5), wants=["Scan"])


class Cases(Case):
    """onnx's own cases for its operators, as many as the engine runs; inputs that may decide shapes are constants."""

    LEAST = 1300  # that are compared
    REFUSED = re.compile("decides a|depends on|data decide|Bitcast of|elements of float8|no operator of ONNX")

    def numbers(self, folder):
        def load(path):
            return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))
        count = len(list(folder.glob("input_*.pb")))
        return [load(folder / f"input_{i}.pb") for i in range(count)]

    def one(self, folder):
        """False where the engine does not run the case, or no model of it can be written."""
        model = tiny.Model.load(CONTEXT, str(folder / "model.onnx"))
        try:
            arrays = self.numbers(folder / "test_data_set_0")
            outputs = model.run(arrays)
            if any(output.dtype == tiny.bfloat16 for output in outputs) or any(a.dtype.isbuiltin != 1 for a in arrays):
                return False  # onnxruntime takes from NumPy, and gives it, what NumPy has itself
            if any(a.dtype.kind not in "biuf" for a in arrays):
                return False  # texts are no tensors of a graph
            wanted = [output.numpy() for output in outputs]
            if any(not np.array_equal(a, b.numpy(), equal_nan=a.dtype.kind == "f")
                   for a, b in zip(wanted, model.run(arrays), strict=True)):  # fmt: skip
                return False  # random numbers
        except Exception:  # noqa: BLE001  types that NumPy has not, files of sequences
            return False
        given, placeholders, feeds = [], [], {}
        for i, array in enumerate(arrays):
            if array.dtype.kind in "iub" and array.ndim <= 1 and array.size <= 64:
                given.append(tiny.tensor(array))
                continue
            placeholders.append(CONTEXT.input(array.dtype.name, list(array.shape)))
            placeholders[-1].set_name(f"x{i}")
            given.append(placeholders[-1])
            feeds[f"x{i}"] = array
        try:
            tiny.export_onnx(placeholders, model.apply(given), self.path)
        except tiny.Error as refused:
            self.assertRegex(str(refused), self.REFUSED)
            return False
        onnx.checker.check_model(self.path, full_check=True)
        again = tiny.Model.load(CONTEXT, self.path)
        ours = [output.numpy() for output in again.run(list(feeds.values()))]
        for got in (ours, session(self.path).run(None, feeds)):
            for a, b in zip(got, wanted, strict=True):
                self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype))
                self.assertLessEqual(error(a, b), 1e-3 if b.dtype == np.float16 else 1e-4)
        return True

    def test_every_operator(self):
        compared = 0
        root = pathlib.Path(onnx.__file__).parent / "backend/test/data/node"
        for folder in sorted(root.iterdir()):
            if (folder / "model.onnx").exists():
                with self.subTest(folder.name):
                    try:
                        compared += self.one(folder)
                    except tiny.Error as refused:  # loading: an operator that is not supported
                        self.assertRegex(refused.name, "UNSUPPORTED|INVALID_MODEL")
        print(f"{compared} cases", flush=True)
        self.assertGreaterEqual(compared, self.LEAST)


class Networks(unittest.TestCase):
    """One test for each folder with a model.onnx and test data."""


def network_test(folder):
    def test(self):
        model = tiny.Model.load(CONTEXT, str(folder / "model.onnx"))
        load = lambda path: onnx.numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))  # noqa: E731
        data = folder / "test_data_set_0"
        inputs = [load(data / f"input_{i}.pb") for i in range(model.input_count)]
        with tempfile.TemporaryDirectory() as out:
            path = out + "/again.onnx"
            model.export(path)
            onnx.checker.check_model(path, full_check=True)
            names = [model.input_name(i) for i in range(model.input_count)]
            theirs = session(path).run(None, dict(zip(names, inputs)))
            again = tiny.Model.load(CONTEXT, path).run(inputs)
            for i, want in enumerate(model.run(inputs)):
                want = want.numpy()
                tolerance = NETWORK_TOLERANCE.get(folder.name, TOLERANCE.get(want.dtype.name, 0))
                self.assertLessEqual(error(theirs[i], want), tolerance)
                self.assertLessEqual(error(again[i].numpy(), want), TOLERANCE.get(want.dtype.name, 0))
    return test


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=pathlib.Path, default=HERE.parents[1] / "build/models")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    for model in sorted(arguments.models.glob("*/model.onnx")):
        if not arguments.names or model.parent.name in arguments.names:
            setattr(Networks, f"test_{model.parent.name}", network_test(model.parent))
    unittest.main(argv=sys.argv[:1])


if __name__ == "__main__":
    main()
