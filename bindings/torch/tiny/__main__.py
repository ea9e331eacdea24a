"""python -m tiny.torch run SCRIPT ARGS: a program that names the device "cuda", as it is, on device "tiny"."""

import os
import runpy
import sys

import tiny.torch  # noqa: F401 - the device
from tiny.torch import _cuda


def main():
    if len(sys.argv) < 3 or sys.argv[1] != "run":
        sys.exit(f"usage: {__doc__}")
    _cuda.install()
    script = sys.argv[2]
    sys.argv = sys.argv[2:]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    runpy.run_path(script, run_name="__main__")


main()
