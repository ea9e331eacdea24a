"""Loops whose carried values grow from round to round, against onnxruntime: lists that are concatenated, a decoder's keys and values.

    PYTHONPATH=build/release/bindings/python growing_test.py [PATTERN] [FIRST COUNT]
"""

import json
import sys

import named_tests

try:
    import numpy as np
    import onnxruntime
    import tiny
    from builder import FLOAT, INT64, Builder, port
    from onnx import TensorProto
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}; scripts/setup.sh makes one that has it")
    sys.exit(77)

BOOL = TensorProto.BOOL
FIRST, COUNT = (int(n) for n in sys.argv[2:4]) if len(sys.argv) > 3 else (0, 40)
CPU = tiny.Context(device="cpu", threads=1, cache=0)
onnxruntime.set_default_logger_severity(4)
WIDTH = 6


class Growing:
    """A loop with a list of rows, which a round adds to, and a state that stays. How many rounds there are: `rounds`,
    a number, "given" (an input) or None; `ends`: the rows decide whether another follows."""

    def __init__(self, seed, rounds, ends, by=1, axis=1, begins=2, in_front=False, collects=True, behind_if=False):
        rng = np.random.default_rng(seed)
        body = Builder("body", "body_")
        weights = body.constant(rng.standard_normal((WIDTH, WIDTH)) * 0.3, np.float32)
        rows = body.op("Transpose", ["rows"], perm=[1, 0]) if axis == 0 else "rows"  # [WIDTH, n]
        # As attention does, what is new looks at all that is there.
        query = body.op("MatMul", [weights, "state"])  # [WIDTH, 1]
        scores = body.op("MatMul", [body.op("Transpose", [query], perm=[1, 0]), rows])
        seen = body.op("MatMul", [rows, body.op("Transpose", [body.op("Softmax", [scores], axis=1)], perm=[1, 0])])
        body.op("Tanh", [body.op("Add", [query, seen])], output="next")
        new = body.op("Tile", ["next", body.constant([1, by])])
        new = body.op("Transpose", [new], perm=[1, 0]) if axis == 0 else new
        body.op("Concat", [new, "rows"] if in_front else ["rows", new], axis=axis, output="more")
        body.op("ReduceSum", ["more"], keepdims=0, output="sum")
        if ends:
            body.op("Less", [body.op("Abs", ["sum"]), "limit"], output="again")
        elif rounds is None:
            body.op("Less", [body.op("Add", ["round", body.constant(1)]), "most"], output="again")
        else:
            body.op("Identity", ["before"], output="again")
        shape = [WIDTH, None] if axis == 1 else [None, WIDTH]
        state = [WIDTH, 1]
        outer = Builder("g")
        outer.tensors, body.tensors = body.tensors, []  # what a body reads may stand around it
        graph = body.graph(
            [port("round", INT64, []), port("before", BOOL, []), port("rows", FLOAT, shape), port("state", FLOAT, state)],
            [port("again", BOOL, []), port("more", FLOAT, shape), port("next", FLOAT, state), port("sum", FLOAT, [])])  # fmt: skip
        first = outer.constant(rng.standard_normal((WIDTH, begins) if axis == 1 else (begins, WIDTH)), np.float32)
        count = {"given": "most", None: ""}.get(rounds) if rounds in ("given", None) else outer.constant(rounds)
        names = ["all", "last", "sums"] if collects else ["all", "last"]
        if not collects:
            graph.output.pop()
        given = [count, outer.constant(True, np.bool_) if not count else "", first, "x"]
        results = {"all": (shape, FLOAT), "last": (state, FLOAT), "sums": ([None], FLOAT)}
        grown, none = Builder("grown"), Builder("none", "none_")
        (grown if behind_if else outer).ops("Loop", given, len(names), names, "grow", body=graph)
        if behind_if:
            none.op("Identity", [first], "f")
            none.op("Identity", ["x"], "l")
            positive = outer.op("Greater", [outer.op("ReduceSum", ["x"], keepdims=0), outer.constant(0, np.float32)])
            then = grown.graph([], [port("all", FLOAT, shape), port("last", FLOAT, state)])
            other = none.graph([], [port("f", FLOAT, shape), port("l", FLOAT, state)])
            outer.ops("If", [positive], 2, ["all_", "last_"], then_branch=then, else_branch=other)
            names, results = ["all_", "last_"], {"all_": (shape, FLOAT), "last_": (state, FLOAT)}
        ports = {"x": (state, FLOAT), "limit": ([], FLOAT), "most": ([], INT64)}
        model = outer.finished(ports, {name: results[name] for name in names}, 17)
        self.file = model.SerializeToString()
        self.peer = onnxruntime.InferenceSession(self.file, providers=["CPUExecutionProvider"])

    def check(self, model, seed, limit=6.0, most=12):
        x = np.random.default_rng(seed).standard_normal((WIDTH, 1)).astype(np.float32)
        given = {"x": x, "limit": np.float32(limit), "most": np.int64(most)}
        used = {i.name for i in self.peer.get_inputs()}
        ours = [np.array(one.numpy()) for one in model.run(list(given.values()))]
        theirs = self.peer.run(None, {name: np.array(value) for name, value in given.items() if name in used})
        for got, want in zip(ours, theirs, strict=True):
            assert got.shape == want.shape, f"{got.shape}; wanted {want.shape}"
            assert np.allclose(got, want, rtol=1e-3, atol=1e-3), np.abs(got - want).max()
        return len(theirs[0].T) if theirs[0].shape[0] == WIDTH else len(theirs[0])


