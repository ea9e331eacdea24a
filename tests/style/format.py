"""Holds every C and C++ file against .clang-format, with the pinned clang-format-19."""

import re
import subprocess
import sys

from repository import ROOT, files, finish

if __name__ == "__main__":
    sources = files(ROOT, (".h", ".c", ".cpp"))
    run = subprocess.run(["clang-format-19", "--dry-run", "-Werror", "--ferror-limit=1", *sources],
                         cwd=ROOT, capture_output=True, text=True)
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error:", run.stderr, re.M)))
    if run.returncode and not wrong:
        wrong = [run.stderr]
    elif wrong:
        wrong.append("to mend them: clang-format-19 -i " + " ".join(wrong))
    sys.exit(finish("format", wrong, len(sources)))
