"""Holds what comments and documents say of files against the tree: every file that one names exists,
and every link of a document leads to a file."""

import os
import re
import sys

from repository import ROOT, files, finish

CODE = (".h", ".c", ".cpp", ".def", ".inc", ".py", ".sh", ".cmake", ".txt", ".rs", ".cs", ".i")
NAME = re.compile(r"(?<![\w/.*<{}$-])((?:[\w-]+/)*[\w-]+\.(?:cpp|h|def|inc|py|sh|cmake))\b(?!\.\w)")
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)(?:#[^)]*)?\)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
COMMENT = {"cpp": re.compile(r"//(.*)|/\*(.*)|^\s*\*\*?(.*)"), "hash": re.compile(r"(?:^|\s)#(?!include)(.*)")}
# Names of the system and of libraries, and names that stand for any.
OTHERS = {"gtest/gtest.h", "gtest.h", "dlpack/dlpack.h", "math.h", "stddef.h", "stdio.h", "stdint.h", "_test.cpp"}
ANY = re.compile(r"(?:^|/)(?:[A-Z]{2,}\w*|x)(?:_\w+)?\.\w+$")


def commented(path, line):
    """What a line says beside its code."""
    kind = "hash" if path.endswith((".py", ".sh", ".cmake", ".txt")) else "cpp"
    found = COMMENT[kind].search(line)
    return found.group(0) if found else ""


def named(path, text):
    """(line number, name) of every file that comments or prose name."""
    is_document = path.endswith(".md")
    if is_document:
        text = FENCE.sub(lambda block: "\n" * block.group(0).count("\n"), text)
    for number, line in enumerate(text.splitlines(), 1):
        for name in NAME.findall(line if is_document else commented(path, line)):
            if name not in OTHERS and not ANY.search(name):
                yield number, name


def check(root):
    failures, checked = [], 0
    everything = files(root)
    ends = {}
    for path in everything:
        ends.setdefault(os.path.basename(path), []).append("/" + path)
    for path in everything:
        if not path.endswith(CODE + (".md",)):
            continue
        text = (root / path).read_bytes().decode(errors="replace")
        for number, name in named(path, text):
            checked += 1
            known = ends.get(os.path.basename(name), [])
            if not any(end.endswith("/" + name) for end in known):
                failures.append(f"{path}:{number}: names {name}, which is not there")
        if not path.endswith(".md"):
            continue
        for link in LINK.findall(FENCE.sub("", text)):
            checked += 1
            if not (root / os.path.dirname(path) / link).exists():
                failures.append(f"{path}: a link leads to {link}, which is not there")
    return failures, checked


if __name__ == "__main__":
    sys.exit(finish("mentions", *check(ROOT)))
