"""What loops whose carried values grow take: kUnrolledGrowingMax and kGrownBytesMax of onnx/import/control.cpp.

    PYTHONPATH=build/release/bindings/python growing_times.py rounds 8 16 17 32   a small decoder of so many rounds
    PYTHONPATH=build/release/bindings/python growing_times.py room 4 8 16 32      three rounds, with room for so many MiB
"""

import sys
import time

import numpy as np
import search_models
import tiny
from builder import FLOAT, INT64, Builder, port
from onnx import TensorProto

BOOL = TensorProto.BOOL
TRIES, RUNS = 5, 200
ROUNDS_MAX = 65536  # for which there is room where nothing says how many there are


def decoder(rounds, hidden=64, heads=4, layers=2, begins=8):
    """Each round has a token, and adds its keys and values to those that are there."""
    rng, scale, size = np.random.default_rng(0), hidden**-0.5, hidden // heads
    body = search_models.Body("body", rng, "body_")
    x = "x_in"
    for i in range(layers):
        normal = body.op("LayerNormalization", [x, body.normal(hidden), body.normal(hidden)], axis=-1)
        parts = [body.op("MatMul", [normal, body.normal(hidden, hidden, scale=scale)]) for _ in range(3)]
        query, key, value = [search_models.heads_of(body, part, heads, size) for part in parts]
        kept = [body.op("Concat", [f"{name}{i}_in", new], f"{name}{i}_out", axis=2)
                for name, new in (("key", key), ("value", value))]  # fmt: skip
        mixed = search_models.attend(body, query, *kept, None, heads, size, hidden)
        x = body.op("Add", [x, body.op("MatMul", [mixed, body.normal(hidden, hidden, scale=scale)])])
        wide = body.op("Relu", [body.op("MatMul", [x, body.normal(hidden, 4 * hidden, scale=scale)])])
        x = body.op("Add", [x, body.op("MatMul", [wide, body.normal(4 * hidden, hidden, scale=scale)])])
    body.op("Tanh", [x], "x_out")
    body.op("Identity", ["before"], "again")
    kept = [f"{k}{i}" for i in range(layers) for k in ("key", "value")]
    token, past = [1, 1, hidden], [1, heads, None, size]
    inputs = [port("round", INT64, []), port("before", BOOL, []), port("x_in", FLOAT, token)]
    outputs = [port("again", BOOL, []), port("x_out", FLOAT, token)]
    graph = body.graph(inputs + [port(f"{name}_in", FLOAT, past) for name in kept],
                       outputs + [port(f"{name}_out", FLOAT, past) for name in kept])  # fmt: skip
    whole = Builder("decoder")
    first = [whole.constant(rng.standard_normal((1, heads, begins, size)), np.float32) for _ in kept]
    whole.ops("Loop", [whole.constant(rounds), "", "x", *first], 1 + len(kept), ["last", *kept], body=graph)
    results = {"last": (token, FLOAT), **{name: (past, FLOAT) for name in kept}}
    return whole.finished({"x": (token, FLOAT)}, results, 17), [np.ones(token, np.float32)]


def list_of_rows(width):
    """A round adds a row of floats, and says whether another follows."""
    body, whole = Builder("body", "body_"), Builder("rows")
    body.op("Concat", ["rows", "x"], "more", axis=0)
    body.op("Less", [body.op("Add", ["round", body.constant(1)]), "most"], "again")
    rows = [None, width]
    graph = body.graph([port("round", INT64, []), port("before", BOOL, []), port("rows", FLOAT, rows)],
                       [port("again", BOOL, []), port("more", FLOAT, rows)])  # fmt: skip
    whole.op("Loop", ["", whole.constant(True, np.bool_), "x"], "all", body=graph)
    ports = {"x": ([1, width], FLOAT), "most": ([], INT64)}
    return whole.finished(ports, {"all": (rows, FLOAT)}, 17), [np.ones((1, width), np.float32), np.int64(3)]


def measured(made):
    """Milliseconds of a core: of loading and the first run, and of the best and the middle one of others."""
    model, given = made
    file, firsts, times = model.SerializeToString(), [], []
    for _ in range(TRIES):
        context = tiny.Context(device="cpu", threads=1, cache=0)
        begin = time.process_time()
        loaded = tiny.Model.load(context, file)
        loaded.run(given)[0].numpy()
        firsts.append(time.process_time() - begin)
        for _ in range(RUNS // TRIES):
            begin = time.process_time()
            loaded.run(given)[0].numpy()
            times.append(time.process_time() - begin)
    return f"first {1e3 * min(firsts):.1f} ms, then {1e3 * min(times):.3f} ms ({1e3 * np.median(times):.3f})"


if __name__ == "__main__":
    what, *sizes = sys.argv[1:]
    for size in map(int, sizes):
        if what == "rounds":
            print(f"{size} rounds: {measured(decoder(size))}", flush=True)
        else:
            rows = list_of_rows((size << 20) // 4 // ROUNDS_MAX)
            print(f"room for {size} MiB: {measured(rows)}", flush=True)
