"""How runs share the machine: what an idle engine uses, two threads beside a busy process, and more
callers at once than there are processors, each with threads of its own."""

import json
import multiprocessing
import os
import pathlib
import sys
import threading
import time

import models
import peers
import timing
from compiling import Figures
from kernels import environment
from report import at_least, at_most, json_of, median

IDLE_AFTER = 0.001  # seconds after a run
IDLE_FOR = 0.05
IDLE_TIMES = 20
TURN = 0.1
CALLERS = 4
FORGOTTEN = 0.5  # seconds after which a caller by itself has its threads again
NETWORKS = ("resnet18", "mobilenet_v2")


def idle_percent(run):
    """The processor time that this process uses in a while that begins 1 ms after a run."""
    shares = []
    for _ in range(IDLE_TIMES):
        run()
        time.sleep(IDLE_AFTER)
        cpu, start = time.process_time(), time.perf_counter()
        time.sleep(IDLE_FOR)
        shares.append((time.process_time() - cpu) / (time.perf_counter() - start) * 100)
    return median(shares)


def spin():
    while True:
        pass


def runs_a_second(callers, seconds):
    """How many runs in all do the callers finish that call at once, each from a thread of its own?"""
    counts = [0] * len(callers)
    start = threading.Barrier(len(callers) + 1)

    def call(index):
        start.wait()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            callers[index]()
            counts[index] += 1

    threads = [threading.Thread(target=call, args=(index,)) for index in range(len(callers))]
    for thread in threads:
        thread.start()
    start.wait()
    begin = time.perf_counter()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begin)


def oversubscribed(path, arrays, seconds):
    """Runs a second of a caller by itself and of several at once, by the threads of each: medians."""
    rates = {}
    for threads in (1, 2):
        callers = [peers.TinyModel(path, arrays, threads).run.execute for _ in range(CALLERS)]
        for caller in callers:
            caller()
        alone, together = [], []
        for caller in callers * 2:
            runs_a_second([caller], FORGOTTEN)
            alone.append(runs_a_second([caller], seconds / 20))
            together.append(runs_a_second(callers, seconds / 10))
        rates[threads] = {"alone": median(alone), "together": median(together)}
    return rates


def measure(path, seconds):
    """tiny on two threads and on one, and onnxruntime on two, while another process is busy."""
    session = peers.session_of(str(path), 2)
    arrays = models.inputs_of(path, session)
    reference = peers.onnxruntime_contender(session, arrays)
    two, one = (peers.TinyModel(path, arrays, threads) for threads in (2, 1))
    contenders = [two.contender(session, reference),
                  one.contender(session, reference, "tiny, one thread", "single"), reference]
    two.run.execute()
    idle = idle_percent(two.run.execute)
    quiet, _ = timing.measure(contenders, seconds, TURN, models.PAUSE)
    busy = multiprocessing.get_context("spawn").Process(target=spin, daemon=True)
    busy.start()
    try:
        time.sleep(0.5)
        crowded, _ = timing.measure(contenders, seconds, TURN, models.PAUSE)
    finally:
        busy.kill()
    return {"idle_percent": idle, "quiet": quiet, "crowded": crowded,
            "callers": oversubscribed(path, arrays, seconds)}  # fmt: skip


def run(arguments):
    """The part "sharing" of bench/run: its figures and its table."""
    result, figures = {}, Figures()
    paths = models.found(arguments.models)
    for name in NETWORKS[:1] if arguments.quick else NETWORKS:
        if name not in paths:
            continue
        print(f"bench: sharing the machine, {name}", file=sys.stderr)
        command = [sys.executable, "-B", __file__, paths[name][0], arguments.duration]
        result[name] = row = json_of(command, environment(2))
        figures.add(f"{name}: CPU of an idle engine, 1 ms after a run on two threads",
                    row["idle_percent"], "% of a core", at_most("idle", row["idle_percent"]))  # fmt: skip
        for state, text in (("quiet", ""), ("crowded", ", beside a busy process")):
            times = {c["name"]: c["median_ms"] for c in row[state]}
            ratio = times["tiny, one thread"] / times["tiny"]
            target = at_least("beside a busy process", ratio) if state == "crowded" else ""
            figures.add(f"{name}: two threads over one{text}", times["tiny"], "ms", target, ratio)
            figures.add(f"{name}: onnxruntime on two threads{text}", times["onnxruntime"], "ms", "",
                        times["onnxruntime"] / times["tiny"])
        rates = row["callers"]["2"]
        ratio = rates["together"] / rates["alone"]
        figures.add(f"{name}: {CALLERS} callers at once, two threads each, over one by itself",
                    1e3 / rates["together"], "ms", at_least("callers at once", ratio), ratio)  # fmt: skip
    settings = [f"processors that may be used: {len(os.sched_getaffinity(0))}",
                *peers.settings_lines(("onnxruntime",))]  # fmt: skip
    return {"figures": figures.rows, "settings": settings, **result}, figures.text()


if __name__ == "__main__":
    print(json.dumps(measure(pathlib.Path(sys.argv[1]), float(sys.argv[2]))))
