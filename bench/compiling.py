"""From a model's file to its first output, and what a run costs beside its kernels.

    compiling.py onnxruntime MODEL [LENGTH]   a new process's session and first run, as JSON
    compiling.py tinygrad MODEL               the same of tinygrad
"""

import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import models
import peers
from report import at_least, at_most, json_of, median, table

COLD = 5  # new processes of each kind
NETWORK = "resnet50"
REPLAYED = ("resnet50", "squeezenet", "transformer", "magika")
COMPUTES_SHAPES = ("magika",)  # a device that computes nothing cannot compile these
TINYGRAD_SECONDS = 60


def environment(**extra):
    return {**os.environ, "TINY_CACHE": "0", **extra}


def kernel_spans(folder):
    """Milliseconds of each kernel's compilation, out of the traces in a folder."""
    spans = []
    for path in folder.glob("*.json"):
        trace = json.loads(path.read_text())
        for event in trace["traceEvents"] if isinstance(trace, dict) else trace:
            if event.get("cat") == "compile" and not event["name"].startswith("load "):
                spans.append(event["dur"] / 1e3)
    return spans


def run_command(tiny, path, threads=1):
    return [tiny, "run", path, "--synth", "uniform", "--json", "-q", "--threads", threads]


def medians_of(runs):
    times = {key: median([run["times_ms"][key] for run in runs])
             for key in ("load", "schedule", "compile", "init")}
    times["graph_to_code"] = times["schedule"] + times["compile"]
    return times


def compile_rows(tiny, path, count):
    """Times of the passes over the whole model, and of single kernels where there is a trace."""
    command = run_command(tiny, path)
    runs = [json_of(command, environment()) for _ in range(count)]
    times = {"compiled": runs[0]["kernels"]["compiled"], **medians_of(runs)}
    with tempfile.TemporaryDirectory() as folder:
        json_of(command, environment(TINY_PROFILE="1", TINY_OUT_DIR=folder))
        spans = kernel_spans(pathlib.Path(folder))
    runs = [json_of(run_command(tiny, path, 2), environment()) for _ in range(count)]
    times["two_threads"] = medians_of(runs)
    # Without a trace the mean stands in for the median, which is smaller.
    times["kernel"] = median(spans) if spans else times["compile"] / max(times["compiled"], 1)
    times["kernel_is"] = "median" if spans else "mean"
    with tempfile.TemporaryDirectory() as cache:
        cached = environment(TINY_CACHE="1", TINY_CACHE_DIR=cache)
        json_of(command, cached)
        times["cached"] = medians_of([json_of(command, cached) for _ in range(count)])
    return times


def watched(helper, command, env):
    """Milliseconds of a whole process, the most memory that it had in MB, and what it printed.

    `helper` is bench_peak_memory: neither what this process has nor the time to start the helper is
    counted as the other's.
    """
    with tempfile.NamedTemporaryFile() as measured:
        done = subprocess.run([str(part) for part in (helper, measured.name, *command)], env=env,
                              stdout=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]} ended with {done.returncode}")
        kilobytes, ms = pathlib.Path(measured.name).read_text(encoding="utf-8").split()
    return float(ms), int(kilobytes) / 1024, json.loads(done.stdout)


def cold_rows(tiny, path, count):
    """Alternating new processes: whole ones of tiny, onnxruntime without Python's own start."""
    command = run_command(tiny, path)
    helper = pathlib.Path(tiny).parents[1] / "bench" / "bench_peak_memory"
    cache = tempfile.mkdtemp()
    cached = environment(TINY_CACHE="1", TINY_CACHE_DIR=cache)
    samples = {"tiny": [], "tiny, disk cache": [], "onnxruntime": []}
    try:
        watched(helper, command, cached)
        for _ in range(count):
            for name, env in (("tiny", environment()), ("tiny, disk cache", cached)):
                samples[name].append(watched(helper, command, env)[:2])
            theirs = [sys.executable, "-B", __file__, "onnxruntime", path]
            peer = watched(helper, theirs, environment())[2]
            samples["onnxruntime"].append((peer["ms"], peer["memory_mb"]))
    finally:
        shutil.rmtree(cache)
    return {name: {"best_ms": min(ms for ms, _ in taken), "median_ms": median([ms for ms, _ in taken]),
                   "memory_mb": median([mb for _, mb in taken])}
            for name, taken in samples.items()}  # fmt: skip


