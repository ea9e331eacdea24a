"""Programs as C: compiled by gcc and by clang, with vectors and without, they give the engine's bits.

    export_c_test.py [--models DIR [NAME..]]

Without arguments small programs of all kinds; with a folder its networks.
"""

import concurrent.futures
import pathlib
import shutil
import sys
import tempfile
import unittest

try:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    import tiny
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}")
    sys.exit(77)

from exported import Exported, Threads, run_elsewhere

# How a unit is compiled, each with and without vectors in the course of the tests.
COMPILERS = (("gcc", "-O1", "-march=native"), ("clang-19", "-O1", "-march=native"),
             ("gcc", "-O0", "-DTINY_SCALAR"), ("clang-19", "-O1", "-DTINY_SCALAR"))


FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def same(got, want):
    return got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.context = tiny.Context(cache=0, threads=1)

    def export(self, inputs, outputs, name="unit"):
        program = tiny.Program.compile(inputs, outputs)
        program.export_c(self.folder, name)
        return program

    def check(self, make, *arrays, compilers=COMPILERS, threads=None):
        """The same outputs of `make` of placeholders by the engine and by each compiler."""
        arrays = [np.asarray(a) for a in arrays]
        inputs = [self.context.input(a.dtype.name, a.shape) for a in arrays]
        outputs = make(*inputs)
        run = tiny.Run.create(self.export(inputs, outputs))
        for i, array in enumerate(arrays):
            run.set_input(i, tiny.tensor(array, context=self.context))
        run.execute()
        for compiler in compilers:
            with self.subTest(compiler=compiler):
                unit = Exported(self.folder, "unit", *compiler)
                code, got = unit.call({f"input{i}": a for i, a in enumerate(arrays)}, threads=threads)
                self.assertEqual(code, 0)
                for i in range(len(outputs)):
                    want = run.output_tensor(i).numpy()
                    array = got[f"output{i}"].view(want.dtype) if want.itemsize == got[f"output{i}"].itemsize else None
                    self.assertTrue(same(array, want), f"output {i}: {array} is not {want}")


