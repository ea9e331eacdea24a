"""Compiles every header alone; tiny.h also as C11 and C++20, by each compiler, without a warning.

Usage: headers.py CACHE COMPILER..   CACHE is a file that remembers what compiled: a header is
compiled again when it or a file of the repository that it includes has changed.  A header that its
own x.cpp includes before anything else was compiled alone by the build.
"""

import concurrent.futures
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

from repository import ROOT, files, finish, includes, resolve

STRICT = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
# Where PyTorch is, without which nothing of its device compiles.
TORCH = importlib.util.find_spec("torch")
PATHS = [f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}", f"-I{ROOT}"]


def closure(path):
    """The header and the files of the repository that it reaches."""
    reached, pending = {path}, [path]
    while pending:
        includer = pending.pop()
        for _, included in includes((ROOT / includer).read_text()):
            target = resolve(ROOT, includer, included)
            if target and target not in reached:
                reached.add(target)
                pending.append(target)
    return sorted(reached)


def proven_by_build(path):
    """Whether the unit of the same name begins with this header."""
    unit = (ROOT / path).with_suffix(".cpp")
    found = re.search(r'^\s*#\s*include\s*(\S+)', unit.read_text(), re.M) if unit.exists() else None
    return bool(found) and resolve(ROOT, path, found[1].strip('"')) == path


def commands(path, compilers):
    """One command per way in which the header must compile."""
    if path == "include/tiny.h":
        for compiler in compilers:
            for language, standard in (("c", "c11"), ("c++", "c++20")):
                yield [compiler, "-x", language, f"-std={standard}", *STRICT]
    elif path.startswith("src/") or path.startswith("onnx/"):
        yield [compilers[0], "-x", "c++", "-std=c++20", "-Wconversion", *STRICT, *PATHS]
    else:
        beside = [f"-I{(ROOT / path).parent}", f"-I{ROOT / 'tests'}"]
        if path.startswith("bindings/torch/"):
            if not TORCH:
                return
            beside += [f"-isystem{TORCH.submodule_search_locations[0]}/include"]
        yield [compilers[0], "-x", "c++", "-std=c++20", *STRICT, *beside, *PATHS]


def compile_alone(job):
    path, command = job
    run = subprocess.run([*command, "-include", str(ROOT / path), "/dev/null"],
                         capture_output=True, text=True)
    return None if run.returncode == 0 else f"{path}: {' '.join(command[:4])}\n{run.stderr}"


def main(cache_path, compilers):
    cache_path = pathlib.Path(cache_path)
    known = set(json.loads(cache_path.read_text())) if cache_path.exists() else set()
    jobs, keys = [], []
    headers = files(ROOT, (".h",))
    for path in headers:
        if proven_by_build(path):
            continue
        content = b"".join((ROOT / reached).read_bytes() for reached in closure(path))
        for command in commands(path, compilers):
            keys.append(hashlib.sha256(content + "\0".join([path, *command]).encode()).hexdigest())
            jobs.append((path, command))
    todo = [index for index, key in enumerate(keys) if key not in known]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(compile_alone, [jobs[index] for index in todo]))
    failed = {index for index, result in zip(todo, results) if result}
    passed = [key for index, key in enumerate(keys) if index not in failed]
    cache_path.write_text(json.dumps(passed))
    return finish("headers", [result for result in results if result], len(headers))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
