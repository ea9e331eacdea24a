#!/usr/bin/env python3
"""The transformer of make_models.py at 64 sequence lengths, against onnxruntime.

    free_lengths.py MODEL.onnx [LENGTH...]

Every length runs in one process, so that what tiny compiles for one length serves the others.  Checks
that outputs agree, and prints what compiling cost in all and for the first length, and the memory.  Needs the packages tiny (built
with -DTINY_PYTHON=ON), numpy and onnxruntime.
"""

import sys
import time

import numpy as np
import onnxruntime

import tiny

VOCABULARY = 1000


def resident_kilobytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def timed(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def main(path, lengths):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    peer = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    model = tiny.Model.load(tiny.default_context(), path)
    name = peer.get_inputs()[0].name
    compiling, worst, memory = [], 0.0, {}
    for i, length in enumerate(lengths):
        tokens = np.random.default_rng(length).integers(0, VOCABULARY, (1, length), np.int64)
        # The first call compiles what is not there yet, the second only runs.
        first, _ = timed(lambda: model.run([tokens])[0].numpy())
        second, got = timed(lambda: model.run([tokens])[0].numpy())
        compiling.append(max(first - second, 0))
        want = peer.run(None, {name: tokens})[0]
        worst = max(worst, float(np.abs(got - want).max() / np.abs(want).max()))
        memory[i] = resident_kilobytes()
    print(f"{len(lengths)} lengths: largest difference {worst:.1e} of the largest value; compiling"
          f" {sum(compiling):.3f} s, the first length {compiling[0]:.3f} s; resident"
          f" {memory[min(3, len(lengths) - 1)]} KB after 4 lengths, {memory[len(lengths) - 1]} KB at the end")
    return 0 if worst <= 1e-4 else 1


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[2:]]
    sys.exit(main(sys.argv[1], given or list(range(4, 260, 4))))