def replay_rows(tiny, paths, seconds):
    """What a run costs beside its kernels, per kernel, and what it allocates.

    `overhead_us` is what `tiny bench` finds beside the time of the kernels; `empty_us` is the same
    tape on the device that computes nothing, where this build has one.
    """
    devices = json_of([tiny, "devices", "--json"])["devices"]
    has_null = any(device["name"] == "null" for device in devices)
    rows = []
    for name, path in paths.items():
        command = [tiny, "bench", path, "--synth", "uniform", "--json", "-q",
                   "--threads", "1", "--profile", "--duration", seconds]
        result = json_of(command, environment())["results"][0]
        row = {"name": name, "kernels": len(result["kernels"]),
               "overhead_us": result["overhead_us_per_kernel"],
               "allocations": result["allocations_per_run"]}
        if has_null and name not in COMPUTES_SHAPES:
            empty = json_of(command + ["--device", "null"], environment())["results"][0]
            row["empty_us"] = empty["ms"]["p50"] * 1e3 / row["kernels"]
        rows.append(row)
    return rows


def tinygrad_row(path):
    """Its first run of the network in a new process, everything compiled; or why there is none."""
    if not peers.installed("tinygrad"):
        return {"why": "not installed"}
    command = [sys.executable, "-B", __file__, "tinygrad", path]
    env = {**os.environ, "CACHELEVEL": "0"}
    env.pop("OMP_NUM_THREADS", None)
    compiler = shutil.which("clang-19") or shutil.which("clang")
    if compiler:
        env["CC"] = compiler
    try:
        done = subprocess.run([str(part) for part in command], env=env, capture_output=True,
                              text=True, timeout=TINYGRAD_SECONDS)  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"why": f"not done in {TINYGRAD_SECONDS} s"}
    if done.returncode != 0:
        return {"why": done.stderr.strip().splitlines()[-1][:120]}
    return json.loads(done.stdout.splitlines()[-1])


def stripped_megabytes(library):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "libtiny.so"
        subprocess.run(["strip", "-o", copy, library], check=True)
        return copy.stat().st_size / 1e6


class Figures:
    """The part's table: each figure with its unit, a ratio where there is one, and its target."""

    def __init__(self):
        self.rows = []

    def add(self, name, figure, unit, target="", ratio=None):
        self.rows.append({"name": name, "figure": figure, "unit": unit, "ratio": ratio,
                          "target": target})  # fmt: skip

    def text(self):
        shown = lambda value: value if isinstance(value, str) else f"{value:.2f}"
        cells = [[row["name"], f"{shown(row['figure'])} {row['unit']}",
                  "" if row["ratio"] is None else f"{row['ratio']:.2f}", row["target"]]
                 for row in self.rows]  # fmt: skip
        return table(["what", "figure", "ratio", "target"], cells)


def add_compile(figures, tiny, path, count, has_tinygrad):
    times = compile_rows(tiny, path, count)
    figures.add(f"{NETWORK}: import and schedule", times["schedule"], "ms")
    figures.add(f"{NETWORK}: code of {times['compiled']} kernels", times["compile"], "ms")
    figures.add(f"{NETWORK}: schedule and code, cold", times["graph_to_code"], "ms",
                at_most("compile: all kernels", times["graph_to_code"]))
    figures.add(f"{NETWORK}: schedule and code, cold, 2 threads",
                times["two_threads"]["graph_to_code"], "ms")
    figures.add(f"{NETWORK}: schedule and code, disk cache", times["cached"]["graph_to_code"], "ms",
                at_most("compile: all kernels, disk cache", times["cached"]["graph_to_code"]))
    figures.add(f"{NETWORK}: constants computed once", times["init"], "ms")
    figures.add(f"{times['kernel_is']} of a kernel's code", times["kernel"], "ms",
                at_most("compile: median of a kernel", times["kernel"]))
    theirs = tinygrad_row(path) if has_tinygrad else {"why": "left out by --quick"}
    if "ms" not in theirs:
        figures.add(f"{NETWORK}: first run of tinygrad", theirs["why"], "")
        return times
    ours = times["graph_to_code"] + times["init"]
    figures.add(f"{NETWORK}: first run of tinygrad, {theirs['cpu_s']:.0f} s of CPU", theirs["ms"],
                "ms", at_least("tinygrad", theirs["ms"] / ours), theirs["ms"] / ours)  # fmt: skip
    return times


