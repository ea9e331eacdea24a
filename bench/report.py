"""What the parts of bench/ share: running programs, statistics, targets, tables of rows."""

import json
import math
import re
import subprocess

# What a row of contenders must reach, by the first pattern that its name matches; a number is the
# least of each: "ratio" is the best peer's time over tiny's, "scaling" one thread's time over
# that of several, "share" that of the machine's bound over tiny's.
ROW_TARGETS = [
    (r"^matmul (bf16|int8)", {"ratio": 0.9}),
    (r"^(MatMulInteger|QLinear|QDQ|dynamic int8)", {"ratio": 0.9}),
    (r"^matmul .*avx2$", {"ratio": 0.95}),
    (r"^matmul .*threads$", {"scaling": 1.9}),
    (r"^matmul ([17]x|.*constant B)", {"ratio": 1.0}),
    (r"^matmul ", {"ratio": 0.97}),
    (r"^conv .*(threads|avx2)$", {}),
    (r"^conv .*, direct$", {"ratio": 0.97}),
    (r"^conv 3x3 ", {"ratio": 1.25}),
    (r"^conv ", {"ratio": 0.97}),
    (r"^depthwise and pointwise ", {"ratio": 1.25}),
    (r"^depthwise ", {"ratio": 1.8}),
    (r"64 MB$", {"share": 0.9}),
    (r"^softmax", {"ratio": 1.1}),
    (r"^(relu|LayerNorm)", {"ratio": 1.5}),
    (r"^attention ", {"ratio": 1.1}),
    (r"^batch ", {"share": 0.9}),
    (r"^model ", {"ratio": 1 / 1.1}),
]
# Of figures: the most that they may be, or the least of ratios.
AT_MOST = {
    "compile: median of a kernel": 2.0,
    "compile: all kernels": 100.0,
    "compile: all kernels, disk cache": 20.0,
    "replay overhead of a kernel": 1.0,
    "libtiny.so, stripped": 5.0,
    "idle": 1.0,
    "python: a + b": 2.0,
    "python: Tensor of a list of 3": 4.0,
    "python: Tensor of an array of 6": 4.0,
    "python: TinyJit replay of one kernel": 4.0,
    "python: 1,000 small adds of distinct shapes": 20.0,
    "python: import": 60.0,
    "python: 100,000 tensors made and dropped": 2000.0,
    "regret: median": 1.05,
    "regret: 95 of 100 kernels": 1.35,
    "regret: greatest": 2.0,
}
AT_LEAST = {
    "models: geometric mean": 1 / 0.8,
    "start, no cache": 1.0,
    "start, disk cache": 2.0,
    "peak memory": 1.0,
    "beside a busy process": 1.0,
    "callers at once": 0.9,
    "tinygrad": 1.0,
    "run-time rows": 0.95,
    "run-time lengths": 0.95,
}
WORDS = {"ratio": "", "scaling": "of one thread ", "share": "of limit "}


def json_of(command, env=None):
    """The JSON object that a program prints; what it says on stderr is let through."""
    done = subprocess.run([str(part) for part in command], env=env, stdout=subprocess.PIPE)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}: "
                           f"{done.stdout.decode()[-2000:]}")
    return json.loads(done.stdout)


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def verdict(value, sign, bound, word=""):
    if value >= bound if sign == ">=" else value <= bound:
        return f"reached ({word}{sign} {bound:.3g})"
    return f"MISSED ({word}{value:.3g}, wanted {sign} {bound:.3g})"


def at_least(name, ratio):
    """ "reached" or "MISSED", or "" where the name has no target."""
    return verdict(ratio, ">=", AT_LEAST[name]) if name in AT_LEAST else ""


def at_most(name, figure):
    return verdict(figure, "<=", AT_MOST[name]) if name in AT_MOST else ""


def judged(row):
    """The verdict on a row that has been evaluated."""
    wanted = next((t for pattern, t in ROW_TARGETS if re.search(pattern, row["name"])), {})
    parts = [verdict(row[key], ">=", bound, WORDS[key])
             for key, bound in wanted.items() if row.get(key) is not None]  # fmt: skip
    reading = row.get("limit_scaling")
    if "scaling" in wanted and reading is not None and reading < wanted["scaling"]:
        parts.append(f"the bound is at {reading:.2f} of one thread, {row['share']:.0%} of it reached")
    if row["interpreted"]:
        parts.append(f"MISSED ({row['interpreted']} kernels interpreted)")
    return ", ".join(parts)


