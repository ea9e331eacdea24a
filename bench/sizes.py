"""Run-time sizes: a program for every size beside one of exactly that size, one thread.

Rows of a product with a constant, and the lengths of an encoder, by tiny_model_run: sizes alternate,
as requests of several lengths would, so that the free model never gets a program of its own for one.
"""

import json
import pathlib
import sys
import tempfile
import time

from compiling import Figures
from kernels import environment
from models import VOCABULARY, found
from report import at_least, geometric_mean, json_of

COLUMNS, STEPS = 512, 384
ROWS = (2, 3, 5, 7, 10, 13, 14, 15, 27, 28, 50, 100, 128, 333, 1000)
LENGTHS = (7, 16, 33, 64, 128)
MOST = {"rows": 1000, "lengths": 256}
SECONDS = 0.6  # a size, at the most
LEARNED = 6  # runs after which a size that comes again and again has a program of its own


def product(rows):
    import numpy
    from onnx import TensorProto, helper, numpy_helper

    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    weights = numpy.random.default_rng(1).uniform(-1, 1, (STEPS, COLUMNS)).astype(numpy.float32)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "rows",
                              [value("x", [rows, STEPS])], [value("y", [rows, COLUMNS])],
                              [numpy_helper.from_array(weights, "w")])  # fmt: skip
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


class Subject:
    """What is run: a model with a free size, and models that only ever see one."""

    def __init__(self, path):
        import tiny

        self.path = path
        self.context = tiny.Context(threads=1)

    def model(self, size):
        import onnx
        import tiny

        if self.path:
            return tiny.Model.load(self.context, str(self.path))
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "rows.onnx")
            onnx.save(product(size), str(file))
            return tiny.Model.load(self.context, str(file))

    def inputs(self, size):
        import numpy
        import tiny

        random = numpy.random.default_rng(size)
        data = (random.integers(0, VOCABULARY, (1, size), numpy.int64) if self.path else
                random.uniform(-1, 1, (size, STEPS)).astype(numpy.float32))  # fmt: skip
        return [tiny.from_buffer(data, context=self.context)]


def timed(model, inputs):
    start = time.perf_counter()
    model.run(inputs)
    return time.perf_counter() - start


def measure(path, sizes, most, seconds):
    """{size: [least time of a program of that size, and of the one for all]}"""
    subject = Subject(path)
    free = subject.model("n")
    free.run(subject.inputs(most))
    best = {}
    for size in sizes:
        own = subject.model(size)
        these, others = subject.inputs(size), subject.inputs(size + 1)
        for _ in range(LEARNED):
            own.run(these), free.run(these), free.run(others)
        pairs = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pairs.append((timed(own, these), timed(free, these)))
            free.run(others)
        best[size] = [min(times) for times in zip(*pairs)]
    return best


def run(arguments):
    """The part "sizes" of bench/run: its figures and its table."""
    figures, result = Figures(), {}
    encoder = found(arguments.models).get("transformer", (None,))[0]
    subjects = [("rows", "", ROWS), ("lengths", encoder, LENGTHS)]
    for name, path, sizes in subjects:
        if path is None:
            continue
        print(f"bench: run-time {name}", file=sys.stderr)
        asked = sizes[::3] if arguments.quick else sizes
        seconds = min(arguments.duration, SECONDS)
        command = [sys.executable, "-B", __file__, path, json.dumps(asked), MOST[name], seconds]
        result[f"times of {name}"] = times = json_of(command, environment(1))
        ratios = []
        for size, (own, free) in times.items():
            ratios.append(own / free)
            figures.add(f"run-time {name}: {size}", free * 1e3, "ms",
                        at_least(f"run-time {name}", own / free), own / free)  # fmt: skip
        figures.add(f"run-time {name}: geometric mean", geometric_mean(ratios), "(ratio)")
    return {**result, "figures": figures.rows}, figures.text()


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]),
                             float(sys.argv[4]))))  # fmt: skip
