"""What the tests of the command line share: small models, and running `tiny`."""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

try:
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

TINY = os.environ.get("TINY_CLI", "tiny")
FLOAT = TensorProto.FLOAT
HEAD = {"schema", "command", "ok", "tiny", "status"}


def save_model(path, nodes, inputs, outputs, opset=13, domains=(), initializers=()):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(initializers))
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8, producer_name="tests")
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    return path


def port(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def save_pb(path, array, name=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(numpy_helper.from_array(numpy.asarray(array), name).SerializeToString())


def png(path, pixels):
    """A PNG of an array [height, width] or [height, width, 3]."""
    pixels = numpy.asarray(pixels, "uint8")
    height, width = pixels.shape[:2]

    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    return path


class CliTest(unittest.TestCase):
    """A temporary folder, and models in it that every test may use."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def tiny(self, *arguments, code=0, cwd=None, timeout=120):
        """Runs `tiny`; the exit code must be `code`."""
        self.done = subprocess.run([TINY, *map(str, arguments)], capture_output=True, text=True,
                                   cwd=cwd or self.folder, timeout=timeout)
        self.assertEqual(self.done.returncode, code,
                         f"{arguments}\n{self.done.stdout}\n{self.done.stderr}")
        return self.done.stdout

    def json(self, *arguments, code=0, **options):
        """The one object that `tiny .. --json` prints, its common keys checked."""
        text = self.tiny(*arguments, "--json", code=code, **options)
        self.assertEqual(text.count("\n"), 1, text)
        result = json.loads(text, parse_constant=self.fail)
        self.check_head(result, code == 0)
        return result

    def check_head(self, result, ok):
        self.assertLessEqual(HEAD, result.keys())
        self.assertEqual(result["schema"], 1)
        self.assertIs(result["ok"], ok)
        self.assertRegex(result["tiny"], r"^\d+\.\d+\.\d+$")
        self.assertEqual(result["status"] == "OK", ok)
        self.assertEqual("error" in result, not ok)
        if not ok:
            self.assertEqual(result["error"].keys(), {"status", "message", "call", "node", "file"})
            self.assertEqual(result["error"]["status"], result["status"])
            self.assertTrue(result["error"]["message"])

    def npy(self, name, values, dtype="float32"):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        numpy.save(path, numpy.asarray(values, dtype))
        return path

    def arithmetic(self, name="arithmetic.onnx"):
        """sum = a + b, product = a * b, both [N,3]."""
        return save_model(self.folder / name, [helper.make_node("Add", ["a", "b"], ["sum"]),
                                               helper.make_node("Mul", ["a", "b"], ["product"])],
                          [port("a", ["N", 3]), port("b", ["N", 3])],
                          [port("sum", ["N", 3]), port("product", ["N", 3])])

    def negation(self, shape=(2, 3), dtype=FLOAT, source="x", name="negation.onnx"):
        """y = -x."""
        return save_model(self.folder / name, [helper.make_node("Neg", [source], ["y"])],
                          [port(source, list(shape), dtype)], [port("y", list(shape), dtype)])

    def reshaped(self, name="reshaped.onnx"):
        """y = -x in the shape that the other input holds."""
        return save_model(self.folder / name, [helper.make_node("Reshape", ["x", "shape"], ["z"]),
                                               helper.make_node("Neg", ["z"], ["y"])],
                          [port("x", [6]), port("shape", [2], TensorProto.INT64)],
                          [port("y", [None, None])])

    def summed(self, name="summed.onnx"):
        """y = -x summed along the axis that the other input holds, which decides its rank."""
        return save_model(self.folder / name, [helper.make_node("ReduceSum", ["x", "axes"], ["z"], keepdims=0),
                                               helper.make_node("Neg", ["z"], ["y"])],
                          [port("x", [2, 3]), port("axes", [1], TensorProto.INT64)],
                          [port("y", [None])])

    def chosen(self, name="chosen.onnx"):
        """x where it sums up to more than 0, else its sum, of another rank."""
        x = helper.make_graph([helper.make_node("Relu", ["x"], ["whole"])], "then", [], [port("whole", None)])
        total = helper.make_graph([helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0)], "else", [], [port("total", None)])
        nodes = [helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0), helper.make_node("Greater", ["sum", "none"], ["is"]),
                 helper.make_node("If", ["is"], ["y"], then_branch=x, else_branch=total)]
        return save_model(self.folder / name, nodes, [port("x", [2, 2])], [port("y", None)],
                          initializers=[numpy_helper.from_array(numpy.float32(0), "none")])

    def strange(self, name="strange.onnx"):
        """An operator that nobody knows."""
        return save_model(self.folder / name,
                          [helper.make_node("Strange", ["x"], ["y"], domain="com.example")],
                          [port("x", [2])], [port("y", [2])], domains=["com.example"])

    def case(self, name, wrong=False, category="node"):
        """A case of a suite with two data sets; the second is wrong if asked for."""
        folder = self.folder / category / name
        self.negation([2], name=folder / "model.onnx")
        for number in (0, 1):
            x = numpy.array([1, number], "float32")
            save_pb(folder / f"test_data_set_{number}" / "input_0.pb", x)
            save_pb(folder / f"test_data_set_{number}" / "output_0.pb",
                    x if wrong and number else -x)
