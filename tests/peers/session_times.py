"""What a model takes whose runs have several sizes in turn, or several values that decide about sizes: up to how
many each has a program of its own say Latest::kRuns of onnx/session.h and kValuesMax of onnx/host_elements.cpp.

    PYTHONPATH=build/release/bindings/python session_times.py sizes 4 6 7 8
    PYTHONPATH=build/release/bindings/python session_times.py values 2 3 4 6
"""

import json
import sys
import time

import numpy as np
import search_models
import tiny
from builder import FLOAT, INT64

RUNS, HIDDEN, HEADS, LAYERS, ROOM = 600, 128, 4, 2, 128


def encoder(is_part):
    """Attention over all rows of `x`, or over as many of its first as `k` says."""
    scale, size = HIDDEN**-0.5, HIDDEN // HEADS
    body = search_models.Body("encoder", np.random.default_rng(0))
    x = body.op("Slice", ["x", body.constant([0]), "k", body.constant([1])]) if is_part else "x"
    for _ in range(LAYERS):
        parts = [body.op("MatMul", [x, body.normal(HIDDEN, HIDDEN, scale=scale)]) for _ in range(3)]
        heads = [search_models.heads_of(body, part, HEADS, size) for part in parts]
        x = body.op("Add", [x, search_models.attend(body, *heads, None, HEADS, size, HIDDEN)])
        wide = body.op("Relu", [body.op("MatMul", [x, body.normal(HIDDEN, 4 * HIDDEN, scale=scale)])])
        x = body.op("Add", [x, body.op("MatMul", [wide, body.normal(4 * HIDDEN, HIDDEN, scale=scale)])])
    body.op("Tanh", [x], "y")
    ports = {"x": ([1, ROOM if is_part else "n", HIDDEN], FLOAT), **({"k": ([1], INT64)} if is_part else {})}
    return body.finished(ports, {"y": ([1, None, HIDDEN], FLOAT)}, 17).SerializeToString()


def measured(is_part, count):
    """Milliseconds of a core: of what is more than later runs take, and of these"""
    context = tiny.Context(device="cpu", threads=1, cache=0)
    model, times = tiny.Model.load(context, encoder(is_part)), []
    for run in range(RUNS):
        rows = 17 + 7 * (run % count)
        x = np.ones((1, ROOM if is_part else rows, HIDDEN), np.float32)
        given = [x, np.array([rows], np.int64)] if is_part else [x]
        begin = time.process_time()
        model.run(given)[0].numpy()
        times.append(time.process_time() - begin)
    later = np.array(times[RUNS // 2 :])
    kernels = json.loads(context.counters().text())["kernels"]["compiled"]
    extra = sum(times) - 2 * later.sum()
    return f"{1e3 * extra:.0f} ms for {kernels} kernels, then {1e3 * later.mean():.3f} ms a run of {later.size}"


if __name__ == "__main__":
    what, *counts = sys.argv[1:]
    for count in map(int, counts):
        print(f"{count} {what}: {measured(what == 'values', count)}", flush=True)
