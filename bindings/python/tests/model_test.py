"""Models in Python: what run() takes, what it gives, what it says of wrong inputs."""

import array
import concurrent.futures
import os
import tempfile
import unittest

import tiny

try:
    import numpy
except ImportError:
    numpy = None

FLOAT, INT64 = 1, 7  # of onnx.proto


def field(number, value):
    """A field of a protobuf message: a number, or bytes."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    value = value.encode() if isinstance(value, str) else value
    assert len(value) < 128 * 128
    return bytes([number << 3 | 2, len(value) & 127 | 128, len(value) >> 7]) + value


def port(name, dtype, size):
    shape = field(1, field(1, size))
    return field(1, name) + field(2, field(1, field(1, dtype) + field(2, shape)))


def node(op, inputs, output):
    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, op)


def model_bytes():
    """sum = a + b and product = a * b, of three floats each, and n = -i of two integers."""
    graph = field(1, node("Add", ["a", "b"], "sum")) + field(1, node("Mul", ["a", "b"], "product"))
    graph += field(1, node("Neg", ["i"], "n")) + field(2, "graph")
    for name in ("a", "b"):
        graph += field(11, port(name, FLOAT, 3))
    graph += field(11, port("i", INT64, 2))
    for name in ("sum", "product"):
        graph += field(12, port(name, FLOAT, 3))
    graph += field(12, port("n", INT64, 2))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


class Run(unittest.TestCase):
    def setUp(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            with open(path, "wb") as file:
                file.write(model_bytes())
            self.model = tiny.Model.load(tiny.default_context(), path)

    def test_models_are_loaded_from_their_bytes(self):
        content = bytearray(model_bytes())
        self.model = tiny.Model.load(tiny.default_context(), content)
        content[:] = bytes(len(content))
        self.check(self.model.run([[1.0, 2, 3], [4.0, 5, 6], [7, -8]]))
        loaded = tiny.Model.load_memory(tiny.default_context(), model_bytes(), None)
        self.assertEqual(loaded.output_name(0), "sum")
        with self.assertRaises(tiny.Error):
            tiny.Model.load(tiny.default_context(), b"no model")

    def check(self, outputs):
        self.assertEqual([out.tolist() for out in outputs], [[5, 7, 9], [4, 10, 18], [-7, 8]])

    def test_lists_buffers_and_tensors(self):
        self.check(self.model.run([[1, 2, 3], array.array("f", [4, 5, 6]), tiny.tensor([7, -8])]))

    def test_by_name(self):
        self.check(self.model.run({"i": [7, -8], "b": [4.0, 5.0, 6.0], "a": [1, 2, 3]}))

    def test_from_eight_threads(self):
        def work(number):
            for i in range(30):
                a, b = [number, i, 1], [2, number, i]
                got = [out.tolist() for out in self.model.run([a, b, [i, -number]])]
                want = [[x + y for x, y in zip(a, b)], [x * y for x, y in zip(a, b)], [-i, number]]
                self.assertEqual(got, want)
            return number

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual(list(pool.map(work, range(8))), list(range(8)))

    def test_memory_is_bound_from_eight_threads(self):
        program = self.model.compile()

        def work(number):
            run = tiny.Run.create(program)
            a, b, i = array.array("f", [number, 0, 1]), array.array("f", [1, 2, 3]), array.array("q", [0, number])
            total = array.array("f", [0, 0, 0])
            for index, source in enumerate((a, b, i)):
                run.bind_input(index, source)
            run.bind_output(0, total)
            for step in range(50):
                a[1] = step
                run.execute()
                self.assertEqual(list(total), [number + 1, step + 2, 4])
            return number

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual(list(pool.map(work, range(8))), list(range(8)))

    @unittest.skipUnless(numpy, "NumPy is not here")
    def test_numpy_arrays(self):
        a = numpy.arange(12, dtype="float32").reshape(3, 4)[:, 0] / 4 + 1  # not contiguous
        self.check(self.model.run([a, numpy.array([4, 5, 6], "float32"), numpy.array([7, -8])]))
        with self.assertRaisesRegex(tiny.Error, "float64"):
            self.model.run([numpy.ones(3), numpy.ones(3, "float32"), numpy.array([7, -8])])

    def test_wrong_inputs(self):
        with self.assertRaisesRegex(ValueError, "3 inputs, not 2"):
            self.model.run([[1, 2, 3], [4, 5, 6]])
        with self.assertRaisesRegex(ValueError, "missing: b, i"):
            self.model.run({"a": [1, 2, 3]})
        with self.assertRaisesRegex(tiny.Error, "z.*a, b, i"):
            self.model.run({"z": [1, 2, 3]})
        with self.assertRaisesRegex(tiny.Error, "a.*\\[3\\]"):
            self.model.run([[1, 2], [4, 5, 6], [7, 8]])

    def test_outputs_before_running(self):
        self.assertEqual([self.model.output_dtype(i) for i in range(3)],
                         [tiny.float32, tiny.float32, tiny.int64])
        self.assertEqual(self.model.output_shape(2), (2,))
        self.assertEqual(self.model.output_dim_name(2, 0), "")

    def test_metadata(self):
        self.assertEqual(self.model.metadata("graph_name"), "graph")
        self.assertIsNone(self.model.metadata("author"))
        keys = [self.model.metadata_key(i) for i in range(self.model.metadata_count)]
        self.assertEqual(keys, ["graph_name"])

    def test_applied_to_placeholders(self):
        x = tiny.default_context().input(tiny.float32, [3])
        total, product, negated = self.model.apply([x + 1, [4.0, 5.0, 6.0], [7, -8]])
        self.assertEqual(negated.tolist(), [-7, 8])
        run = tiny.Run.create(tiny.Program.compile([x], [total * 2, product]))
        run.set_input(0, tiny.tensor([0.0, 1.0, 2.0]))
        run.execute()
        self.assertEqual(run.output_tensor(0).tolist(), [10, 14, 18])
        self.assertEqual(run.output_tensor(1).tolist(), [4, 10, 18])

    def test_outputs_outlive_the_model(self):
        outputs = self.model.run([[1, 2, 3], [4, 5, 6], [7, -8]])
        del self.model
        self.check(outputs)


if __name__ == "__main__":
    unittest.main()