def add_start(figures, name, cold):
    theirs = cold["onnxruntime"]
    for kind, key in (("tiny", "start, no cache"), ("tiny, disk cache", "start, disk cache")):
        ratio = theirs["median_ms"] / cold[kind]["median_ms"]
        figures.add(f"{name}: new process to first output, {kind}", cold[kind]["median_ms"], "ms",
                    at_least(key, ratio), ratio)
    figures.add(f"{name}: session and first run, onnxruntime", theirs["median_ms"], "ms")
    ratio = theirs["memory_mb"] / cold["tiny"]["memory_mb"]
    figures.add(f"{name}: peak memory of the process, tiny", cold["tiny"]["memory_mb"], "MB",
                at_least("peak memory", ratio), ratio)
    figures.add(f"{name}: peak memory less Python's, onnxruntime", theirs["memory_mb"], "MB")


def add_replay(figures, row):
    for key, what in (("overhead_us", "overhead beside"), ("empty_us", "the tape without")):
        if key in row:
            figures.add(f"{row['name']}: {what} {row['kernels']} kernels, each", row[key], "us",
                        at_most("replay overhead of a kernel", row[key]))
    figures.add(f"{row['name']}: allocations of a run", row["allocations"], "")


def run(arguments):
    """The part "compile" of bench/run: its figures and its table."""
    tiny = arguments.build / "tools/tiny"
    paths = {name: path for name, (path, _) in models.found(arguments.models).items()}
    if NETWORK not in paths:
        raise SystemExit(f"no {NETWORK} in {arguments.models}")
    count = 2 if arguments.quick else COLD
    some = lambda names: {n: paths[n] for n in (names[:1] if arguments.quick else names) if n in paths}
    result, figures = {}, Figures()
    print(f"bench: compiling {NETWORK}", file=sys.stderr)
    result["compile"] = add_compile(figures, tiny, paths[NETWORK], count,
                                              not arguments.quick)  # fmt: skip
    result["cold"] = {}
    for name, path in some((NETWORK, *(name for name in paths if name != NETWORK))).items():
        print(f"bench: starting {name}", file=sys.stderr)
        result["cold"][name] = cold_rows(tiny, path, count)
        add_start(figures, name, result["cold"][name])
    result["replay"] = replay_rows(tiny, some(REPLAYED), arguments.duration)
    for row in result["replay"]:
        add_replay(figures, row)
    size = stripped_megabytes(arguments.build / "libtiny.so")
    figures.add("libtiny.so, stripped", size, "MB", at_most("libtiny.so, stripped", size))
    settings = peers.settings_lines(("onnxruntime", "tinygrad"))
    return {**result, "figures": figures.rows, "settings": settings}, figures.text()


def onnxruntime_start(path):
    """Making the session and running it once; neither Python's start nor the inputs' making."""
    import numpy  # noqa: F401

    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    import onnxruntime  # noqa: F401

    start = time.perf_counter()
    session = peers.session_of(str(path), 1)
    made = time.perf_counter()
    # Without the model's data set, whose reader would be counted as memory.
    arrays = models.inputs_of(path.parent / "none" / path.name, session, 32)
    begin = time.perf_counter()
    session.run(None, arrays)
    ms = (made - start + time.perf_counter() - begin) * 1e3
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"ms": ms, "memory_mb": (most - base) / 1024}


def tinygrad_start(path):
    import numpy
    from tinygrad import Tensor
    from tinygrad.nn.onnx import OnnxRunner

    used = lambda: sum(sum(resource.getrusage(who)[:2])
                       for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))  # fmt: skip
    runner = OnnxRunner(str(path))
    image = numpy.random.default_rng(7).standard_normal((1, 3, 224, 224)).astype("float32")
    before, start = used(), time.perf_counter()
    made = runner({next(iter(runner.graph_inputs)): Tensor(image)})
    next(iter(made.values())).numpy()
    return {"ms": (time.perf_counter() - start) * 1e3, "cpu_s": used() - before}


if __name__ == "__main__":
    kinds = {"onnxruntime": onnxruntime_start, "tinygrad": tinygrad_start}
    print(json.dumps(kinds[sys.argv[1]](pathlib.Path(sys.argv[2]))))
