"""Interleaved timing in Python, with the bounds and the row format of bench/measure.h."""

import ctypes
import dataclasses
import os
import time

from report import median

LEAST_ROUNDS = 3  # turns of each contender, at the least
PROBE = 5e8  # flops of a thread in a call of the probe: 2 ms and more
TOLERANCE = 1e-3  # of the results' largest magnitude


@dataclasses.dataclass
class Contender:
    name: str
    kind: str  # as bench/measure.h has them
    call: object
    settings: str = ""
    scale: float = 1.0  # what part of a call's time counts
    before: object = None  # called before each turn
    result: object = None  # the arrays of the last call


def limits_library():
    library = ctypes.CDLL(os.environ["BENCH_LIMITS"])
    library.bench_fma.argtypes = [ctypes.c_double, ctypes.c_int, ctypes.c_int]
    library.bench_fma.restype = ctypes.c_double
    library.bench_copy_streaming.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    library.bench_read.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.bench_read.restype = ctypes.c_float
    return library


def fma_limit(flops, threads, kind="limit"):
    library = limits_library()
    wide = library.bench_is_wide()
    asked = max(flops, PROBE * threads)
    done = library.bench_fma(asked, threads, wide)
    return Contender("FMA limit", kind, lambda: library.bench_fma(asked, threads, wide),
                     "AVX-512 probe" if wide else "AVX2 probe", flops / done)  # fmt: skip


def read_limit(size):
    import numpy

    library = limits_library()
    source = numpy.ones(size // 4, numpy.float32)
    return Contender("read", "limit", lambda: library.bench_read(source.ctypes.data, source.nbytes))


def copy_limits(size):
    """Copies of half of `size` bytes, by memcpy and past the caches."""
    import numpy

    library = limits_library()
    source, target = numpy.ones(size // 8, numpy.float32), numpy.zeros(size // 8, numpy.float32)
    parts = target.ctypes.data, source.ctypes.data, source.nbytes
    keep = (source, target)
    return [Contender("copy", "limit", lambda keep=keep: ctypes.memmove(*parts), "memcpy"),
            Contender("streaming copy", "limit", lambda keep=keep: library.bench_copy_streaming(*parts),
                      "stores that pass the caches")]  # fmt: skip


def difference(ours, theirs):
    """max|a-b| / max|b| of the pair of arrays that differ most."""
    import numpy

    worst = 0.0
    for a, b in zip(ours, theirs):
        largest = float(numpy.abs(b).max()) or 1.0
        gap = float(numpy.abs(a.astype("float64") - b).max()) / largest
        worst = max(worst, gap if gap == gap else float("inf"))
    return worst


def check(contenders, tolerance=TOLERANCE, right=None):
    """Errors against `right`, or the first peer; tiny's must be small, and a peer's that is not leaves the row."""
    reference = next((c for c in contenders if c.kind == "peer" and c.result), None)
    if reference:  # first: tiny's results take the shapes of its results
        reference.call()
    if right is None:
        right = reference.result()
    kept, errors, dropped = [], {}, []
    for contender in contenders:
        if contender.before:
            contender.before()
        contender.call()
        error = difference(contender.result(), right) if contender.result else 0.0
        if error <= tolerance:
            kept.append(contender)
            errors[contender.name] = error
        elif contender.kind == "peer":
            dropped.append(f"{contender.name} is wrong by {error:.1e} and left out")
        else:
            raise RuntimeError(f"{contender.name} is wrong by {error:g} of the largest magnitude")
    return kept, errors, dropped


def take_turn(contender, turn, pause, samples):
    if contender.before:
        contender.before()
    if pause:
        time.sleep(pause)
        contender.call()  # wakes what the pause put to sleep
    end = time.perf_counter() + turn
    while True:
        start = time.perf_counter()
        contender.call()
        now = time.perf_counter()
        samples.append((now - start) * 1e3 * contender.scale)
        if now >= end:
            return


def measure(contenders, seconds, turn, pause=0.0, tolerance=TOLERANCE, right=None):
    """The "contenders" of a row and what was left out, after a comparison of results."""
    contenders, errors, dropped = check(contenders, tolerance, right)
    samples = {c.name: [] for c in contenders}
    start, rounds = time.perf_counter(), 0
    while rounds < LEAST_ROUNDS or time.perf_counter() - start < seconds:
        for contender in contenders:
            take_turn(contender, turn, pause, samples[contender.name])
        rounds += 1
    figures = [{"name": c.name, "kind": c.kind, "settings": c.settings,
                "best_ms": min(samples[c.name]), "median_ms": median(samples[c.name]),
                "samples": len(samples[c.name]), "error": errors[c.name]} for c in contenders]
    return figures, dropped
