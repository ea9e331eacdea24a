"""Holds every include against the folder table of docs/ARCHITECTURE.md; finds include cycles."""

import sys

from repository import ROOT, files, finish, folder_of, folder_table, includes, resolve

SUFFIXES = (".h", ".c", ".cpp", ".def")


def check(root):
    table = folder_table((root / "docs/ARCHITECTURE.md").read_text())
    if not table:
        return ["docs/ARCHITECTURE.md has no folder table"], 0
    failures, graph = [], {}
    sources = files(root, SUFFIXES)
    for path in sources:
        folder = folder_of(path, table)
        if folder is None:
            failures.append(f"{path}: no row of docs/ARCHITECTURE.md's folder table holds it")
            continue
        graph[path] = []
        for number, included in includes((root / path).read_text()):
            target = resolve(root, path, included)
            if target is None:
                failures.append(f'{path}:{number}: "{included}" names no file of the repository')
                continue
            graph[path].append(target)
            used = folder_of(target, table)
            if table[folder] is not None and used not in table[folder]:
                failures.append(f"{path}:{number}: {folder} may not use {used}")
    return failures + cycles(graph), len(sources)


def cycles(graph):
    """One line per include cycle, found by a depth-first walk with its own stack."""
    found, state = [], {}
    for start in sorted(graph):
        if start in state:
            continue
        trail, pending = [start], [iter(graph[start])]
        state[start] = "open"
        while pending:
            target = next(pending[-1], None)
            if target is None:
                state[trail.pop()] = "done"
                pending.pop()
            elif state.get(target) == "open":
                loop = trail[trail.index(target):] + [target]
                found.append("includes go round: " + " -> ".join(loop))
            elif target in graph and target not in state:
                state[target] = "open"
                trail.append(target)
                pending.append(iter(graph[target]))
    return found


if __name__ == "__main__":
    sys.exit(finish("layering", *check(ROOT)))
