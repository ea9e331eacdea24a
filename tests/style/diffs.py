"""Holds the diffs of the documents against the tree: every line that one adds stands in its file."""

import re
import sys

from repository import ROOT, files, finish


def check(root):
    failures, lines = [], 0
    for document in files(root, (".md",)):
        for block in re.findall(r"^```diff\n(.*?)^```", (root / document).read_text(), re.M | re.S):
            path, present = None, set()
            for line in block.splitlines():
                if line.startswith("+++ b/"):
                    path = line[6:].strip()
                    if not (root / path).is_file():
                        failures.append(f"{document}: the diff names {path}, which is not there")
                        path = None
                        continue
                    present = {text.strip() for text in (root / path).read_text().splitlines()}
                elif line.startswith("+") and path:
                    lines += 1
                    if line[1:].strip() not in present:
                        failures.append(f"{document}: {path} has no line {line[1:].strip()!r}")
    return failures, lines


if __name__ == "__main__":
    sys.exit(finish("diffs", *check(ROOT)))