class Programs(Case):
    def test_a_network(self):
        rng = np.random.default_rng(1)
        w, v = (tiny.tensor(rng.standard_normal(s).astype("float32"), context=self.context) for s in ((33, 50), (50, 7)))
        self.check(lambda x: [((x @ w).relu() @ v).softmax(1), (x @ w).gelu(), (x @ w).tanh().reduce_max([1])],
                   rng.standard_normal((9, 33)).astype("float32"))

    def test_types(self):
        rng = np.random.default_rng(2)
        small = rng.integers(-100, 100, (5, 21))
        for dtype in ("int8", "uint8", "int16", "int32", "int64", "float16", "float64"):
            with self.subTest(dtype):
                self.check(lambda x: [x * x + x, (x > 3).where(x, -x) if dtype != "uint8" else x, x.sum([1]),
                                      x.cast(tiny.float32) * 1.5, x > 2],
                           small.astype(dtype), compilers=COMPILERS[:3:2])

    def test_threads_and_instances(self):
        rng = np.random.default_rng(3)
        a, b = (rng.standard_normal((300, 300)).astype("float32") for _ in range(2))
        self.context = tiny.Context(cache=0, threads=2)  # for one alone kernels are not cut into pieces
        threads = Threads.of(3)
        self.check(lambda x, y: [x @ y, (x + y).exp()], a, b, compilers=COMPILERS[:1], threads=threads)
        self.assertGreater(threads.calls, 0)
        unit = Exported(self.folder, "unit", *COMPILERS[0])
        pairs = [{"input0": a * i, "input1": b} for i in range(1, 5)]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:  # at the same time, each with its own memory
            for inputs, (code, got) in zip(pairs, pool.map(unit.call, pairs)):
                self.assertEqual(code, 0)
                np.testing.assert_allclose(got["output0"], inputs["input0"] @ b, rtol=1e-3, atol=1e-2)

    def test_sizes_that_each_run_chooses(self):
        n = tiny.Variable.create(self.context, "n", 1, 40)
        rng = np.random.default_rng(4)
        w = tiny.tensor(rng.standard_normal((12, 20)).astype("float32"), context=self.context)
        x = self.context.input(tiny.float32, [n, 12])
        hidden = (x @ w).relu()
        outputs = [hidden.softmax(1), hidden.sum([0]), (hidden @ hidden.permute([1, 0])).exp()]
        run = tiny.Run.create(self.export([x], outputs))
        for compiler in COMPILERS[:3:2]:
            unit = Exported(self.folder, "unit", *compiler)
            for size in (1, 7, 16, 40):
                array = rng.standard_normal((size, 12)).astype("float32")
                run.set_input(0, tiny.tensor(array, context=self.context))
                run.execute()
                code, got = unit.call({"input0": array}, n=size)
                self.assertEqual(code, 0)
                for i in range(3):
                    want = run.output_tensor(i).numpy()
                    self.assertTrue(same(got[f"output{i}"], want), (size, i))
            self.assertEqual(unit.call({"input0": array}, n=41)[0], 1)

    def test_what_is_wrong_is_told(self):
        table = tiny.tensor(np.arange(12, dtype="float32").reshape(4, 3), context=self.context)
        at = self.context.input(tiny.int64, [2])
        self.export([at], [table.gather(at)])
        unit = Exported(self.folder, "unit", *COMPILERS[0])
        self.assertEqual(unit.call({"input0": np.array([1, 3])})[0], 0)
        self.assertEqual(unit.call({"input0": np.array([1, 4])})[0], 2)
        self.assertEqual(unit.call({})[0], 1)
        program = tiny.Program.compile([at], [at + 1])
        for name in ("", "1x", "a b", "int", "_x"):
            with self.assertRaisesRegex(tiny.Error, "cannot name functions of C"):
                program.export_c(self.folder, name)
        host = tiny.custom_op("com.example", "Twice", infer=lambda x: x, context=self.context)(lambda x: x + x)
        calls = tiny.Program.compile([at], [host(at)])
        with self.assertRaisesRegex(tiny.Error, "a function of the host: C that stands alone cannot"):
            calls.export_c(self.folder, "unit")
        with self.assertRaisesRegex(tiny.Error, "cannot make the folder"):
            program.export_c(self.folder / "no/such", "unit")


