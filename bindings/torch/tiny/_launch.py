"""Programs that were written for "cuda", on device "tiny" as they are: `TINY_BACKEND=1 python SCRIPT` and
`python -m tiny.torch run SCRIPT`.

STEPS=N ends the program after N calls of backward(), each of whose losses is printed.  BS=N is the batch size of programs
that have it as a constant of their own.
"""

import ast
import math
import os
import sys
import types

import torch

from . import _cuda, _torchvision

BATCH_SIZES = ("batchsize", "batch_size", "BATCHSIZE", "BATCH_SIZE")  # what programs call it


def _names(node):
    return [target.id for target in node.targets if isinstance(target, ast.Name)] if isinstance(node, ast.Assign) else []


def _constants(tree):
    return {name for node in tree.body for name in _names(node)}


def with_constants(tree, values):
    """Assignments of the module's own names have other values: {name: expression}."""
    missing = set(values) - _constants(tree)
    if missing:
        sys.exit(f"the program assigns no {', '.join(sorted(missing))}")
    for node in tree.body:
        for name in _names(node):
            if name in values:
                node.value = ast.copy_location(ast.parse(values[name], mode="eval").body, node.value)
    return ast.fix_missing_locations(tree)


def _parsed(script):
    with open(script, "rb") as file:
        return ast.parse(file.read(), script)


def _batch_size(tree):
    if "BS" not in os.environ:
        return {}
    return {name: os.environ["BS"] for name in BATCH_SIZES if name in _constants(tree)}


def _report(step, loss):
    value = loss.item()
    print(f"step {step} loss {value:.4f}", flush=True)
    if not math.isfinite(value):
        sys.exit(f"the loss of step {step} is not finite")


def stop_after(steps):
    """Once for the process."""
    backward, losses = torch.Tensor.backward, []
    if hasattr(backward, "steps"):
        backward.steps = steps
        return

    def counted(self, *args, **kwargs):
        if losses:
            _report(len(losses), losses[-1])
        if len(losses) >= counted.steps:
            sys.exit(0)
        losses.append(self.detach())
        return backward(self, *args, **kwargs)
    counted.steps = steps
    torch.Tensor.backward = counted


def _is_script():
    main = sys.modules["__main__"]
    return getattr(main, "__file__", None) and getattr(main, "__spec__", None) is None


def take_over():
    """At the end of the device's import with TINY_BACKEND=1."""
    _cuda.install()
    _torchvision.offer()
    if _is_script():
        script = sys.modules["__main__"].__file__
        if _batch_size(_parsed(script)):  # it runs already: begun again by the launcher, with another constant
            flags = sys.orig_argv[1:len(sys.orig_argv) - len(sys.argv)]
            sys.stdout.flush()
            os.execv(sys.executable, [sys.executable, *flags, "-m", "tiny.torch", "run", script, *sys.argv[1:]])
    if "STEPS" in os.environ:
        stop_after(int(os.environ["STEPS"]))


def run(script, arguments, values):
    tree = _parsed(script)
    tree = with_constants(tree, {**_batch_size(tree), **values})
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    main = types.ModuleType("__main__")
    main.__file__, main.__builtins__ = script, __builtins__
    sys.modules["__main__"] = main
    exec(compile(tree, script, "exec"), main.__dict__)
