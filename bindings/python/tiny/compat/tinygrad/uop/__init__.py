"""tinygrad.uop on tiny.uop."""

from ..._absent import names_of
from ....uop import Variable  # noqa: F401
from .ops import GroupOp, Ops, PatternMatcher, UOp, UPat, graph_rewrite, sym_infer  # noqa: F401

__getattr__ = names_of(__name__)
