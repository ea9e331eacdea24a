"""The names of tiny.uop, where tinygrad has them."""

from . import GroupOp, Ops, PatternMatcher, UOp, UPat, Variable, graph_rewrite, sym_infer  # noqa: F401
