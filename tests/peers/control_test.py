"""Random control flow against onnxruntime: branches and loops whose conditions and counts the run computes, in
each other, beside recurrences and work that they share memory with.

    TINY_CLI=build/release/tools/tiny control_test.py [--graphs N] [--first SEED]

Each graph runs with several inputs, on machine code (one thread and two) and in the interpreter, under TINY_SPEC=1,
with fixed sizes and with a free one.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
TINY = os.environ.get("TINY_CLI", str(HERE.parents[1] / "build/release/tools/tiny"))
ROWS, WIDTH = 6, 16
INPUTS, DEPTH = 3, 2
TOLERANCE = 1e-4
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Graph:
    """Nodes over values of one shape, [rows, WIDTH], within -1 and 1; `outer` are those that it sees besides."""

    def __init__(self, maker, outer=(), in_step=False):
        self.maker, self.rng, self.nodes, self.values = maker, maker.rng, [], list(outer)
        self.in_step = in_step

    def op(self, kind, inputs, count=1, **attributes):
        outputs = [self.maker.name() for _ in range(count)]
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=outputs[0], **attributes))
        return outputs[0] if count == 1 else outputs

    def pick(self):
        # The latest ones mostly.
        near = min(len(self.values), 1 + int(self.rng.geometric(0.4)))
        return self.values[-near]

    def grow(self, steps, depth):
        for _ in range(steps):
            kinds = [self.unary, self.binary, self.product, self.softmax]
            if depth < DEPTH:
                kinds += [self.branch, self.branch, self.scan]
                # A loop that the run counts stands in no other.
                kinds += [] if self.in_step else [self.loop, self.loop]
            self.values.append(kinds[self.rng.integers(len(kinds))](depth))

    def unary(self, _):
        return self.op(str(self.rng.choice(["Tanh", "Sin", "Neg", "Sigmoid"])), [self.pick()])

    def binary(self, _):
        kind = str(self.rng.choice(["Add", "Sub", "Mul", "Max"]))
        return self.op("Tanh", [self.op(kind, [self.pick(), self.pick()])])

    def product(self, _):
        weights = self.rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 2
        return self.op("Tanh", [self.op("MatMul", [self.pick(), self.maker.constant(weights)])])

    def softmax(self, _):
        x = self.op("Mul", [self.pick(), self.maker.constant(np.float32(4))])
        return self.op("Softmax", [x], axis=int(self.rng.integers(2)))

    def positives(self):
        """How many elements of a value are above some number."""
        limit = self.maker.constant(np.float32(self.rng.uniform(-0.5, 0.5)))
        above = self.op("Cast", [self.op("Greater", [self.pick(), limit])], to=INT64)
        return self.op("ReduceSum", [above], keepdims=0)

    def condition(self):
        two = self.maker.constant(np.int64(2))
        return self.op("Cast", [self.op("Mod", [self.positives(), two])], to=BOOL)

    def inner(self, depth, outer, in_step=False):
        graph = Graph(self.maker, outer, in_step)
        graph.grow(1 + int(self.rng.integers(3)), depth + 1)
        return graph

    def finished(self, inputs, outputs):
        return helper.make_graph(self.nodes, self.maker.name(), inputs,
                                 [helper.make_tensor_value_info(n, kind, None) for n, kind in outputs])  # fmt: skip

    def branch(self, depth):
        condition = self.condition()
        count = 1 + int(self.rng.integers(2))
        parts = {}
        for name in ("then_branch", "else_branch"):
            graph = self.inner(depth, self.values, self.in_step)
            results = [graph.op("Identity", [graph.pick()]) if self.rng.random() < 0.2 else graph.values[-1]]
            while len(results) < count:
                results.append(graph.op("Neg", [graph.pick()]))
            if results[0] in self.values:
                results[0] = graph.op("Identity", [results[0]])
            parts[name] = graph.finished([], [(r, FLOAT) for r in results])
        made = self.op("If", [condition], count, **parts)
        return made if count == 1 else self.op("Sub", made)

    def loop(self, depth):
        counted, asks = self.rng.random() < 0.7, self.rng.random() < 0.6
        counted = counted or not asks
        states = 1 + int(self.rng.integers(2))
        names = [self.maker.name() for _ in range(states)]
        body = self.inner(depth, self.values + names, True)
        number, before = self.maker.name(), self.maker.name()
        results = [body.op("Tanh", [body.op("Add", [body.values[-1 - i], n])]) for i, n in enumerate(names)]
        go = body.op("Identity", [before])
        if asks:
            most = body.op("Less", [number, self.maker.constant(np.int64(self.rng.integers(0, 6)))])
            go = body.op("And", [most, body.condition()]) if self.rng.random() < 0.5 else most
        ports = [helper.make_tensor_value_info(number, INT64, []),
                 helper.make_tensor_value_info(before, BOOL, [])]  # fmt: skip
        ports += [helper.make_tensor_value_info(n, FLOAT, None) for n in names]
        graph = body.finished(ports, [(go, BOOL)] + [(r, FLOAT) for r in results])
        count = self.op("Mod", [self.positives(), self.maker.constant(np.int64(5))]) if counted else ""
        first = self.condition() if self.rng.random() < 0.4 else ""
        if not counted and not first:
            first = self.maker.constant(np.bool_(True))
        made = self.op("Loop", [count, first] + [self.pick() for _ in names], states, body=graph)
        return made if states == 1 else self.op("Tanh", [self.op("Sub", made)])

    def scan(self, depth):
        """A recurrence along the rows, whose body sees what is around."""
        weights = self.maker.constant(self.rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 2)
        state, row = self.maker.name(), self.maker.name()
        body = Graph(self.maker)
        next_state = body.op("Tanh", [body.op("Add", [row, body.op("MatMul", [state, weights])])])
        graph = body.finished([helper.make_tensor_value_info(n, FLOAT, [WIDTH]) for n in (state, row)],
                              [(next_state, FLOAT), (body.op("Identity", [next_state]), FLOAT)])  # fmt: skip
        first = self.op("ReduceMax", [self.pick()], axes=[0], keepdims=0)
        return self.op("Scan", [first, self.pick()], 2, body=graph, num_scan_inputs=1)[1]


class Maker:
    def __init__(self, seed):
        self.rng, self.count, self.weights = np.random.default_rng(seed), 0, []

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def constant(self, value):
        self.weights.append(numpy_helper.from_array(np.asarray(value), self.name()))
        return self.weights[-1].name

    def model(self, rows):
        graph = Graph(self, ["x", "y"])
        graph.grow(8, 0)
        outputs = [graph.op("Identity", [v]) for v in dict.fromkeys(graph.values[-3:] + graph.values[2:4])]
        ports = [helper.make_tensor_value_info(n, FLOAT, [rows, WIDTH]) for n in ("x", "y")]
        made = helper.make_graph(graph.nodes, "control", ports,
                                 [helper.make_empty_tensor_value_info(n) for n in outputs], self.weights)  # fmt: skip
        return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), outputs


def check(seed, folder):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    model, outputs = Maker(seed).model(ROWS)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])  # fmt: skip
    paths = {"fixed": folder / "fixed.onnx", "free": folder / "free.onnx"}
    paths["fixed"].write_bytes(model.SerializeToString())
    paths["free"].write_bytes(Maker(seed).model("N")[0].SerializeToString())
    for number in range(INPUTS):
        rng = np.random.default_rng((seed, number))
        given = {n: rng.uniform(-1, 1, (ROWS, WIDTH)).astype(np.float32) for n in ("x", "y")}
        wanted = session.run(outputs, given)
        np.savez(folder / "inputs.npz", **given)
        for sizes, device, threads in (("fixed", "cpu", 1), ("fixed", "cpu", 2), ("fixed", "interp", 1),
                                       ("free", "cpu", 2)):  # fmt: skip
            where = f"graph {seed}, input {number}, {sizes} {device} {threads}"
            done = subprocess.run(
                [TINY, "run", paths[sizes], "--input", folder / "inputs.npz", "--device", device, "--save",
                 folder / "outputs.npz", "--print", "none", "-q"], capture_output=True, text=True,
                env=os.environ | {"TINY_THREADS": str(threads), "TINY_SPEC": "1"})  # fmt: skip
            if done.returncode != 0:
                yield f"{where}: exit status {done.returncode}: {done.stdout}{done.stderr}"
                continue
            with np.load(folder / "outputs.npz") as got:
                for name, want in zip(outputs, wanted):
                    error = np.abs(got[name] - want).max()
                    if got[name].shape != want.shape or not error <= TOLERANCE:
                        yield f"{where}: {name} of {got[name].shape} has an error of {error:.1e}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=12)
    parser.add_argument("--first", type=int, default=1)
    arguments = parser.parse_args()
    failures = []
    for seed in range(arguments.first, arguments.first + arguments.graphs):
        with tempfile.TemporaryDirectory() as folder:
            failures += check(seed, pathlib.Path(folder))
    print(*failures, f"{arguments.graphs} graphs, {len(failures)} failures", sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
