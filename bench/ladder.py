"""From no optimisations to searched ones: what each rung of the ladder is worth on two kernels.

Every rung has a context of its own without the disk cache, so that a search is made here; runs of
the rungs take turns, and the best of each counts.
"""

import time

from report import table

RUNGS = (("NOOPT", {"noopt": 1}), ("cost model", {}), ("BEAM=2", {"beam": 2}),
         ("BEAM=4", {"beam": 4}))  # fmt: skip
ROUNDS = 20


def product(context, tiny, size=1024):
    a, b = (context.input(tiny.float32, [size, size]) for _ in range(2))
    return [a, b], a @ b, 2 * size**3


def convolution(context, tiny):
    x = context.input(tiny.float32, [16, 3, 64, 64])
    weight = context.input(tiny.float32, [16, 3, 3, 3])
    return [x, weight], x.conv(weight), 2 * 16 * 16 * 62 * 62 * 3 * 3 * 3


KERNELS = {"conv (16,3,64,64) by (16,3,3,3)": convolution, "matmul 1024^3": product}


def prepare(tiny, make, options):
    """A bound run, how long compiling took, what an execution computes, how long the first took."""
    import numpy

    context = tiny.Context(cache=0, **options)
    inputs, output, flops = make(context, tiny)
    begin = time.perf_counter()
    program = tiny.Program.compile(inputs, [output])
    seconds = time.perf_counter() - begin
    run = tiny.Run.create(program)
    random = numpy.random.default_rng(1)
    for index, tensor in enumerate(inputs):
        values = random.uniform(-1, 1, tensor.shape).astype("float32")
        run.set_input(index, tiny.from_buffer(values, context=context))
    begin = time.perf_counter()
    run.execute()
    return run, seconds, flops, time.perf_counter() - begin


def run(arguments):
    import tiny

    rows, lines = [], []
    for name, make in KERNELS.items():
        if arguments.only not in name:
            continue
        rungs = [prepare(tiny, make, options) for _, options in RUNGS]
        best = [first for _, _, _, first in rungs]
        end = time.perf_counter() + arguments.duration
        rounds = 0
        while rounds < ROUNDS or time.perf_counter() < end:
            for index, (rung, *_) in enumerate(rungs):
                # Few turns are enough to know a rung that is so slow.
                if best[index] > (1 if rounds < 2 else 0.1):
                    continue
                begin = time.perf_counter()
                rung.execute()
                best[index] = min(best[index], time.perf_counter() - begin)
            rounds += 1
        for (rung, _), (_, compiling, flops, _), seconds in zip(RUNGS, rungs, best):
            rows.append({"kernel": name, "rung": rung, "ms": seconds * 1e3,
                         "gflops": flops / seconds / 1e9, "compile_s": compiling})
            lines.append([name, rung, f"{seconds * 1e3:.3f}", f"{flops / seconds / 1e9:.1f}",
                          f"{best[0] / seconds:.1f}", f"{best[1] / seconds:.2f}",
                          f"{compiling:.2f}"])
    header = ["kernel", "rung", "ms", "GFLOPS", "to NOOPT", "to cost model", "compile s"]
    return {"rows": rows}, table(header, lines)
