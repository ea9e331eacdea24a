"""Programs written for tinygrad run on tiny: `import tinygrad` and what is below it resolve to this package.

    python -m tiny.compat PROGRAM.py ARGS         or, in a program of one's own, before it imports tinygrad:
    import tiny.compat; tiny.compat.install()

The modules of `tiny.compat.tinygrad` stand where tinygrad has its own.  A name that tinygrad has and that is not here
can be imported, so that a program which only mentions it runs, and raises NotImplementedError when it is used.
"""

import importlib
import importlib.abc
import importlib.util
import sys
import types

from . import _names
from ._absent import names_of
from .._dtype import tell_contexts
from .._reading import Reading

_HERE = f"{__name__}.tinygrad"
# Parts of tinygrad that programs mention more often than use: what is not here of them is there, and empty.
_INNER = ("codegen", "engine", "renderer", "runtime", "schedule", "uop", "viz", "llm", "mixin")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """`tinygrad.dtype` is `tiny.compat.tinygrad.dtype`, the same module under a second name; `tinygrad.nn.state`, which
    is not there, is `tiny.nn.state`."""

    def find_spec(self, fullname, path, target=None):
        if fullname != "tinygrad" and not fullname.startswith("tinygrad."):
            return None
        for package in (_HERE, "tiny"):
            real = package + fullname[len("tinygrad"):]
            try:
                found = importlib.util.find_spec(real)
            except ModuleNotFoundError:
                continue
            if found is not None:
                return importlib.util.spec_from_loader(fullname, self, origin=real,
                                                       is_package=found.submodule_search_locations is not None)
        if fullname.split(".")[1] in _INNER:
            return importlib.util.spec_from_loader(fullname, self, origin=None, is_package=True)
        return None

    def create_module(self, spec):
        if spec.origin is not None:
            return importlib.import_module(spec.origin)
        made = types.ModuleType(spec.name, "What tiny has no part of.")
        made.__getattr__ = names_of(spec.name)
        return made

    def exec_module(self, module):
        """It was executed under its own name."""
        if module.__name__ == _HERE:  # whose `function` is the function, also once that module is there
            function = module.function
            importlib.import_module("tinygrad.function")
            module.function = function


class _Fallback(_Finder):
    """`extra.lr_scheduler`, of tinygrad's checkout, is tiny.nn.lr_scheduler where there is no checkout."""

    NAMES = {"extra": f"{__name__}.extra", "extra.lr_scheduler": "tiny.nn.lr_scheduler"}

    def find_spec(self, fullname, path, target=None):
        real = self.NAMES.get(fullname)
        return real and importlib.util.spec_from_loader(fullname, self, origin=real, is_package=fullname == "extra")


def install() -> None:
    """From now on `import tinygrad` is this package, and calls that can be read in two ways are read as tinygrad does,
    in the whole process.  Before tinygrad itself is imported."""
    other = sys.modules.get("tinygrad")
    if other is not None and not other.__name__.startswith(_HERE):
        raise RuntimeError("tiny.compat.install(): tinygrad itself is imported already")
    if not Reading.tinygrad:
        _names.install()
    Reading.tinygrad = True
    tell_contexts()
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
        sys.meta_path.append(_Fallback())
