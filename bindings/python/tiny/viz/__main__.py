"""python -m tiny.viz [OPTIONS] PROGRAM.py ARGS, -c TEXT or -m MODULE: runs it, then shows what it did.

  --port N       where the page is served on this machine; 8000 or, where that is taken, another
  --open         opens it in a browser
  --save FILE    writes the record instead of showing it
  --load FILE    shows a record that was written, and runs nothing
"""

import argparse
import json
import os
import pathlib
import runpy
import sys
import traceback


def _run(arguments):
    """As python would; gives back whether it ended well."""
    kind, rest = arguments[0], arguments[1:]
    try:
        if kind == "-c":
            sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
            exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
        elif kind == "-m":
            sys.argv, sys.path[0] = rest, ""
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv, sys.path[0] = arguments, os.path.dirname(os.path.abspath(kind))
            runpy.run_path(kind, run_name="__main__")
    except SystemExit as end:
        return end.code in (None, 0)
    except BaseException:
        traceback.print_exc()
        return False
    return True


def main(arguments):
    parser = argparse.ArgumentParser(prog="python -m tiny.viz", usage=__doc__, add_help=True, allow_abbrev=False)
    parser.add_argument("--port", type=int)
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--save")
    parser.add_argument("--load")
    count = 0
    while count < len(arguments) and arguments[count].startswith("--"):
        count += 2 if arguments[count] in ("--port", "--save", "--load") else 1
    said, rest = parser.parse_args(arguments[:count]), arguments[count:]
    if bool(said.load) == bool(rest) or (rest and rest[0] in ("-c", "-m") and len(rest) < 2):
        print(__doc__, file=sys.stderr)
        return 2
    ended_well = True
    if rest:
        os.environ["TINY_VIZ"] = "1"
        os.environ.pop("VIZ", None)
    from . import PORT, about, record, serve
    if rest:
        ended_well = _run(rest)
        kept = {"record": record(), "about": about()}
    else:
        kept = json.loads(pathlib.Path(said.load).read_text())
    if said.save:
        pathlib.Path(said.save).write_text(json.dumps(kept))
    else:
        serve(kept["record"], kept["about"], PORT if said.port is None else said.port, said.open)
    return 0 if ended_well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
