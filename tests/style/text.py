"""Reads every text file: no work left without its number, no host of a package registry.  Of the
library: no intrinsics and no inline assembly but where the processor is asked what it is and where
versions of symbols are chosen, and no stream library, which with its locales would be a seventh of it."""

import re
import sys

from repository import ROOT, files, finish

CODE = (".h", ".c", ".cpp", ".def", ".py", ".sh", ".cs", ".i", ".rs")
LEFT = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b(?!\(#\d+\))")
HOST = re.compile(r"\b(?:pypi|pythonhosted|crates|npmjs|nuget|debian|golang)\.(?:org|io|com)\b")

# What is made for one processor: its headers, its intrinsics, assembly.  Text that a renderer writes
# is no code of ours.
MACHINE = re.compile(r"#\s*include\s*<(?:cpuid|\w*intrin|arm_\w+|x86\w+|intrin)\.h>|\b_mm\d*_\w+|"
                     r"\b__builtin_(?:ia32|arm|aarch64|neon)_\w+|\b__get_cpuid\w*|"
                     r"\b(?:asm|__asm|__asm__)\b\s*(?:volatile|__volatile__|goto)?\s*[({]")
STRING = re.compile(r'"(?:\\.|[^"\\])*"|//.*')
LIBRARY = ("src/", "onnx/", "include/")
STREAMS = re.compile(r"#\s*include\s*<(?:\w*stream|iomanip|ios|locale|regex|streambuf)>")
CPUID = "src/runtime/cpu/cpuid.cpp"
SYMBOL_VERSIONS = "src/api/older_glibc.c"


def check(root):
    failures, checked = [], 0
    for path in files(root):
        try:
            text = (root / path).read_bytes().decode()
        except UnicodeDecodeError:
            continue
        if "\0" in text:
            continue
        checked += 1
        if text and not text.endswith("\n"):
            failures.append(f"{path}: the last line has no end")
        for number, line in enumerate(text.splitlines(), 1):
            where = f"{path}:{number}"
            if LEFT.search(line):
                failures.append(f"{where}: work left without the number of its issue")
            if HOST.search(line):
                failures.append(f"{where}: names the host of a package registry")
            if path.startswith(LIBRARY) and path not in (CPUID, SYMBOL_VERSIONS) and MACHINE.search(STRING.sub("", line)):
                failures.append(f"{where}: intrinsics or assembly outside {CPUID}")
            if path.startswith(LIBRARY) and STREAMS.search(line):
                failures.append(f"{where}: the stream library; base/text.h and base/read_text.h do without")
            if line != line.rstrip() and path.endswith(CODE):
                failures.append(f"{where}: space at the end of the line")
    return failures, checked


if __name__ == "__main__":
    sys.exit(finish("text", *check(ROOT)))