def table(header, rows):
    """A Markdown table with aligned columns: the first to the left, the others to the right."""
    cells = [header, *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]

    def line(row):
        first = row[0].ljust(widths[0])
        return "| " + " | ".join([first] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]) + " |"

    rule = "|" + "|".join(["-" * (widths[0] + 2)] + ["-" * (w + 1) + ":" for w in widths[1:]]) + "|"
    return "\n".join([line(cells[0]), rule, *map(line, cells[1:])])


def of_kind(row, kind):
    return [c for c in row["contenders"] if c["kind"] == kind]


def evaluate(row):
    """Adds to a row of contenders what its table shows."""
    ours = of_kind(row, "tiny")[0]
    best = lambda kind, key="best_ms": min((c[key] for c in of_kind(row, kind)), default=None)
    over = lambda theirs, key="best_ms": None if theirs is None else theirs / ours[key]
    row["best_ms"], row["median_ms"] = ours["best_ms"], ours["median_ms"]
    row["ratio"] = over(best("peer"))
    row["ratio_median"] = over(best("peer", "median_ms"), "median_ms")
    bounds = [b for b in (best("limit"), best("work limit")) if b is not None]
    row["share"] = over(max(bounds)) if bounds else None
    row["scaling"] = over(best("single"))
    one = best("one limit")
    row["limit_scaling"] = None if one is None else scaling_of_bound(row, one, bounds)
    row["best_peer"] = min(of_kind(row, "peer"), key=lambda c: c["best_ms"])["name"]
    row.setdefault("kernel_count", len(row.get("kernels", [])))
    row["target"] = judged(row)


def scaling_of_bound(row, one, bounds):
    """One thread's bound over that of all; arithmetic is shared by threads without a loss."""
    work = [c["best_ms"] * row["threads"] for c in of_kind(row, "work limit")]
    return max([one, *work]) / max(bounds)


def join_rows(first, second):
    """The rows of two processes; of one name, those figures where tiny stands worse beside a peer.

    Each ratio is within one process; the contenders of both are kept for the reader.
    """
    others = {row["name"]: row for row in second if "failed" not in row}
    joined = []
    for row in first:
        other = others.pop(row["name"], None)
        if other is None:
            joined.append(row)
            continue
        if "failed" in row:
            joined.append(other)
            continue
        evaluate(row), evaluate(other)
        worse, better = sorted((row, other), key=lambda r: r["ratio"])
        worse["elsewhere"] = better["contenders"]
        worse["notes"] = row.get("notes", []) + other.get("notes", [])
        joined.append(worse)
    failed = [row for row in second if "failed" in row]
    return joined + list(others.values()) + failed


def rows_text(rows):
    """Ratios of best and of median times: above 1, tiny is faster."""
    shown = lambda value: "" if value is None else f"{value:.2f}"
    percent = lambda value: "" if value is None else f"{value:.0%}"
    lines, everyone = [], []
    for row in rows:
        if "failed" in row:
            row["target"] = "MISSED (failed)"
            lines.append([row["name"], *[""] * 9, row["target"]])
            everyone.append([row["name"], row["failed"]])
            continue
        evaluate(row)
        work = row["flops"] or row["bytes"]
        rate = f"{work / row['best_ms'] / 1e6:.0f} {'GFLOPS' if row['flops'] else 'GB/s'}"
        lines.append([row["name"], f"{row['best_ms']:.3f}", f"{row['median_ms']:.3f}", rate,
                      row["best_peer"], shown(row["ratio"]), shown(row["ratio_median"]),
                      shown(row["scaling"]), percent(row["share"]),
                      f"{row['kernel_count']} / {row['interpreted']}", row["target"]])  # fmt: skip
        listed = lambda some: "; ".join(f"{c['name']} {c['best_ms']:.3f} / {c['median_ms']:.3f}"
                                        for c in some)  # fmt: skip
        parts = [listed(row["contenders"])]
        if "elsewhere" in row:
            parts.append("in the other process " + listed(row["elsewhere"]))
        everyone.append([row["name"], "; ".join(parts + row.get("notes", []))])
    header = ["row", "tiny best ms", "median", "rate", "best peer", "ratio", "of medians",
              "of one thread", "of limit", "kernels / interpreted", "target"]  # fmt: skip
    return (table(header, lines) + "\n\nAll contenders, best / median ms:\n\n"
            + table(["row", "contenders"], everyone))  # fmt: skip


def missed(result):
    """Names of rows and figures whose target was missed, from a part's result."""
    rows = result.get("rows", []) + result.get("figures", [])
    return [f"{row['name']}: {row['target']}" for row in rows if "MISSED" in row.get("target", "")]
