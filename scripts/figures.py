"""Prints what a change should be weighed by, from build/release: the slowest translation units,
lines and object code per folder, the size of the library, and the count of ctest's last run.
What ccache had takes no time: the figures of a clean build are those of scripts/cold-build.sh, the
last of which are printed too.  figures.py --slowest FOLDER prints the slowest of that build alone."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/release"
CODE = {".h", ".c", ".cpp", ".def", ".py", ".sh", ".cs", ".i", ".rs"}


def slowest(build, count):
    """Seconds and object of the translation units that took longest when they were last built."""
    took = {}
    for line in (build / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, output, _ = line.split("\t")
        if output.endswith(".o"):
            took[output] = (int(end) - int(start)) / 1000
    return sorted(((seconds, output) for output, seconds in took.items()), reverse=True)[:count]


def lines():
    """{folder: lines of code} of what git tracks; src and bindings by their inner folders."""
    counted = {}
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True,
                             text=True).stdout
    for path in filter(None, tracked.split("\0")):
        if pathlib.PurePath(path).suffix in CODE and (ROOT / path).is_file():
            parts = path.split("/")
            depth = 2 if parts[0] in ("src", "bindings", "tests") and len(parts) > 2 else 1
            folder = "/".join(parts[:depth]) if len(parts) > 1 else "."
            counted[folder] = counted.get(folder, 0) + len((ROOT / path).read_text().splitlines())
    return counted


def object_bytes():
    """{folder: bytes of code and data} of the library's objects, before the linker drops any."""
    counted = {}
    for folder in sorted(BUILD.glob("CMakeFiles/tiny_*.dir")):
        objects = list(folder.rglob("*.o"))
        if objects:
            rows = subprocess.run(["size", *objects], check=True, capture_output=True, text=True)
            counted[folder.name[len("tiny_"):-len(".dir")]] = sum(
                int(row.split()[0]) + int(row.split()[1]) for row in rows.stdout.splitlines()[1:])
    return counted


def stripped_size():
    out = BUILD / "libtiny.stripped"
    subprocess.run(["strip", "-o", out, BUILD / "libtiny.so"], check=True)
    return os.path.getsize(out)


def closing_line():
    """ctest's own count in one line; a test that ctest calls skipped or disabled has not passed."""
    log = (BUILD / "ctest.log").read_text()
    found = re.search(r"(\d+) tests? failed out of (\d+)", log)
    if not found:
        return None
    failed, total = int(found[1]), int(found[2])
    skipped = len(re.findall(r"^\s*\d+ - \S+ \((?:Skipped|Disabled)\)", log, re.M))
    not_run = len(re.findall(r"^\s*\d+ - \S+ \(Disabled\)", log, re.M))
    return f"{total - failed - skipped + not_run} passed, {failed} failed, {skipped} skipped"


def print_slowest(build):
    for seconds, output in slowest(build, 10):
        print(f"  {seconds:6.1f}  {output}")


def main():
    if len(sys.argv) > 1:
        return print_slowest(pathlib.Path(sys.argv[2]))
    if (BUILD / ".ninja_log").exists():
        print("\nslowest translation units (s; 0.0 came from ccache)")
        print_slowest(BUILD)
    cold = ROOT / "build/cold/times.txt"
    print("\n" + (cold.read_text().rstrip() if cold.exists() else
                  "no cold build yet: scripts/cold-build.sh makes one"))
    print("\nlines of code")
    for folder, count in sorted(lines().items()):
        print(f"  {count:7d}  {folder}")
    if (BUILD / "libtiny.so").exists():
        print("\nbytes of code and data in objects, by folder")
        for folder, count in object_bytes().items():
            print(f"  {count:8d}  {folder}")
        print(f"  {stripped_size():8d}  libtiny.so, stripped")
    if (BUILD / "ctest.log").exists():
        print(closing_line() or "ctest printed no count")


if __name__ == "__main__":
    main()
