"""What the Python layer costs: building, creating and replaying tiny tensors, compiling many small kernels.

Contenders take turns in one process, and the best of many turns counts: what is measured is the layer, not the machine.
torch runs eagerly, so that its time for a + b has the addition in it, and tiny's has not.
"""

import os
import subprocess
import sys
import tempfile
import time

from report import at_most, table

CALLS = 1000  # of a turn
TURNS = 15  # at the least
DISTINCT = 1000  # small kernels of distinct shapes
DROPPED = 100_000
IMPORTS = 7


def calls():
    """{row: (tiny's call, torch's or None)} of single calls."""
    import numpy
    import torch

    import tiny

    values = numpy.arange(6, dtype="float32").reshape(2, 3)
    a, b = tiny.Tensor(values).realize(), tiny.Tensor(values).realize()
    c, d = torch.tensor(values), torch.tensor(values)
    transposed, flipped = tiny.Tensor(values.T.copy()).realize(), torch.tensor(values.T.copy())
    add = tiny.TinyJit(lambda x: x + 1)
    for _ in range(3):
        add(a)
    run = add.captured.run
    leaf, other = tiny.Tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    return {
        "a + b": (lambda: a + b, lambda: c + d),
        "2 * a": (lambda: 2 * a, lambda: 2 * c),
        "a @ b": (lambda: a @ transposed, lambda: c @ flipped),
        "a < b": (lambda: a < b, lambda: c < d),
        "-a": (lambda: -a, lambda: -c),
        "a.exp()": (lambda: a.exp(), lambda: c.exp()),
        "a.sum(1)": (lambda: a.sum(1), lambda: c.sum(1)),
        "a.reshape(3, 2)": (lambda: a.reshape(3, 2), lambda: c.reshape(3, 2)),
        "a.T": (lambda: a.T, lambda: c.T),
        "a[1]": (lambda: a[1], lambda: c[1]),
        "a.shape": (lambda: a.shape, lambda: c.shape),
        "a.dtype": (lambda: a.dtype, lambda: c.dtype),
        "a + leaf": (lambda: a + leaf, lambda: c + other),
        "Tensor of a list of 3": (lambda: tiny.Tensor([1.0, 2.0, 3.0]), lambda: torch.tensor([1.0, 2.0, 3.0])),
        "Tensor of an array of 6": (lambda: tiny.Tensor(values), lambda: torch.tensor(values)),
        "numpy() of 6": (lambda: a.numpy(), lambda: c.numpy()),
        "TinyJit replay of one kernel": (lambda: add(a), lambda: c + 1),
        "its Run.execute alone": (run.execute, None),
    }


def best_of(pair, seconds):
    """Microseconds of a call, the least of all turns, of each contender."""
    found = [float("inf")] * len(pair)
    end, turn = time.perf_counter() + seconds, 0
    while turn < TURNS or time.perf_counter() < end:
        for i, call in enumerate(pair):
            if call is None:
                continue
            begin = time.perf_counter()
            for _ in range(CALLS):
                call()
            found[i] = min(found[i], (time.perf_counter() - begin) / CALLS * 1e6)
        turn += 1
    return found


def distinct_adds(base):
    """Milliseconds of realising many small additions of distinct shapes, which no kernel was made for yet."""
    import torch

    import tiny

    context = tiny.Context(cache=0)
    ours = [context.full("float32", [base, i + 1], 1.0).contiguous() for i in range(DISTINCT)]
    tiny.realize(ours)
    theirs = [torch.ones(base, i + 1) for i in range(DISTINCT)]
    begin = time.perf_counter()
    tiny.realize([x + x for x in ours])
    middle = time.perf_counter()
    kept = [x + x for x in theirs]
    end = time.perf_counter()
    assert len(kept) == DISTINCT
    return (middle - begin) * 1e3, (end - middle) * 1e3


def import_milliseconds(name):
    """Of a new process beyond an empty one, its modules compiled before."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def best(statement):
            times = []
            for _ in range(IMPORTS):
                begin = time.perf_counter()
                subprocess.run([sys.executable, "-c", statement], env=environment, check=True)
                times.append(time.perf_counter() - begin)
            return min(times) * 1e3
        return best(f"import {name}") - best("pass")


def dropped_kilobytes():
    """By which the process grows over many tensors that are made and dropped."""
    import tiny

    def resident():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024

    def work(count):
        for _ in range(count):
            tiny.Tensor([1.0, 2.0, 3.0])
    work(DROPPED // 10)
    before = resident()
    work(DROPPED)
    return resident() - before


def run(arguments):
    """The part "python" of bench/run: its figures and its table."""
    figures, lines = [], []

    def add(name, value, unit, peer=None):
        target = at_most(f"python: {name}", value)
        figures.append({"name": name, "value": value, "unit": unit, "torch": peer, "target": target})
        shown = "" if peer is None or peer == float("inf") else f"{peer:.2f}"
        lines.append([name, f"{value:.2f}", unit, shown, target])

    wanted = lambda name: arguments.only in name
    for name, pair in calls().items():
        if wanted(name):
            ours, theirs = best_of(pair, arguments.duration)
            add(name, ours, "us", theirs)
    if wanted("small adds of distinct shapes"):
        times = [distinct_adds(base) for base in range(3, 3 + (3 if arguments.quick else 7))]
        ours, theirs = map(min, zip(*times))
        add("1,000 small adds of distinct shapes", ours, "ms", theirs)
    if wanted("import"):
        add("import", import_milliseconds("tiny"), "ms", import_milliseconds("torch"))
    if wanted("100,000 tensors made and dropped"):
        add("100,000 tensors made and dropped", dropped_kilobytes(), "KB")
    return {"figures": figures}, table(["call", "tiny", "", "torch", "target"], lines)
