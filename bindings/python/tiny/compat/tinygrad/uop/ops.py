"""tinygrad.uop.ops on tiny.uop, whose operations are the engine's."""

from ....native import Variable  # noqa: F401
from ....uop import GroupOp, PatternMatcher, UOp, UPat, graph_rewrite, sym_infer  # noqa: F401
from ....uop import Ops as _Ops
from ..._absent import names_of


class _Other:
    """An operation that tinygrad has and the engine has not: no node is one."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"Ops.{self.name}"


class _AllOps:
    """The engine's operations, and others by their names alone."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(_Ops, name, None) or _Other(name)
        setattr(self, name, found)
        return found

    def __iter__(self):
        return iter(_Ops)


Ops = _AllOps()

__getattr__ = names_of(__name__)
