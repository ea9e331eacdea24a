"""How far the chosen optimisations are from what a search finds, kernel by kernel.

Every kernel of a model, or of a random graph of an operation or two, is searched (BEAM=2) in a context without the
disk cache.  Kernels that run once (transforms of weights) are left out.  Regret is the time of the list that was
chosen over the time of the best that was found, each the least of many runs in turns.  The kernels with the most of
it are printed with both lists: the next gap is found by running this.
"""

import pathlib
import re
import statistics
import tempfile

import models
import peers
import random_graphs
from report import at_most, table

WIDTH = 2
SHORTEST_US = 2.0  # what takes less is launches and noise
WORST = 30  # kernels that are printed
NAMES = ("squeezenet", "mobilenet_v2", "shufflenet", "transformer")
RANDOM = 40  # graphs
BEGIN = re.compile(r"^search for the optimisations of (\S+), width .*?(, for one run)?:$", re.M)
END = re.compile(r"^ *[\d.]+s: +([\d.]+) us, the cost model's ([\d.]+) us, (\d+) candidates: (.*)$", re.M)
NO_BETTER = "the cost model's stays"
CHOSEN = re.compile(r"^ +the cost model's list: (.*)$", re.M)


def searched(name, path, arrays, threads):
    """[{model, threads, kernel, us, best_us, regret, list, chosen}] of the kernels that are long enough."""
    told = []
    peers.TinyModel(path, arrays, threads, beam=WIDTH, debug=1, cache=0, log=told.append)
    kernel, is_once, rows = "", False, []
    for line in "".join(told).splitlines():
        if begun := BEGIN.match(line):
            kernel, is_once = begun[1], begun[2] is not None
        elif (ended := END.match(line)) and not is_once:
            best, ours = float(ended[1]), float(ended[2])
            if ours >= SHORTEST_US:
                better = ended[4] != NO_BETTER
                rows.append({"model": name, "threads": threads, "kernel": kernel, "us": ours, "best_us": best,
                             "regret": max(ours / best, 1.0), "list": ended[4] if better else "",
                             "chosen": ""})  # fmt: skip
        elif (chosen := CHOSEN.match(line)) and rows and rows[-1]["kernel"] == kernel:
            rows[-1]["chosen"] = chosen[1]
    return rows


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def figures_of(rows):
    """What is wanted of all kernels together, with the verdict; targets stand in report.py."""
    regrets = [row["regret"] for row in rows]
    if not regrets:
        return []
    values = {"regret: median": statistics.median(regrets), "regret: 95 of 100 kernels": percentile(regrets, 0.95),
              "regret: greatest": max(regrets)}  # fmt: skip
    return [{"name": name, "figure": value, "target": at_most(name, value)} for name, value in values.items()]


def text_of(rows):
    if not rows:
        return "no kernel takes long enough"
    worst = sorted(rows, key=lambda row: -row["regret"])[:WORST]
    worst = [row for row in worst if row["list"]]
    lines = [[row["model"], row["threads"], row["kernel"], f"{row['us']:.1f}", f"{row['best_us']:.1f}",
              f"{row['regret']:.2f}"] for row in worst]  # fmt: skip
    header = ["model", "threads", "kernel", "us", "found, us", "regret"]
    lists = "\n".join(f"{row['kernel']}, {row['regret']:.2f}\n  chosen  {row['chosen']}\n  found   {row['list']}"
                      for row in worst)  # fmt: skip
    figures = [[f["name"], f"{f['figure']:.2f}", f["target"]] for f in figures_of(rows)]
    return (f"{len(rows)} kernels\n\n" + table(["figure", "ratio", "target"], figures) + "\n\n"
            + table(header, lines) + "\n\n" + lists)  # fmt: skip


def run(arguments):
    entries = models.found(arguments.models)
    wanted = [name for name in entries if arguments.only in name] if arguments.only else NAMES
    rows = []
    for name in wanted:
        if name not in entries:
            continue
        path, length = entries[name]
        arrays = models.inputs_of(path, peers.session_of(str(path), 1), length)
        rows += searched(name, path, arrays, 1)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(RANDOM):
            name = f"random {seed}"
            if arguments.only in name:
                graph, path = random_graphs.graph_of(seed), pathlib.Path(folder) / "graph.onnx"
                path.write_bytes(graph.model().SerializeToString())
                rows += searched(name, path, graph.inputs, 1)
    return {"rows": rows, "figures": figures_of(rows)}, text_of(rows)
