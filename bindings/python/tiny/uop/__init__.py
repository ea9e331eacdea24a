"""The engine's nodes in Python: look at the graph of a tensor, build expressions, rewrite both by rules of your own.

    from tiny.uop import Ops, PatternMatcher, UOp, UPat, graph_rewrite
    x = UOp.variable("x", 0, 9)
    assert (x * 4 + 2) // 4 is not x and ((x * 4 + 2) // 4).simplify() is x
    rules = PatternMatcher([(UPat(Ops.ADD, src=[UPat.var("a"), UPat.cvar("c", arg=0)]), lambda a, c: a)])
    assert graph_rewrite(x + 0, rules) is x
"""

from ._node import UOp  # noqa: F401
from ._pattern import PatternMatcher, UPat  # noqa: F401
from ._rewrite import graph_rewrite, sym_infer  # noqa: F401
from ._memory import Buffer  # noqa: F401
from ._schedule import Linear, ScheduleItem, schedule  # noqa: F401
from ._table import GroupOp, Ops  # noqa: F401

Variable = UOp.variable