class Models(Case):
    def check_model(self, nodes, inputs, outputs, *feeds, variables=None):
        """A graph of ONNX's, for each of the feeds by the engine and in C."""
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs],
                                  [helper.make_tensor_value_info(*o) for o in outputs])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
        model = tiny.Model.load(self.context, model.SerializeToString())
        dims = [d for arrays in feeds[:1] for a in arrays for d in a.shape]
        for place, variable in (variables or {}).items():
            dims[place] = variable.dim
        program = model.compile(dims)
        program.export_c(self.folder, "unit")
        run = tiny.Run.create(program)
        for compiler in COMPILERS[:3:2]:
            unit = Exported(self.folder, "unit", *compiler)
            for arrays in feeds:
                for i, array in enumerate(arrays):
                    run.set_input(i, tiny.tensor(array, context=self.context))
                run.execute()
                sizes = {v.name: [d for a in arrays for d in a.shape][place] for place, v in (variables or {}).items()}
                code, got = unit.call({i[0]: a for i, a in zip(inputs, arrays)}, **sizes)
                self.assertEqual(code, 0)
                for i, (name, _, _) in enumerate(outputs):
                    want = run.output_tensor(i).numpy()
                    self.assertTrue(same(got[name].view(want.dtype), want), (name, compiler, got[name], want))

    def test_recurrences(self):
        rng = np.random.default_rng(8)
        constants = [helper.make_node("Constant", [], [name], value=numpy_helper.from_array(
            (rng.standard_normal(shape) * 0.4).astype("float32"))) for name, shape in
            (("w", (2, 64, 10)), ("r", (2, 64, 16)), ("b", (2, 128)))]
        lstm = helper.make_node("LSTM", ["x", "w", "r", "b"], ["y", "h"], hidden_size=16, direction="bidirectional")
        self.check_model([*constants, lstm], [("x", FLOAT, (9, 3, 10))], [("y", FLOAT, None), ("h", FLOAT, None)],
                         [rng.standard_normal((9, 3, 10)).astype("float32")])

    def test_steps_that_a_run_counts(self):
        """x is doubled until its sum is over a limit, or so many times."""
        body = helper.make_graph(
            [helper.make_node("Add", ["v", "v"], ["twice"]), helper.make_node("ReduceSum", ["twice"], ["sum"], keepdims=0),
             helper.make_node("Less", ["sum", "limit"], ["again"])], "body",
            [helper.make_tensor_value_info("i", INT64, ()), helper.make_tensor_value_info("c", BOOL, ()),
             helper.make_tensor_value_info("v", FLOAT, (4,))],
            [helper.make_tensor_value_info("again", BOOL, ()), helper.make_tensor_value_info("twice", FLOAT, (4,))])
        loop = helper.make_node("Loop", ["n", "", "x"], ["last"], body=body)
        x = np.array([1, 2, 3, 4], "float32")
        self.check_model([loop], [("n", INT64, ()), ("x", FLOAT, (4,)), ("limit", FLOAT, ())], [("last", FLOAT, (4,))],
                         *([np.array(n), x, np.array(limit, "float32")] for n, limit in ((3, 1e9), (0, 1e9), (90, 500))))

    def test_branches(self):
        def branch(name, node):
            return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, FLOAT, (2, 3))])
        node = helper.make_node("If", ["c"], ["y"], then_branch=branch("a", helper.make_node("Exp", ["x"], ["a"])),
                                else_branch=branch("b", helper.make_node("Neg", ["x"], ["b"])))
        x = np.arange(6, dtype="float32").reshape(2, 3)
        self.check_model([node], [("c", BOOL, ()), ("x", FLOAT, (2, 3))], [("y", FLOAT, (2, 3))],
                         *([np.array(c), x] for c in (True, False)))

    def test_sequences_of_any_length(self):
        rng = np.random.default_rng(9)
        constants = [helper.make_node("Constant", [], [name], value=numpy_helper.from_array(
            (rng.standard_normal(shape) * 0.4).astype("float32"))) for name, shape in
            (("w", (1, 48, 10)), ("r", (1, 48, 16)))]
        gru = helper.make_node("GRU", ["x", "w", "r"], ["y", "h"], hidden_size=16)
        n = tiny.Variable.create(self.context, "n", 2, 30)
        self.check_model([*constants, gru], [("x", FLOAT, ("n", 2, 10))], [("y", FLOAT, None), ("h", FLOAT, None)],
                         *([rng.standard_normal((n, 2, 10)).astype("float32")] for n in (2, 3, 30, 5)),
                         variables={0: n})


