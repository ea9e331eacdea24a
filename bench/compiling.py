"""From a model's file to its first output, and what a run costs beside its kernels.

    compiling.py MODEL          prints the milliseconds of onnxruntime's session and first run
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import models
from report import at_most, json_of, median, table

COLD = 5  # new processes of each kind
NETWORK = "resnet50"
REPLAYED = ("resnet50", "squeezenet", "transformer", "magika")
COMPUTES_SHAPES = ("magika",)  # a device that computes nothing cannot compile these


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


def compile_rows(tiny, path):
    """Times of the passes over the whole model, and of single kernels where there is a trace."""
    command = [tiny, "run", path, "--synth", "uniform", "--json", "-q"]
    runs = [json_of(command, environment()) for _ in range(COLD)]
    times = {key: median([run["times_ms"][key] for run in runs])
             for key in ("load", "schedule", "compile", "init")}
    count = runs[0]["kernels"]["compiled"]
    with tempfile.TemporaryDirectory() as folder:
        json_of(command, environment(TINY_PROFILE="1", TINY_OUT_DIR=folder))
        spans = kernel_spans(pathlib.Path(folder))
    # Without a trace the mean stands in for the median, which is smaller.
    times["kernel"] = median(spans) if spans else times["compile"] / max(count, 1)
    times["kernel_is"] = "median" if spans else "mean"
    times["graph_to_code"] = times["schedule"] + times["compile"]
    return {"compiled": count, **times}


def timed(command, env):
    start = time.perf_counter()
    done = subprocess.run([str(part) for part in command], env=env, stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}")
    return (time.perf_counter() - start) * 1e3


def cold_rows(tiny, path):
    """Alternating new processes: whole processes of tiny, onnxruntime without Python's own start."""
    command = [tiny, "run", path, "--synth", "uniform", "--json", "-q"]
    cache = tempfile.mkdtemp()
    cached = environment(TINY_CACHE="1", TINY_CACHE_DIR=cache)
    samples = {"tiny": [], "tiny, disk cache": [], "onnxruntime": []}
    try:
        timed(command, cached)
        has_cache = any(pathlib.Path(cache).iterdir())
        for _ in range(COLD):
            samples["tiny"].append(timed(command, environment()))
            if has_cache:
                samples["tiny, disk cache"].append(timed(command, cached))
            peer = json_of([sys.executable, "-B", __file__, path])
            samples["onnxruntime"].append(peer["session_and_first_run_ms"])
    finally:
        shutil.rmtree(cache)
    return {name: {"best_ms": min(taken), "median_ms": median(taken)}
            for name, taken in samples.items() if taken}


def replay_rows(tiny, paths, seconds):
    """What a run costs beside its kernels, per kernel, and what it allocates.

    `overhead_us` is what `tiny bench` finds beside the time of the kernels; `empty_us` is the same
    tape on the device that computes nothing, where this build has one.
    """
    devices = json_of([tiny, "devices", "--json"])["devices"]
    has_null = any(device["name"] == "null" for device in devices)
    rows = []
    for name in REPLAYED:
        if name not in paths:
            continue
        command = [tiny, "bench", paths[name], "--synth", "uniform", "--json", "-q",
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


def stripped_megabytes(library):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "libtiny.so"
        subprocess.run(["strip", "-o", copy, library], check=True)
        return copy.stat().st_size / 1e6


def run(arguments):
    """The part "compile" of bench/run: its figures and its table."""
    tiny = arguments.build / "tools/tiny"
    paths = models.found(arguments.models)
    if NETWORK not in paths:
        raise SystemExit(f"no {NETWORK} in {arguments.models}")
    result = {"network": NETWORK, "settings": []}
    cells = []

    def add(name, figure, unit, target=""):
        cells.append([name, f"{figure:.2f} {unit}", target])

    print(f"bench: compiling {NETWORK}", file=sys.stderr)
    result["compile"] = times = compile_rows(tiny, paths[NETWORK])
    add(f"{NETWORK}: import and schedule", times["schedule"], "ms")
    add(f"{NETWORK}: code of {times['compiled']} kernels", times["compile"], "ms")
    add("schedule and code, all kernels", times["graph_to_code"], "ms",
        at_most("compile: all kernels", times["graph_to_code"]))
    add(f"{times['kernel_is']} of a kernel's code", times["kernel"], "ms",
        at_most("compile: median of a kernel", times["kernel"]))
    result["cold"] = cold = cold_rows(tiny, paths[NETWORK])
    for name, taken in cold.items():
        ratio = cold["onnxruntime"]["median_ms"] / taken["median_ms"]
        add(f"new process to first output, {name}", taken["median_ms"], "ms", f"ratio {ratio:.2f}")
    if "tiny, disk cache" not in cold:
        result["settings"].append("this build keeps no kernels on disk: no row with the disk cache")
    result["replay"] = replay_rows(tiny, paths, arguments.duration)
    for row in result["replay"]:
        for key, what in (("overhead_us", "overhead beside"), ("empty_us", "the tape without")):
            if key in row:
                add(f"{row['name']}: {what} {row['kernels']} kernels, each", row[key], "us",
                    at_most("replay overhead of a kernel", row[key]))
        add(f"{row['name']}: allocations of a run", row["allocations"], "")
    result["stripped_mb"] = size = stripped_megabytes(arguments.build / "libtiny.so")
    add("libtiny.so, stripped", size, "MB", at_most("libtiny.so, stripped", size))
    return result, table(["what", "figure", "target"], cells)


def first_run(path):
    """Making the session and running it once; neither Python's start nor the inputs' making."""
    import onnxruntime  # noqa: F401

    start = time.perf_counter()
    session = models.peer_session(path)
    made = time.perf_counter()
    arrays = models.inputs_of(path, session)
    begin = time.perf_counter()
    session.run(None, arrays)
    return (made - start + time.perf_counter() - begin) * 1e3


if __name__ == "__main__":
    print(json.dumps({"session_and_first_run_ms": first_run(pathlib.Path(sys.argv[1]))}))
