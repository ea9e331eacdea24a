"""What the style checks share: the repository's own files, the folder table, the include graph."""

import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = {"build", ".venv", ".git", "target", "__pycache__", "shared"}


def files(root=ROOT, suffixes=None):
    """Paths relative to root: what git tracks or would; without git, all but built folders."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True)
    if listed.returncode == 0:
        paths = [path for path in listed.stdout.split("\0") if path]
    else:
        paths = []
        for folder, inner, names in os.walk(root):
            inner[:] = [name for name in inner if name not in BUILT]
            paths += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    paths = sorted(path for path in paths
                   if (root / path).is_file() and not BUILT & set(path.split("/")[:-1]))
    return [path for path in paths if suffixes is None or path.endswith(tuple(suffixes))]


def includes(text):
    """(line number, path) of every quoted include."""
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if found:
            yield number, found.group(1)


def resolve(root, includer, path):
    """The repository file that a quoted include names, relative to root, or None."""
    beside = pathlib.PurePosixPath(includer).parent / path
    for candidate in (str(beside), f"src/{path}", f"include/{path}", path):
        candidate = os.path.normpath(candidate)
        if (root / candidate).is_file():
            return candidate
    return None


def folder_table(text):
    """ARCHITECTURE.md's folder table: {folder: all that it may use, itself included}."""
    rows = re.findall(r"^\| `([a-z_]+(?:/[a-z_]+)*)/` \|[^|]*\|([^|]*)\|$", text, re.M)
    allowed = {}
    for folder, column in rows:
        column = column.strip()
        above = set(allowed)
        if column == "everything":
            allowed[folder] = None
            continue
        direct = set()
        if column == "all above":
            direct = above
        elif column != "–":
            for word in re.split(r",\s*", column):
                match = [known for known in above if known in (word, f"src/{word}")]
                if not match:
                    raise ValueError(f"{folder}/ may use {word}, which no row above it has")
                direct.add(match[0])
        allowed[folder] = {folder} | direct
        for used in direct:
            allowed[folder] |= allowed[used]
    return allowed


def folder_of(path, table):
    """The row of the table that holds the path, or None."""
    held = [folder for folder in table if path.startswith(folder + "/")]
    return max(held, key=len, default=None)


def finish(name, failures, checked):
    """Prints the failures; the exit status of a check, which fails if it looked at nothing."""
    for failure in failures:
        print(f"{name}: {failure}")
    print(f"{name}: {checked} checked, {len(failures)} wrong")
    return 1 if failures or not checked else 0
