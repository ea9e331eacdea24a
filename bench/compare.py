"""Runs the parts of bench/ that are asked for and prints their tables; bench/run starts it."""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys

import compiling
import ladder
import models
from report import at_least, json_of, table


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(": ")[2]
    return "unknown"


def revision():
    told = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True)
    return told.stdout.strip() or "unknown"


def kernels_text(result):
    """Ratios of best and of median times: above 1, tiny is faster."""
    lines = []
    for row in result["rows"]:
        by_kind = {kind: [c for c in row["contenders"] if c["kind"] == kind]
                   for kind in ("tiny", "peer", "prepared", "limit")}
        ours, limit = by_kind["tiny"][0], by_kind["limit"][0]

        def ratio(peers, key):
            return min(c[key] for c in peers) / ours[key] if peers else None

        shown = lambda value: "" if value is None else f"{value:.2f}"
        best_peer = min(by_kind["peer"], key=lambda c: c["best_ms"])
        rate = (row["flops"] or row["bytes"]) / ours["best_ms"] / 1e6
        row["ratio"] = ratio(by_kind["peer"], "best_ms")
        row["ratio_median"] = ratio(by_kind["peer"], "median_ms")
        row["share_of_limit"] = limit["best_ms"] / ours["best_ms"]
        lines.append([
            row["name"], f"{ours['best_ms']:.3f}",
            f"{rate:.0f} {'GFLOPS' if row['flops'] else 'GB/s'}", best_peer["name"],
            shown(row["ratio"]), shown(row["ratio_median"]),
            shown(ratio(by_kind["prepared"], "best_ms")), f"{row['share_of_limit']:.0%}",
            at_least(row["name"], row["ratio"]),
        ])  # fmt: skip
    header = ["kernel", "tiny ms", "rate", "best peer", "ratio", "of medians", "B prepared",
              "of limit", "target"]  # fmt: skip
    text = table(header, lines) + "\n\nAll contenders, best / median ms:\n\n"
    everyone = [[row["name"], "; ".join(f"{c['name']} {c['best_ms']:.3f} / {c['median_ms']:.3f}"
                                        for c in row["contenders"])]
                for row in result["rows"]]  # fmt: skip
    return text + table(["kernel", "contenders"], everyone)


def kernels(arguments):
    command = [arguments.build / "bench/bench_kernels", "--duration", arguments.duration]
    result = json_of(command + (["--only", arguments.only] if arguments.only else []))
    result["settings"].append("torch: left out, its wheel for Linux brings several GB of CUDA")
    return result, kernels_text(result)


PARTS = {"kernels": kernels, "models": models.run, "compile": compiling.run,
         "ladder": ladder.run}


def main():
    parser = argparse.ArgumentParser(prog="bench/run")
    parser.add_argument("part", nargs="?", default="all", choices=[*PARTS, "all"])
    parser.add_argument("--duration", type=float, default=1.0, help="seconds per row (1)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name has TEXT")
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--models", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--command", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    result = {"date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
              "cpu": cpu_model(), "command": arguments.command, "revision": revision()}
    print(f"{result['date'][:10]}, {result['cpu']}, `{result['command']}`, one thread, "
          f"revision {result['revision']}")
    for name in PARTS if arguments.part == "all" else [arguments.part]:
        result[name], text = PARTS[name](arguments)
        print(f"\n{name}\n")
        for setting in result[name].get("settings", []):
            print(f"- {setting}")
        print(f"\n{text}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
