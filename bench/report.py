"""What the parts of bench/ share: running programs, statistics, tables, targets."""

import json
import math
import subprocess

# What a row must reach: the least ratio to the best peer, or the most of a figure.
TARGETS = {
    "matmul 512^3": 0.75,
    "conv 3x3 64->64 at 56": 0.60,
    "compile: median of a kernel": 2.0,
    "compile: all kernels": 300.0,
    "replay overhead of a kernel": 2.0,
    "libtiny.so, stripped": 3.0,
}


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


def at_least(name, ratio):
    """ "reached" or "MISSED", or "" where the row has no target."""
    if name not in TARGETS:
        return ""
    return f"{'reached' if ratio >= TARGETS[name] else 'MISSED'} (>= {TARGETS[name]:g})"


def at_most(name, figure):
    if name not in TARGETS:
        return ""
    return f"{'reached' if figure <= TARGETS[name] else 'MISSED'} (<= {TARGETS[name]:g})"


def table(header, rows):
    """A Markdown table with aligned columns: the first to the left, the others to the right."""
    cells = [header, *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]

    def line(row):
        first = row[0].ljust(widths[0])
        return "| " + " | ".join([first] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]) + " |"

    rule = "|" + "|".join(["-" * (widths[0] + 2)] + ["-" * (w + 1) + ":" for w in widths[1:]]) + "|"
    return "\n".join([line(cells[0]), rule, *map(line, cells[1:])])
