"""Single operations: bench_kernels beside oneDNN and OpenBLAS, graphs.py beside the wheels."""

import os
import pathlib
import sys

from report import join_rows, json_of, rows_text

# Threads, vectors, and the environment that holds the peers to both.  OpenBLAS takes its AVX2
# kernels on some processors that have AVX-512, and spins for long between calls.
SETTINGS = [(1, "auto"), (2, "auto"), (1, "avx2")]


def environment(threads, isa="auto"):
    wide = "avx512dq" in pathlib.Path("/proc/cpuinfo").read_text()
    extra = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads),
             "TINY_THREADS": str(threads), "OPENBLAS_THREAD_TIMEOUT": "20"}  # fmt: skip
    if isa == "avx2":
        extra |= {"DNNL_MAX_CPU_ISA": "AVX2", "OPENBLAS_CORETYPE": "Haswell"}
    elif wide:
        extra["OPENBLAS_CORETYPE"] = "SkylakeX"
    return {**os.environ, **extra}


def run(arguments):
    """The part "kernels" of bench/run: its figures and its table."""
    rows, settings = [], []
    for threads, isa in SETTINGS:
        command = [arguments.build / "bench/bench_kernels", "--threads", threads, "--isa", isa,
                   "--duration", arguments.duration, "--rounds", 5 if arguments.quick else 20,
                   "--only", arguments.only]  # fmt: skip
        result = json_of(command, environment(threads, isa))
        settings += [f"{threads} threads, {isa}: {line}" for line in result["settings"]]
        if (threads, isa) == SETTINGS[0]:
            command = [sys.executable, "-B", pathlib.Path(__file__).parent / "graphs.py",
                       arguments.duration, arguments.only]  # fmt: skip
            graphs = json_of(command, environment(threads))
            settings += graphs["settings"]
            result["rows"] = join_rows(result["rows"], graphs["rows"])
        rows += result["rows"]
    return {"rows": rows, "settings": settings}, rows_text(rows)
