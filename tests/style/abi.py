"""Compares the ABI of libtiny.so and the numbers of tiny.h with what was recorded.

Usage: abi.py check LIBTINY | abi.py record
What is recorded is made from tiny.h alone: tests/abi/tiny.abi, every function and type that a
caller sees (abidw), and tests/abi/constants.txt, every enumeration value, which no function's type
mentions.  A check compares the types with those of tiny.h as it is, against which the library is
compiled, and the library's own symbols.  It fails on any change, additions too:
scripts/record-abi.sh records those, in the commit that makes them.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

from repository import ROOT, finish

HEADER = ROOT / "include/tiny.h"
MAP = ROOT / "src/api/tiny.map"
RECORDED = ROOT / "tests/abi/tiny.abi"
CONSTANTS = ROOT / "tests/abi/constants.txt"


def preprocessed(header):
    """The header's declarations, without comments and macros."""
    return subprocess.run(["gcc", "-E", "-P", "-x", "c", "-DTINY_API=TINY_API", header], check=True,
                          capture_output=True, text=True).stdout


def constants(header):
    """'NAME VALUE' of every enumerator of the header, evaluated by the compiler."""
    bodies = re.findall(r"\benum\s*\w*\s*\{([^}]*)\}", preprocessed(header))
    names = [part.split("=")[0].strip() for body in bodies for part in body.split(",")]
    names = [name for name in names if name]
    program = f'#include "{header}"\n#include <stdio.h>\nint main(void) {{\n'
    program += "".join(f'  printf("{name} %lld\\n", (long long){name});\n' for name in names)
    with tempfile.TemporaryDirectory() as folder:
        binary = pathlib.Path(folder) / "constants"
        subprocess.run(["gcc", "-x", "c", "-", "-o", binary], input=program + "}\n", text=True,
                       check=True)
        return subprocess.run([binary], check=True, capture_output=True, text=True).stdout


def build_hollow(header, library):
    """Builds a library that does nothing, but has every function of the header and tells types."""
    functions = re.findall(r"\bTINY_API\s+([^;]+);", preprocessed(header))
    program = f'#include "{header}"\n'
    program += "".join(f"{function} {{ __builtin_trap(); }}\n" for function in functions)
    subprocess.run(["gcc", "-x", "c", "-", "-g", "-fPIC", "-shared", "-Wl,-soname,libtiny.so.0",
                    f"-Wl,--version-script={MAP}", "-o", library], input=program, text=True,
                   check=True)


def record(header, recorded):
    """Writes the ABI that the header says."""
    with tempfile.TemporaryDirectory() as folder:
        library = pathlib.Path(folder) / "libtiny.so"
        build_hollow(header, library)
        subprocess.run(["abidw", "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path",
                        "--short-locs", "--no-elf-needed", "--out-file", recorded, library],
                       check=True)


def differences(recorded, library, headers):
    """What abidiff says of the library, a line for each; types outside of the headers are private."""
    run = subprocess.run(["abidiff", "--headers-dir2", headers, "--drop-private-types", recorded,
                          library], capture_output=True, text=True)
    return [f"abidiff says {run.returncode}:\n{run.stdout}{run.stderr}"] if run.returncode else []


def check(library):
    with tempfile.TemporaryDirectory() as folder:
        hollow = pathlib.Path(folder) / "libtiny.so"
        build_hollow(HEADER, hollow)
        failures = differences(RECORDED, hollow, HEADER.parent)
    failures += differences(RECORDED, library, HEADER.parent)
    before = CONSTANTS.read_text().splitlines()
    after = constants(HEADER).splitlines()
    failures += [f"gone or renumbered: {line}" for line in sorted(set(before) - set(after))]
    failures += [f"new and not recorded: {line}" for line in sorted(set(after) - set(before))]
    if failures:
        failures.append("if the change is meant: scripts/record-abi.sh, and say [abi] in the commit")
    return finish("abi", failures, len(before))


def main(mode, *arguments):
    if mode == "check":
        return check(*arguments)
    RECORDED.parent.mkdir(exist_ok=True)
    record(HEADER, RECORDED)
    CONSTANTS.write_text(constants(HEADER))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
