"""python -m tiny.compat PROGRAM.py ARGS, -c TEXT or -m MODULE: as python would, with tinygrad resolved to tiny."""

import os
import pathlib
import runpy
import sys

from . import install


def _checkout_of(folder):
    """The root of the checkout of tinygrad that a program lies in, where its `extra` and `examples` are; or nothing."""
    for parent in (folder, *map(str, pathlib.Path(folder).parents)):
        if os.path.isdir(os.path.join(parent, "extra")) and os.path.isdir(os.path.join(parent, "tinygrad")):
            return [parent]
    return []


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 2
    install()
    kind = arguments[0]
    if kind in ("-c", "-m"):
        if len(arguments) < 2:
            print(f"python -m tiny.compat {kind}: {'a text' if kind == '-c' else 'a module'} is wanted", file=sys.stderr)
            return 2
        sys.path[0] = ""
        if kind == "-m":
            sys.argv = arguments[1:]
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
            return 0
        sys.argv = ["-c", *arguments[2:]]
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
        return 0
    if not os.path.exists(kind):
        print(f"python -m tiny.compat: {kind}: no such file", file=sys.stderr)
        return 2
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(kind))
    sys.path += _checkout_of(sys.path[0])
    runpy.run_path(kind, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