def drawn_loops():
    lengths = set()
    for seed in range(FIRST, FIRST + COUNT):
        rng = np.random.default_rng(seed)
        rounds = [None, "given", int(rng.integers(1, 40))][int(rng.integers(3))]
        ends = rng.random() < 0.5 and rounds is not None  # else it may go on for ever
        loop = Growing(seed, rounds, ends, int(rng.integers(1, 4)), int(rng.integers(2)),
                       int(rng.integers(0, 4)), rng.random() < 0.3, rng.random() < 0.6, rng.random() < 0.2)  # fmt: skip
        model = tiny.Model.load(CPU, loop.file)
        for run in range(3):
            try:
                lengths.add(loop.check(model, 10 * seed + run, rng.choice([0.5, 3, 20]), int(rng.integers(1, 30))))
            except Exception as error:
                raise AssertionError(f"seed {seed}, run {run}: {error}") from error
    assert len(lengths) > 10, lengths


def other_devices():
    for options in ({"device": "cpu", "threads": 2}, {"device": "interp"}, {"device": "c"}):
        loop = Growing(3, "given", True)
        model = tiny.Model.load(tiny.Context(cache=0, **options), loop.file)
        for seed in range(3):
            loop.check(model, seed, 20)


def rounds_share_kernels():
    """However many rounds there are, they are compiled once."""
    kernels = []
    for rounds in (20, 200):
        loop, context = Growing(1, rounds, False), tiny.Context(device="cpu", threads=1, cache=0)
        loop.check(tiny.Model.load(context, loop.file), 0)
        kernels.append(json.loads(context.counters().text())["kernels"]["compiled"])
    assert kernels[0] == kernels[1] < 40, kernels
    loop = Growing(1, "given", True)
    model = tiny.Model.load(CPU, loop.file)
    for run in range(6):  # after a few numbers of rounds a program finds them itself
        loop.check(model, run, 3, 9 + run)
    before = json.loads(CPU.counters().text())["kernels"]["compiled"]
    for run in range(20):
        loop.check(model, run, 3 + run, 5 + run)
    assert json.loads(CPU.counters().text())["kernels"]["compiled"] == before


def room_that_nothing_bounds():
    """A loop that ends itself has room for 65,536 rounds of few bytes; one more is an error that names it."""
    loop = Growing(1, None, False, collects=False)
    model = tiny.Model.load(CPU, loop.file)
    loop.check(model, 0, most=3000)
    x = np.ones((WIDTH, 1), np.float32)
    try:
        model.run([x, np.float32(0), np.int64(70000)])
    except tiny.Error as error:
        assert "grow" in str(error) and "it may be 0 to 65536" in str(error), str(error)
        return
    raise AssertionError("nothing was said")


if __name__ == "__main__":
    sys.exit(named_tests.run([drawn_loops, other_devices, rounds_share_kernels, room_that_nothing_bounds]))
