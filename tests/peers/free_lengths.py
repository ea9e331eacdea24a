#!/usr/bin/env python3
"""The transformer of make_models.py at many sequence lengths in one process, against onnxruntime.

    free_lengths.py MODEL.onnx [LENGTH...]

What is compiled for one length serves the others: outputs agree to 1e-4 of the greatest value, only
the first length compiles kernels, and memory is flat: a second pass over the lengths adds less than
4 MB.  Without lengths: 64 of them.  Needs numpy,
onnxruntime, and the package tiny of a build: PYTHONPATH=build/release/bindings/python.
"""

import json
import sys

try:
    import numpy as np
    import onnxruntime

    import tiny
except ImportError as missing:
    print(f"skipped: this interpreter lacks {missing.name}")
    sys.exit(77)

VOCABULARY = 1000
TOLERANCE, GROWTH_KB = 1e-4, 4096


def resident_kilobytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def compiled(context):
    """Kernels compiled, and the seconds that went into them."""
    counters = json.loads(context.counters().text())
    seconds = counters["compile_seconds"]
    return (counters["kernels"]["compiled"],
            sum(seconds["passes"].values()) + seconds["lower"] + seconds["load"])


class Lengths:
    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        self.peer = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        self.name = self.peer.get_inputs()[0].name
        self.context = tiny.default_context()
        self.model = tiny.Model.load(self.context, path)

    def run(self, length):
        """The tokens, and the outputs for them."""
        tokens = np.random.default_rng(length).integers(0, VOCABULARY, (1, length), np.int64)
        return tokens, [output.numpy() for output in self.model.run([tokens])]

    def difference(self, length):
        """The greatest difference at this length, in parts of the greatest value."""
        tokens, got = self.run(length)
        want = self.peer.run(None, {self.name: tokens})
        return max(float(np.abs(g - w).max() / np.abs(w).max()) for g, w in zip(got, want))


def main(path, lengths):
    subject = Lengths(path)
    worst = subject.difference(lengths[0])
    first_kernels, first_seconds = compiled(subject.context)
    worst = max([worst, *map(subject.difference, lengths[1:])])
    kernels, seconds = compiled(subject.context)
    before = resident_kilobytes()
    for length in lengths:
        subject.run(length)
    growth = resident_kilobytes() - before
    again, _ = compiled(subject.context)
    print(f"{len(lengths)} lengths: largest difference {worst:.1e} of the largest value; compiled"
          f" {kernels} kernels in {seconds:.3f} s, for the first length {first_kernels} in"
          f" {first_seconds:.3f} s; a second pass compiled {again - kernels} and took {growth} KB")
    failures = []
    if not worst <= TOLERANCE:
        failures.append(f"a difference of {worst:.1e}")
    if first_kernels == 0 or kernels > first_kernels:
        failures.append("lengths after the first compile, or the first does not")
    if again != kernels:
        failures.append("the second pass compiled")
    if growth > GROWTH_KB:
        failures.append("memory grows")
    print("; ".join(failures) or "as it must be")
    return 1 if failures else 0


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[2:]]
    sys.exit(main(sys.argv[1], given or list(range(4, 260, 4))))
