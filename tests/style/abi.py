"""Compares the ABI of libtiny.so and the numbers of tiny.h with what was recorded.

Usage: abi.py check|record LIBTINY
What is recorded: tests/abi/tiny.abi, every function and type that tiny.h lets a caller see (abidw),
and tests/abi/constants.txt, every enumeration value, which no function's type mentions.  A check
fails on any change, additions too: those are recorded by scripts/record-abi.sh, in the same commit.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

from repository import ROOT, finish

HEADERS = ROOT / "include"
RECORDED = ROOT / "tests/abi/tiny.abi"
CONSTANTS = ROOT / "tests/abi/constants.txt"


def constants(header):
    """'NAME VALUE' of every enumerator of the header, evaluated by the compiler."""
    text = subprocess.run(["gcc", "-E", "-P", "-x", "c", str(header)], check=True,
                          capture_output=True, text=True).stdout
    bodies = re.findall(r"\benum\s*\w*\s*\{([^}]*)\}", text)
    names = [part.split("=")[0].strip() for body in bodies for part in body.split(",")]
    names = [name for name in names if name]
    program = f'#include "{header}"\n#include <stdio.h>\nint main(void) {{\n'
    program += "".join(f'  printf("{name} %lld\\n", (long long){name});\n' for name in names)
    with tempfile.TemporaryDirectory() as folder:
        binary = pathlib.Path(folder) / "constants"
        subprocess.run(["gcc", "-x", "c", "-", "-o", binary], input=program + "}\n", text=True,
                       check=True)
        return subprocess.run([binary], check=True, capture_output=True, text=True).stdout


def record(library):
    RECORDED.parent.mkdir(exist_ok=True)
    subprocess.run(["abidw", "--headers-dir", HEADERS, "--drop-private-types", "--no-show-locs",
                    "--no-corpus-path", "--no-comp-dir-path", "--short-locs", "--out-file",
                    RECORDED, library], check=True)
    CONSTANTS.write_text(constants(HEADERS / "tiny.h"))
    return 0


def check(library):
    failures = []
    run = subprocess.run(["abidiff", "--headers-dir2", HEADERS, "--drop-private-types", RECORDED,
                          library], capture_output=True, text=True)
    if run.returncode:
        failures.append(f"abidiff says {run.returncode}:\n{run.stdout}{run.stderr}")
    before = set(CONSTANTS.read_text().splitlines())
    after = set(constants(HEADERS / "tiny.h").splitlines())
    failures += [f"gone or renumbered: {line}" for line in sorted(before - after)]
    failures += [f"new and not recorded: {line}" for line in sorted(after - before)]
    if failures:
        failures.append("if the change is meant: scripts/record-abi.sh, and say [abi] in the commit")
    return finish("abi", failures, len(before))


if __name__ == "__main__":
    sys.exit({"check": check, "record": record}[sys.argv[1]](sys.argv[2]))
