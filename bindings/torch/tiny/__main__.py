"""python -m tiny.torch run [--steps N] [--set NAME=VALUE].. SCRIPT ARGS: a program that names the device "cuda", as it is,
on device "tiny"; ended after N calls of backward(); its constant NAME has another value."""

import argparse
import os

from tiny.torch import _cuda, _launch, _torchvision


def main():
    parser = argparse.ArgumentParser(prog="python -m tiny.torch", description=__doc__)
    parser.add_argument("command", choices=["run"])
    parser.add_argument("--steps", type=int, default=os.environ.get("STEPS"))
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    _cuda.install()
    _torchvision.offer()
    if given.steps is not None:
        _launch.stop_after(given.steps)
    _launch.run(given.script, given.arguments, dict(item.split("=", 1) for item in given.set))


main()