class Steps(Case):
    def network(self):
        rng = np.random.default_rng(5)
        return [tiny.tensor(rng.standard_normal(s).astype("float32") * 0.3, context=self.context)
                for s in ((4, 1, 3, 3), (4, 1, 1), (4 * 6 * 6, 5), (5,))]

    def step(self):
        """The program of a step, and its parameters."""
        parameters = self.network()
        tiny.realize(parameters)
        optimizer = tiny.Optimizer.create(self.context, tiny.OptimizerKind.ADAM)
        optimizer.add(parameters)
        optimizer.set(0, "lr", 0.02)
        x, y = self.context.input(tiny.float32, [8, 1, 8, 8]), self.context.input(tiny.float32, [8, 5])
        filters, bias, w, b = parameters
        hidden = (x.conv(filters) + bias).relu().reshape([8, 4 * 6 * 6])
        error = (hidden @ w + b).softmax(1) - y
        loss = (error * error).mean()
        optimizer.step(tiny.gradient([loss], parameters))
        return self.export([x, y], [loss, *parameters]), parameters

    def test_on_another_processor(self):
        """A step on 64-bit ARM, under qemu: the loss and the state have the same bits."""
        missing = [p for p in ("aarch64-linux-gnu-gcc", "qemu-aarch64") if shutil.which(p) is None]
        if missing:
            raise AssertionError(f"no {' and no '.join(missing)} here; scripts/setup.sh installs them")
        self.step()
        unit = Exported(self.folder, "unit", *COMPILERS[0])
        rng = np.random.default_rng(10)
        inputs = {"input0": rng.standard_normal((8, 1, 8, 8)).astype("float32"),
                  "input1": rng.random((8, 5)).astype("float32")}
        before = unit.begin()
        want_state = before.copy()
        code, want = unit.call(inputs, state=want_state)
        self.assertEqual(code, 0)
        for flags in ([], ["-DTINY_SCALAR"]):
            got, state = run_elsewhere(self.folder, unit, ["aarch64-linux-gnu-gcc", "-O1", *flags],
                                       ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"], inputs, before)
            self.assertTrue(same(got["output0"], want["output0"]))
            self.assertEqual(state.tobytes(), want_state.tobytes())

    def test_a_training_step(self):
        """Forward, backward, update: the state after each of several steps is the engine's."""
        program, parameters = self.step()
        run = tiny.Run.create(program)
        rng = np.random.default_rng(6)
        units = [Exported(self.folder, "unit", *c) for c in COMPILERS[:3]]
        states = [unit.begin() for unit in units]
        losses = []
        for step in range(4):
            arrays = rng.standard_normal((8, 1, 8, 8)).astype("float32"), rng.random((8, 5)).astype("float32")
            for i, array in enumerate(arrays):
                run.set_input(i, tiny.tensor(array, context=self.context))
            run.execute()
            losses.append(run.output_tensor(0).item())
            for unit, state in zip(units, states):
                code, got = unit.call({"input0": arrays[0], "input1": arrays[1]}, state=state)
                self.assertEqual(code, 0)
                self.assertEqual(got["output0"].item(), losses[-1])
                for i, parameter in enumerate(parameters):
                    want = parameter.numpy()
                    begin = unit.offset(f"output{1 + i}")
                    self.assertEqual(state[begin:begin + want.nbytes].tobytes(), want.tobytes(), (step, i))
        self.assertLess(losses[0], 10)


class Networks(Case):
    models, names = None, ()

    def setUp(self):
        super().setUp()
        self.context = tiny.Context(cache=0, threads=2)

    def test_networks(self):
        for name in self.names:
            with self.subTest(name):
                model = tiny.Model.load(self.context, str(self.models / name / "model.onnx"))
                self.check_model(model, name)

    def check_model(self, model, name):
        rng = np.random.default_rng(7)
        arrays, dims = [], []
        for i in range(model.input_count):
            shape = [d if d > 0 else (2, 24)[axis] for axis, d in enumerate(model.input_shape(i))]
            dtype = model.input_dtype(i).name.lower()
            arrays.append(rng.standard_normal(shape).astype(dtype) if dtype.startswith("float")
                          else rng.integers(0, 50, shape).astype(dtype))
            dims += shape
        program = model.compile(dims)
        program.export_c(self.folder, name)
        run = tiny.Run.create(program)
        for i, array in enumerate(arrays):
            run.set_input(i, tiny.tensor(array, context=self.context))
        run.execute()
        unit = Exported(self.folder, name, *COMPILERS[0])
        members = [member for member, port in unit.ports.items() if port[0] == "input"]
        code, got = unit.call(dict(zip(members, arrays)), threads=Threads.of(2))
        self.assertEqual(code, 0)
        for i, array in enumerate(got.values()):
            self.assertTrue(same(array, run.output_tensor(i).numpy()), f"{name}: output {i}")


if __name__ == "__main__":
    if "--models" in sys.argv:
        at = sys.argv.index("--models")
        Networks.models, Networks.names = pathlib.Path(sys.argv[at + 1]), sys.argv[at + 2:]
        sys.argv[at:] = ["Networks"]
    else:
        sys.argv.extend(["Programs", "Models", "Steps"])
    unittest.main()
