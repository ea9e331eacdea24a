"""What single joins of kernels are worth: each decided the other way, beside what the cost said.

For every model the legal joins whose cost speaks clearest, one of each kind.  Two contexts in which the join
alone is flipped take turns with two of the network as it is.  Compared are the kernels that are not in both,
each by its own time: a whole run differs by more from one context to the next, since memory lies elsewhere.
Winograd's tiles are left out, as they hide the joins of the convolutions that they replace.

With --fit the weights of the cost (src/schedule/join_cost.cpp) are fitted to what was measured.
"""

import difflib
import gc
import json
import pathlib
import random
import re
import statistics
import time

import models
import peers
from report import table

LINE = re.compile(r"^join (\d+): (\w+ \[.*\]), saves (-?[\d.]+) us, pays (-?[\d.]+) us: (\w+) \((.*)\)$", re.M)
NAMES = ("squeezenet", "mobilenet_v2", "shufflenet", "inception_v1", "inception_v2", "bvlc_alexnet", "densenet121",
         "transformer", "magika", "bert_base_17 at 32")  # fmt: skip
OF_A_MODEL = 8
CONTEXTS = 2  # of each side
RUNS = 3  # of a turn that are timed, after one that is not
TURNS_MIN = 4
SAVED = ("launch", "traffic", "hidden", "kept")
PAID = ("recomputed", "operand", "convolved", "pooled", "panels")
THREADS = (1, 2)  # the cost is that on two
REWRITES = 1.0  # a join worth such a part of its kernels changes what they are, and is not fitted
FITTED_MIN = 6  # joins that have a microsecond of a part and more: fewer say nothing of its weight
DOUBT_US, DOUBT = 1.0, 0.03  # of a measurement: microseconds, and parts of the kernels


class Network:
    """A model in a context of its own, whose kernels are timed."""

    def __init__(self, path, arrays, threads, **options):
        self.model = peers.TinyModel(path, arrays, threads, wino="0", **options)
        self.model.run.set_timed(1)
        described = json.loads(self.model.program.kernels().text())
        self.kernels = [(k["name"], str(k["options"]), k["operations"], k["bytes"]) for k in described]
        self.samples = []
        self.beside = []  # what launches take

    def turn(self):
        run = self.model.run
        run.execute()
        for _ in range(RUNS):
            begin = time.perf_counter()
            run.execute()
            seconds = time.perf_counter() - begin
            self.samples.append(list(run.kernel_seconds))
            self.beside.append(seconds - sum(self.samples[-1]))

    def microseconds(self, kernels):
        """Of these kernels, and of launching them: the lower quartile of each."""
        launch = quartile(self.beside) / len(self.kernels)
        return sum((quartile(s[k] for s in self.samples) + launch) * 1e6 for k in kernels)


def quartile(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 4]


def joins_of(path, arrays, threads):
    """[{join, value, joined, parts, predicted_us}], one of each kind, the clearest first."""
    told = []
    Network(path, arrays, threads, debug=5, log=told.append)
    found = {}
    for number, value, saves, pays, decided, parts in LINE.findall("".join(told)):
        parts = {name: float(us) for name, us in re.findall(r"(\w+) (-?[\d.]+)", parts)}
        kind = (value, saves, pays, decided)
        found.setdefault(kind, {"join": int(number), "value": value, "joined": decided == "joined",
                                "parts": parts, "predicted_us": float(saves) - float(pays)})  # fmt: skip
    return sorted(found.values(), key=lambda join: -abs(join["predicted_us"]))[:OF_A_MODEL]


def measured(join, bases, others, seconds):
    """What the join gains, what contexts differ by, and what its kernels take as it was decided."""
    networks = bases + others
    end = time.perf_counter() + seconds
    turns = 0
    for network in networks:
        network.samples.clear()
    while turns < TURNS_MIN or time.perf_counter() < end:
        for network in random.sample(networks, len(networks)):
            network.turn()
        turns += 1
    ours, theirs = [], []
    matcher = difflib.SequenceMatcher(None, bases[0].kernels, others[0].kernels, autojunk=False)
    for tag, begin, stop, other_begin, other_stop in matcher.get_opcodes():
        if tag != "equal":
            ours += range(begin, stop)
            theirs += range(other_begin, other_stop)
    base = [network.microseconds(ours) for network in bases]
    flipped = [network.microseconds(theirs) for network in others]
    difference = statistics.mean(flipped) - statistics.mean(base)
    noise = max(base) - min(base) + max(flipped) - min(flipped)
    return (difference if join["joined"] else -difference), noise, statistics.mean(base)


