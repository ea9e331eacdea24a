"""The random operators: distributions, types and shapes, other numbers in each execution and round, the same ones for
the same seed.

    PYTHONPATH=build/release/bindings/python random_test.py [PATTERN]
"""

import ctypes
import pathlib
import subprocess
import sys
import tempfile
import threading

import named_tests

try:
    import numpy as np
    import tiny
    from onnx import AttributeProto, TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

FLOAT, HALF, DOUBLE, BFLOAT = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16
INT64, INT32, BOOL = TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL
CONTEXT = tiny.Context(device="cpu")
INTERPRETER = tiny.Context(device="interp")


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def info(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def model_bytes(nodes, inputs, outputs, opset=21, **constants):
    graph = helper.make_graph(nodes, "g", inputs, outputs,
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10).SerializeToString()


def model(*args, context=CONTEXT, **constants):
    return tiny.Model.load(context, model_bytes(*args, **constants))


def run(loaded, *inputs):
    return [np.array(one.float().numpy() if str(one.dtype).endswith("bfloat16") else one.numpy())
            for one in loaded.run(list(inputs))]


def differs(a, b):
    return not np.array_equal(a, b)


def distributions():
    n = 20000
    made = model([node("RandomNormal", [], ["a"], shape=[n], mean=3.0, scale=2.0, dtype=FLOAT),
                  node("RandomUniform", [], ["b"], shape=[n], low=-1.0, high=3.0, dtype=FLOAT),
                  node("Bernoulli", ["p"], ["c"]), node("Multinomial", ["logits"], ["d"], sample_size=n)],
                 [info("p", FLOAT, [n]), info("logits", FLOAT, [2, 3])],
                 [info("a", FLOAT, [n]), info("b", FLOAT, [n]), info("c", FLOAT, [n]), info("d", INT32, [2, n])])
    p = np.linspace(0, 1, n, dtype=np.float32)
    shares = np.array([[0.2, 0.3, 0.5], [0.7, 0.25, 0.05]])
    for _ in range(2):
        a, b, c, d = run(made, p, np.log(shares * 4).astype(np.float32))
        error = 5 / np.sqrt(n)  # five deviations of a mean
        assert abs(a.mean() - 3) < 2 * error and abs(a.std() - 2) < 2 * error, (a.mean(), a.std())
        assert abs(np.mean((a - 3) ** 4) / 16 - 3) < 0.3
        assert b.min() >= -1 and b.max() < 3 and abs(b.mean() - 1) < 2 * error and abs(b.var() - 4 / 3) < 2 * error
        assert set(np.unique(c)) == {0, 1} and abs(c.mean() - 0.5) < error
        assert abs(c[: n // 4].mean() - 1 / 8) < 2 * error and c[0] == 0
        for row, share in zip(d, shares):
            counts = np.bincount(row, minlength=3) / n
            assert row.dtype == np.int32 and np.abs(counts - share).max() < error, counts
        # Neighbours have nothing to do with each other.
        assert abs(np.corrcoef(a[1:], a[:-1])[0, 1]) < error and abs(np.corrcoef(a, b)[0, 1]) < error


def types_and_shapes():
    for kind, dtype in ((FLOAT, np.float32), (HALF, np.float16), (DOUBLE, np.float64)):
        scalar = node("RandomUniform", [], ["b"], dtype=kind)
        scalar.attribute.append(helper.make_attribute("shape", [], attr_type=AttributeProto.INTS))
        made = model([node("RandomNormal", [], ["a"], shape=[2, 3], dtype=kind),
                      scalar, node("RandomNormalLike", ["x"], ["c"]),
                      node("RandomUniformLike", ["x"], ["d"], dtype=kind), node("Bernoulli", ["x"], ["e"], dtype=INT64),
                      node("Bernoulli", ["x"], ["f"], dtype=BOOL)],
                     [info("x", kind, [4, 0, 2])],
                     [info("a", kind, [2, 3]), info("b", kind, []), info("c", kind, None), info("d", kind, None),
                      info("e", INT64, None), info("f", BOOL, None)])
        got = run(made, np.zeros((4, 0, 2), dtype))
        assert [one.shape for one in got] == [(2, 3), (), (4, 0, 2), (4, 0, 2), (4, 0, 2), (4, 0, 2)]
        assert [one.dtype for one in got] == [dtype] * 4 + [np.int64, np.bool_]
    made = model([node("RandomNormalLike", ["x"], ["y"], dtype=DOUBLE)], [info("x", INT32, ["n"])],
                 [info("y", DOUBLE, ["n"])])
    for n in (3, 5, 1):
        assert run(made, np.zeros(n, np.int32))[0].shape == (n,)


def executions_and_seeds():
    def load(seed, context=CONTEXT):
        seeded = {} if seed is None else {"seed": seed}
        return model([node("RandomUniform", [], ["a"], shape=[8], **seeded),
                      node("RandomUniform", [], ["b"], shape=[8])], [],
                     [info("a", FLOAT, [8]), info("b", FLOAT, [8])], context=context)

    first, again, other = load(1.5), load(1.5, INTERPRETER), load(2.5)
    runs = [[run(one) for _ in range(3)] for one in (first, again, other)]
    for one, same in zip(runs[0], runs[1]):
        assert np.array_equal(one[0], same[0]) and np.array_equal(one[1], same[1])
    values = [one[0] for one in runs[0]] + [one[1] for one in runs[0]] + [one[0] for one in runs[2]]
    assert len({tuple(value.tolist()) for value in values}) == len(values)
    seeded = []
    for _ in range(2):
        first.set_seed(7)
        seeded.append(run(first))
    assert np.array_equal(seeded[0][1], seeded[1][1]) and differs(seeded[0][1], runs[0][0][1])
    assert np.array_equal(seeded[0][0], runs[0][0][0])  # an operator's own seed is its own
    first.set_seed(0)
    assert np.array_equal(run(first)[1], runs[0][0][1])


def programs_and_threads():
    made = model([node("RandomNormalLike", ["x"], ["y"])], [info("x", FLOAT, [64])], [info("y", FLOAT, [64])])
    x = np.zeros(64, np.float32)
    program = made.compile([64])
    runs = [program.run() if hasattr(program, "run") else tiny.Run.create(program) for _ in range(2)]
    found = []

    def execute(one):
        one.set_input(0, tiny.tensor(x, context=CONTEXT))
        for _ in range(20):
            one.execute()
            data = bytearray(64 * 4)
            one.read_output(0, data)
            found.append(bytes(data))

    threads = [threading.Thread(target=execute, args=(one,)) for one in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(set(found)) == 40


def loops_and_branches():
    def body(extra=()):
        return helper.make_graph(
            [node("Identity", ["again"], ["go"]), node("RandomUniform", [], ["r"], shape=[4], seed=3.0), *extra,
             node("Add", ["s", "r"], ["s2"]), node("Identity", ["r"], ["out"])], "body",
            [info("i", INT64, []), info("again", BOOL, []), info("s", FLOAT, [4])],
            [info("go", BOOL, []), info("s2", FLOAT, [4]), info("out", FLOAT, [4])])

    for rounds in (3, 12):
        made = model([node("Loop", ["n", "", "x"], ["last", "all"], body=body())], [info("x", FLOAT, [4])],
                     [info("last", FLOAT, [4]), info("all", FLOAT, [rounds, 4])], n=np.int64(rounds))
        seen = set()
        for _ in range(2):
            last, every = run(made, np.zeros(4, np.float32))
            np.testing.assert_allclose(last, every.sum(0), 1e-5)
            seen |= {tuple(row.tolist()) for row in every}
        assert len(seen) == 2 * rounds
    step = helper.make_graph([node("RandomNormal", [], ["r"], shape=[2]), node("Add", ["e", "r"], ["y"]),
                              node("Identity", ["y"], ["z"])], "step",
                             [info("s", FLOAT, [2]), info("e", FLOAT, [2])], [info("z", FLOAT, [2]), info("y", FLOAT, [2])])
    made = model([node("Scan", ["s", "x"], ["last", "all"], body=step, num_scan_inputs=1)],
                 [info("s", FLOAT, [2]), info("x", FLOAT, [9, 2])], [info("last", FLOAT, [2]), info("all", FLOAT, [9, 2])])
    every = run(made, np.zeros(2, np.float32), np.zeros((9, 2), np.float32))[1]
    assert len({tuple(row.tolist()) for row in every}) == 9
    yes = helper.make_graph([node("RandomNormal", [], ["a"], shape=[40000])], "yes", [], [info("a", FLOAT, [40000])])
    no = helper.make_graph([node("RandomUniform", [], ["b"], shape=[40000])], "no", [], [info("b", FLOAT, [40000])])
    made = model([node("ReduceSum", ["x"], ["t"], keepdims=0), node("Cast", ["t"], ["is"], to=BOOL),
                  node("If", ["is"], ["y"], then_branch=yes, else_branch=no)], [info("x", FLOAT, [2])],
                 [info("y", FLOAT, [40000])])
    for given, low in ((1, -8), (0, 0)):
        one, other = (run(made, np.full(2, given, np.float32))[0] for _ in range(2))
        assert differs(one, other) and one.min() >= low and (one.min() < 0) == (given == 1)


def dropout():
    n = 4000
    made = model([node("Dropout", ["x", "ratio", "train"], ["y", "mask"], seed=4)],
                 [info("x", FLOAT, [n]), info("ratio", FLOAT, []), info("train", BOOL, [])],
                 [info("y", FLOAT, [n]), info("mask", BOOL, [n])])
    x = np.arange(1, n + 1, dtype=np.float32)
    y, mask = run(made, x, np.float32(0.25), np.array(True))
    np.testing.assert_allclose(y, np.where(mask, x / 0.75, 0), 1e-5)
    assert abs(mask.mean() - 0.75) < 0.05
    assert differs(mask, run(made, x, np.float32(0.25), np.array(True))[1])
    for ratio, train in ((0.25, False), (0, True)):
        y, mask = run(made, x, np.float32(ratio), np.array(train))
        assert np.array_equal(y, x) and mask.all()
    y, mask = run(made, x, np.float32(1), np.array(True))
    assert not y.any() and not mask.any()
    old = model([node("Dropout", ["x"], ["y", "mask"], ratio=0.5)], [info("x", FLOAT, [n])],
                [info("y", FLOAT, [n]), info("mask", FLOAT, [n])], opset=6)
    y, mask = run(old, x)
    np.testing.assert_allclose(y, x * mask * 2, 1e-5)
    assert 0.4 < mask.mean() < 0.6


def in_graphs_of_the_caller():
    made = model([node("RandomNormalLike", ["x"], ["y"])], [info("x", FLOAT, [8])], [info("y", FLOAT, [8])])
    x = tiny.tensor(np.zeros(8, np.float32), context=CONTEXT)
    one, other = (np.array(made.apply([x])[0].numpy()) for _ in range(2))
    assert differs(one, other)
    same = [np.array(tiny.op("RandomNormal", shape=[5], seed=2.0, context=CONTEXT).numpy()) for _ in range(2)]
    assert np.array_equal(*same)


def exported_as_c():
    """The argument `execution` decides what a program in C draws: the same as here."""
    # What the disk cache has the code of is not written: its structure is not known.
    made = model([node("RandomNormalLike", ["x"], ["y"])], [info("x", FLOAT, [64])], [info("y", FLOAT, [64])],
                 context=tiny.Context(cache=0))  # fmt: skip
    fields = ["weights", "memory", "memory_bytes", "threads", "x", "execution", "y"]

    class Arguments(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in fields]

    with tempfile.TemporaryDirectory() as folder:
        made.compile([64]).export_c(folder, "draw")
        command = ["cc", "-std=c11", "-O1", "-shared", "-fPIC", "-march=native", "-o", f"{folder}/draw.so",
                   f"{folder}/draw.c", "-lm"]
        subprocess.run(command, check=True)
        library = ctypes.CDLL(f"{folder}/draw.so")
        weights = np.resize(np.frombuffer((pathlib.Path(folder) / "draw.weights").read_bytes() + b" ", np.uint8), 4096)
    library.draw_memory_bytes.restype = ctypes.c_size_t
    x, y, execution = np.zeros(64, np.float32), np.zeros(64, np.float32), np.zeros(2, np.uint64)
    arguments = Arguments(weights=weights.ctypes.data, x=x.ctypes.data, execution=execution.ctypes.data, y=y.ctypes.data)
    memory = np.zeros(library.draw_memory_bytes(ctypes.byref(arguments)) + 64, np.uint8)
    arguments.memory, arguments.memory_bytes = memory.ctypes.data, len(memory)
    for number in range(2):
        execution[1] = number
        assert library.draw_run(ctypes.byref(arguments)) == 0
        np.testing.assert_allclose(y, run(made, x)[0], 1e-5, 1e-6)


TESTS = [distributions, types_and_shapes, executions_and_seeds, programs_and_threads, loops_and_branches, dropout,
         in_graphs_of_the_caller, exported_as_c]

if __name__ == "__main__":
    sys.exit(named_tests.run(TESTS))
