"""What single joins of kernels are worth: each decided the other way, beside what the cost said.

For every model the legal joins whose cost speaks clearest, one of each kind; a context for each, in which
it alone is flipped; runs take turns with those of the context as it is, and the best of each counts.
Winograd's tiles are left out, as they hide the joins of the convolutions that they replace.
"""

import re
import time

import models
import peers
from report import table

LINE = re.compile(r"^join (\d+): (\w+ \[.*\]), saves (-?[\d.]+) us, pays (-?[\d.]+) us: (\w+)$", re.M)
NAMES = ("squeezenet", "mobilenet_v2", "shufflenet", "densenet121", "resnet50", "inception_v1", "magika",
         "bert_base_17 at 32", "bert_base_23 at 128")  # fmt: skip
OF_A_MODEL = 6
ROUNDS = 15
BASES = 3  # contexts without a flip: what they differ by is no difference


def runner(path, arrays, **options):
    return peers.TinyModel(path, arrays, 1, wino="0", **options)


def joins_of(path, arrays):
    """[(number, what, predicted gain in us, joined)], one of each kind, the clearest first."""
    told = []
    runner(path, arrays, debug=5, log=told.append)
    found = {}
    for number, what, save, pay, decided in LINE.findall("".join(told)):
        kind = (what, save, pay, decided)
        found.setdefault(kind, (int(number), what, float(save) - float(pay), decided == "joined"))
    return sorted(found.values(), key=lambda join: -abs(join[2]))[:OF_A_MODEL]


def best_times(runs, seconds):
    best = [float("inf")] * len(runs)
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < ROUNDS or time.perf_counter() < end:
        for index, run in enumerate(runs):
            begin = time.perf_counter()
            run.run.execute()
            best[index] = min(best[index], time.perf_counter() - begin)
        rounds += 1
    return [seconds * 1e6 for seconds in best]


def run(arguments):
    entries = models.found(arguments.models)
    if arguments.large:
        entries |= models.found(arguments.large)
    rows, lines = [], []
    for name in NAMES:
        if name not in entries or arguments.only not in name:
            continue
        path, length = entries[name]
        arrays = models.inputs_of(path, peers.session_of(str(path), 1), length)
        joins = joins_of(path, arrays)
        runs = [runner(path, arrays) for _ in range(BASES)]
        runs += [runner(path, arrays, flip_joins=str(number)) for number, *_ in joins]
        times = best_times(runs, arguments.duration * len(runs))
        bases, flipped = times[:BASES], times[BASES:]
        base, noise = sorted(bases)[BASES // 2], max(bases) - min(bases)
        for (number, what, predicted, joined), other in zip(joins, flipped):
            gain = other - base if joined else base - other  # of the join
            clear = abs(gain) > noise
            right = "noise" if not clear else "yes" if (gain > 0) == joined else "NO"
            rows.append({"model": name, "join": number, "value": what, "joined": joined,
                         "predicted_us": predicted, "measured_us": gain, "noise_us": noise, "run_us": base, "right": right})
            lines.append([name, number, what, "joined" if joined else "apart", f"{predicted:.1f}",
                          f"{gain:.1f}", f"{noise:.1f}", f"{base:.0f}", right])
    header = ["model", "join", "value", "decided", "gain by cost, us", "measured, us", "noise, us", "run, us", "right"]
    wrong = sum(row["right"] == "NO" for row in rows)
    clear = sum(row["right"] != "noise" for row in rows)
    text = table(header, lines) + f"\n\n{len(rows)} joins, {clear} of them measurable, {wrong} decided wrongly"
    return {"rows": rows}, text
