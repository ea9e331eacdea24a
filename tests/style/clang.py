"""The second compiler: clang 19 over the translation units of a build, from compile_commands.json.

    clang.py syntax CACHE COMMANDS   every unit of tests/, tools/ and samples compiles with -Werror
                                     (src/ and onnx/ are compiled by the sanitized build)
    clang.py tidy CACHE COMMANDS     clang-tidy finds nothing in the units that changed: since the merge
                                     base with origin/main or, on main itself, in the last commits
    clang.py tidy CACHE COMMANDS BASE   .. in all that changed since the commit BASE, however many they are

CACHE remembers what passed, by the content of a unit and of all files of the repository it includes.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

from headers import closure
from repository import ROOT, finish

LAST_COMMITS = 5
MOST_UNITS = 30  # that tidy looks at: about three minutes on two processors
# Flags of gcc that clang does not know or that spare a unit its includes, and what it warns of inside gcc's library (CMakeLists.txt).
UNKNOWN = {"-Wno-restrict", "-Winvalid-pch", "-fpch-preprocess", "-falign-jumps=1"}
COMPILERS = {"cc", "c++", "gcc", "g++", "clang-19", "clang++-19"}
MORE = ["-Wno-deprecated-declarations"]


def units(commands):
    """{path: compiler arguments without output} of the repository's own units."""
    found = {}
    for entry in json.loads(pathlib.Path(commands).read_text()):
        path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), ROOT)
        if path.startswith(("..", "build/")):
            continue
        words = shlex.split(entry["command"])
        compiler = next(i for i, word in enumerate(words) if os.path.basename(word) in COMPILERS)
        words = words[compiler:]
        while "-include" in words:
            at = words.index("-include")
            del words[at : at + 2]
        output = words.index("-o")
        arguments = [w for w in words[1:output] + words[output + 2:] if w not in UNKNOWN]
        found[path] = [w for w in arguments if w not in ("-c", entry["file"])] + MORE
    return found


def git(*words):
    run = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)
    return run.stdout.split("\n")[:-1] if run.returncode == 0 else None


def changed(known, since):
    """Units among `known` that changed, or whose header did; the latest first.  `since`: a commit, or None."""
    head, base = git("rev-parse", "HEAD"), git("merge-base", "HEAD", "origin/main")
    if head is None:
        return []
    if since is not None:
        base = git("rev-parse", "--verify", f"{since}^{{commit}}")
        if base is None:
            sys.exit(f"tidy: {since} is no commit of this repository")
    elif base is None or base == head:
        base = git("rev-parse", f"HEAD~{LAST_COMMITS}") or head
    paths = []
    for listed in (git("diff", "--name-only", "HEAD"), git("ls-files", "-o", "--exclude-standard"),
                   git("log", "--format=", "--name-only", f"{base[0]}..HEAD")):  # fmt: skip
        paths += listed or []
    wanted = []
    for path in paths:
        unit = str(pathlib.PurePosixPath(path).with_suffix(".cpp"))
        for candidate in (path, unit):
            if candidate in known and candidate not in wanted:
                wanted.append(candidate)
    return wanted


def syntax(path, arguments):
    compiler = "clang-19" if path.endswith(".c") else "clang++-19"
    return [compiler, "-fsyntax-only", *arguments, str(ROOT / path)]


def tidy(path, arguments):
    return ["clang-tidy-19", "--quiet", str(ROOT / path), "--", *arguments]


def main(mode, cache, commands, since=None):
    known = units(commands)
    command = {"syntax": syntax, "tidy": tidy}[mode]
    if mode == "syntax":
        wanted = sorted(path for path in known if not path.startswith(("src/", "onnx/")))
    else:
        every = [path for path in changed(known, since) if path.endswith(".cpp")]
        wanted = every if since else every[:MOST_UNITS]
        if len(every) > len(wanted):
            print(f"tidy: {len(every)} units changed, the latest {len(wanted)} are checked")
    directory = pathlib.Path(commands).parent
    settings = (ROOT / ".clang-tidy").read_bytes() if mode == "tidy" else b""
    cache = pathlib.Path(cache)
    passed = set(json.loads(cache.read_text())) if cache.exists() else set()

    def check(path):
        words = command(path, known[path])
        content = settings + b"".join((ROOT / reached).read_bytes() for reached in closure(path))
        key = hashlib.sha256(content + "\0".join(words).encode()).hexdigest()
        if key in passed:
            return key, None
        run = subprocess.run(words, cwd=directory, capture_output=True, text=True)
        return key, None if run.returncode == 0 else f"{path}:\n{run.stdout}{run.stderr}"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, wanted))
    cache.write_text(json.dumps(sorted(passed | {key for key, failure in results if not failure})))
    if mode == "tidy" and not wanted:
        print("tidy: no unit changed")
        return 0
    return finish(mode, [failure for _, failure in results if failure], len(wanted))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