def rows_of(name, path, length, threads, duration):
    arrays = models.inputs_of(path, peers.session_of(str(path), 1), length)
    joins = joins_of(path, arrays, threads)
    bases = [Network(path, arrays, threads) for _ in range(CONTEXTS)]
    for join in joins:
        others = [Network(path, arrays, threads, flip_joins=str(join["join"])) for _ in range(CONTEXTS)]
        gain, noise, kernels = measured(join, bases, others, duration)
        clear = abs(gain) > noise
        right = "noise" if not clear else "yes" if (gain > 0) == join["joined"] else "NO"
        yield {"model": name, "threads": threads, **join, "measured_us": gain, "noise_us": noise,
               "kernels_us": kernels, "right": right}  # fmt: skip
        del others
        gc.collect()


def is_fitted(row):
    return row["threads"] == max(THREADS) and abs(row["measured_us"]) < REWRITES * row["kernels_us"]


def predicted(weights, row):
    return sum((1 if part in SAVED else -1) * weights[part] * us for part, us in row["parts"].items())


def seen(rows, part):
    return sum(abs(row["parts"].get(part, 0)) >= 1 for row in rows)


def fitted(rows, ours):
    """Weights, none below zero, by least squares; a row counts by how well it is known."""
    import numpy

    names = [part for part in SAVED + PAID if seen(rows, part) >= FITTED_MIN]
    doubt = numpy.array([DOUBT_US + DOUBT * row["kernels_us"] + row["noise_us"] for row in rows])
    rest = {part: 0.0 if part in names else weight for part, weight in ours.items()}
    matrix = numpy.array([[(1 if part in SAVED else -1) * row["parts"].get(part, 0.0) for part in names]
                          for row in rows]) / doubt[:, None]  # fmt: skip
    wanted = numpy.array([row["measured_us"] - predicted(rest, row) for row in rows]) / doubt
    kept = list(range(len(names)))
    while kept:
        weights = numpy.linalg.lstsq(matrix[:, kept], wanted, rcond=None)[0]
        if weights.min() >= 0:
            break
        kept.pop(int(weights.argmin()))
    values = dict.fromkeys(names, 0.0)
    values.update({names[k]: float(weight) for k, weight in zip(kept, weights)})
    return values


def weights_in_source(root):
    text = (root / "src/schedule/join_cost.cpp").read_text()
    return {name: float(weight) for name, weight in re.findall(r'\{"(\w+)", \w+, ([\d.]+)\}', text)}


def fit_text(rows, root):
    rows = [row for row in rows if is_fitted(row)]
    ours = weights_in_source(root)
    new = fitted(rows, ours)
    lines = []
    for part in SAVED + PAID:
        lines.append([part, "saved" if part in SAVED else "paid", seen(rows, part), f"{ours[part]:.2f}",
                      f"{new[part]:.2f}" if part in new else "-"])  # fmt: skip

    def decided(weights, row):
        return (predicted({**ours, **weights}, row) >= 0) == (row["measured_us"] >= 0)

    clear = [row for row in rows if row["right"] != "noise"]
    right = [sum(decided(weights, row) for row in clear) for weights in (ours, new)]
    return (table(["part", "is", "joins", "weight in the source", "fitted"], lines) +
            f"\n\nof {len(clear)} measurable joins {right[0]} right with the source's weights, {right[1]} with the fitted")


def rows_text(rows):
    lines = []
    for row in rows:
        parts = ", ".join(f"{part} {us:.1f}" for part, us in row["parts"].items())
        lines.append([row["model"], row["threads"], row["join"], row["value"],
                      "joined" if row["joined"] else "apart", parts, f"{row['predicted_us']:.1f}",
                      f"{row['measured_us']:.1f}", f"{row['noise_us']:.1f}", f"{row['kernels_us']:.0f}",
                      row["right"]])  # fmt: skip
    header = ["model", "threads", "join", "value", "decided", "parts of the cost, us", "gain by cost, us", "measured, us",
              "noise, us", "kernels, us", "right"]  # fmt: skip
    wrong = sum(row["right"] == "NO" for row in rows)
    clear = sum(row["right"] != "noise" for row in rows)
    return table(header, lines) + f"\n\n{len(rows)} joins, {clear} of them measurable, {wrong} decided wrongly"


def run(arguments):
    entries = models.found(arguments.models)
    if arguments.large:
        entries |= models.found(arguments.large)
    rows = []
    for name in NAMES:
        if name not in entries or arguments.only not in name:
            continue
        for threads in THREADS:
            rows += rows_of(name, *entries[name], threads, arguments.duration)
    text = rows_text(rows)
    if arguments.fit:
        text += "\n\n" + fit_text(rows, pathlib.Path(__file__).parents[1])
    return {"rows": rows}, text
