"""Tensor.uop and Tensor.schedule(): looking inside.  tiny.uop is imported when something of it is first used."""

import importlib

from . import native
from ._bound import Bound
from ._dimension import Dim, number
from .native import Tensor, Variable

_NAMES = ("GroupOp", "Ops", "PatternMatcher", "UOp", "UPat", "graph_rewrite")


def _of_package(name, attribute=None):
    return getattr(importlib.import_module(f"{__package__}.uop._{name}"), attribute or name)


def uop(self):
    """The node of the tensor's value, a tiny.uop.UOp: what it will be computed of, or a view of memory once it is."""
    return _of_package("node", "uop")(self)


def schedule(self, *others) -> list:
    """The kernels that computing it (and others along with it) now would run, in their order, as tiny.uop.ScheduleItem;
    nothing runs."""
    return _of_package("schedule")(self, *others)


def schedule_linear(self, *others):
    """The kernels that computing it (and others along with it) now would run, as tiny.uop.Linear, whose `src` has a call
    for each and whose run() computes them."""
    return _of_package("schedule", "schedule_linear")(self, *others)


def linear_with_vars(self, *others) -> tuple:
    """schedule_linear(), and the values of variables that sizes depend on, by name."""
    return _of_package("schedule", "linear_with_vars")(self, *others)


def callify(self, *others) -> Tensor:
    """This: what of a graph is a call of its own is the engine's to decide."""
    return self


def _buffer(self):
    """The memory that has its elements, computed now, as tiny.uop.Buffer."""
    return self.realize().uop.buffer


def _expression(self):
    """The size as an expression of its variables, a tiny.uop.UOp."""
    return native.made(self, native.tiny_scalar_int(self.context, number(self))).uop


def _render(self) -> str:
    """As an expression of the variables: "(i*2+1)"."""
    return getattr(self, "dim", self).uop.render()


def _simplify(self):
    """This: sizes are kept in their simplest form."""
    return self


for _kind in (Dim, Variable):
    _kind.uop = property(_expression)
for _kind in (Dim, Variable, Bound):
    _kind.render, _kind.simplify = _render, _simplify
Tensor.uop = property(uop)
Tensor.callify, Tensor._buffer = callify, _buffer
Tensor.schedule_linear = schedule_linear
Tensor.linear_with_vars = linear_with_vars
Tensor.schedule = schedule


def lazy(name):
    """What the package has of tiny.uop under its own name."""
    if name in _NAMES or name == "uop":
        package = importlib.import_module(f"{__package__}.uop")
        return package if name == "uop" else getattr(package, name)
    raise AttributeError(f"module {__package__!r} has no attribute {name!r}")
