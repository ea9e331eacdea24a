"""The README's session in Python, as it stands there."""

import doctest
import os
import pathlib
import tempfile
import unittest

import numpy
from model_test import field, node, port

README = pathlib.Path(__file__).resolve().parents[3] / "README.md"


def negation():
    """y = -x of five floats, as the bytes of a model."""
    graph = field(1, node("Neg", ["x"], "y")) + field(2, "graph")
    graph += field(11, port("x", 1, 5)) + field(12, port("y", 1, 5))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


class Readme(unittest.TestCase):
    def test_the_session(self):
        text = "".join(line[4:] + "\n" for line in README.read_text().splitlines()
                       if line.startswith("    ") and "PYTHONPATH=" not in line)
        session = text[text.index(">>> import tiny"):]
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "model.onnx").write_bytes(negation())
            before = os.getcwd()
            os.chdir(folder)
            try:
                given = {"numpy_array": numpy.arange(5, dtype=numpy.float32)}
                test = doctest.DocTestParser().get_doctest(session, given, "README", str(README), 0)
                runner = doctest.DocTestRunner(verbose=False)
                told = []
                runner.run(test, out=told.append)
            finally:
                os.chdir(before)
        self.assertGreater(runner.tries, 8)
        self.assertEqual(runner.failures, 0, "".join(told))


if __name__ == "__main__":
    unittest.main()
