"""tinygrad.uop.ops on tiny.uop, whose operations are the engine's."""

from ...._bound import Bound as _Bound
from ...._dimension import Dim as _Dim
from ....native import Variable
from ....uop import GroupOp, PatternMatcher, UPat, graph_rewrite, sym_infer  # noqa: F401
from ....uop import Ops as _Ops
from ....uop import UOp as _UOp
from ..._absent import names_of


class _Kind(type):
    """Variables, and numbers that are made of them, are nodes in tinygrad."""

    def __instancecheck__(cls, value):
        return isinstance(value, (_UOp, Variable, _Bound, _Dim))

    def __call__(cls, *arguments, **keywords):
        return _UOp(*arguments, **keywords)


class UOp(_UOp, metaclass=_Kind):
    """tiny.uop.UOp, as which programs know variables with values too."""
    __slots__ = ()


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
