"""Runs the parts of bench/ that are asked for and prints their tables; bench/run starts it."""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys

import batches
import compiling
import joins
import kernels
import ladder
import models
import python
import regret
import sharing
import sizes
import train
from report import missed

PARTS = {"kernels": kernels.run, "models": models.run, "compile": compiling.run,
         "sharing": sharing.run, "sizes": sizes.run, "ladder": ladder.run,
         "joins": joins.run, "batches": batches.run, "train": train.run,
         "python": python.run, "regret": regret.run}  # fmt: skip
TITLES = {"kernels": "Kernels", "models": "Models", "compile": "Compiling and replaying",
          "sharing": "Sharing the machine", "sizes": "Run-time sizes", "ladder": "The ladder",
          "joins": "Joins", "batches": "Batches", "train": "Training steps",
          "python": "The Python layer", "regret": "Regret"}  # fmt: skip
FIGURES = "## Figures\n"  # what is below it in a document is made by --write
QUICK_DURATION = 0.1


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(": ")[2]
    return "unknown"


def revision():
    told = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True)
    return told.stdout.strip() or "unknown"


def part_text(name, result, text):
    settings = "\n".join(f"- {line}" for line in result.get("settings", []))
    return f"### {TITLES[name]}\n\n{settings}\n\n{text}\n"


def missed_text(result):
    lines = [f"- {line}" for name in PARTS for line in missed(result.get(name, {}))]
    return "### Missed\n\n" + ("\n".join(lines) or "None.") + "\n"


def written(document, figures):
    """The document with new figures; what stands before their heading is kept."""
    before, heading, _ = document.partition(FIGURES)
    if not heading:
        raise SystemExit(f"the file to write has no line {FIGURES.strip()!r}")
    return f"{before}{heading}\n{figures}"


def parsed():
    parser = argparse.ArgumentParser(prog="bench/run")
    parser.add_argument("part", nargs="?", default="all", choices=[*PARTS, "all"])
    parser.add_argument("--duration", type=float, help="seconds per row (1)")
    parser.add_argument("--quick", action="store_true",
                        help="fewer models and rounds, 0.1 s per row: about two minutes")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE",
                        help="put what is missed, then the tables, below '## Figures' in that document")
    parser.add_argument("--fit", action="store_true", help="joins: fit the weights of their cost")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name has TEXT")
    parser.add_argument("--build", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--models", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--large", type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument("--command", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.duration is None:
        arguments.duration = QUICK_DURATION if arguments.quick else 1.0
    return arguments


def main():
    arguments = parsed()
    result = {"date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
              "cpu": cpu_model(), "command": arguments.command, "revision": revision()}
    texts = [f"{result['date'][:10]}, {result['cpu']}, `{result['command']}`, "
             f"revision {result['revision']}\n"]
    print(texts[0])
    left_out = {"regret"} | ({"ladder", "joins", "batches", "train"} if arguments.quick else set())
    everything = [name for name in PARTS if name not in left_out]
    for name in everything if arguments.part == "all" else [arguments.part]:
        result[name], text = PARTS[name](arguments)
        texts.append(part_text(name, result[name], text))
        print(texts[-1], flush=True)
    texts.insert(1, missed_text(result))
    print(texts[1])
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1))
    if arguments.write:
        arguments.write.write_text(written(arguments.write.read_text(), "\n".join(texts)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
