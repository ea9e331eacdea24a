"""UPat, what nodes are matched with, and PatternMatcher, a list of rules: a pattern and a function of what it bound."""

import inspect
import itertools

from ._arithmetic import Arithmetic
from ._node import UOp
from ._table import GroupOp, Ops


def _tuple_of(value, kind):
    if value is None or isinstance(value, tuple):
        return value
    return (value,) if isinstance(value, kind) or not isinstance(value, (set, frozenset, list)) else tuple(value)


class UPat(Arithmetic):
    """op     one of Ops, or several; any if None
    dtype  a type, or several
    src    patterns of the sources: a tuple in their order, a list in any order, one pattern for all of them
    arg    what the argument is equal to
    name   under which the node is given to the rule's function; a name that occurs twice is one node
    allow_any_len  more sources than patterns may follow"""

    def __init__(self, op=None, dtype=None, src=None, arg=None, name=None, allow_any_len=False):
        if name == "ctx":
            raise ValueError('UPat(name="ctx"): that is the name of what graph_rewrite is given')
        self.op, self.dtype = _tuple_of(op, Ops), _tuple_of(dtype, int)
        self.src, self.arg, self.name, self.allow_any_len = src, arg, name, allow_any_len
        self._either = None
        self._orders = [src] if isinstance(src, tuple) else self._permutations(src) if isinstance(src, list) else None

    @staticmethod
    def _permutations(src):
        return [tuple(src)] if all(one is src[0] for one in src) else list(itertools.permutations(src))

    @staticmethod
    def any(*patterns) -> "UPat":
        """What one of them matches."""
        made = UPat()
        made._either = patterns
        made.op = None if any(one.op is None for one in patterns) else tuple(op for one in patterns for op in one.op)
        return made

    @staticmethod
    def var(name=None, dtype=None) -> "UPat":
        """Any node."""
        return UPat(dtype=dtype, name=name)

    @staticmethod
    def cvar(name=None, dtype=None, arg=None) -> "UPat":
        """A constant; UPat.cvar("c", 0) is one of that value."""
        if isinstance(dtype, (bool, float)) or type(dtype) is int:
            dtype, arg = None, dtype
        return UPat(Ops.CONST, dtype, name=name, arg=arg)

    @staticmethod
    def const(value, dtype=None) -> "UPat":
        """The constant of that value."""
        return UPat(Ops.CONST, dtype, arg=value)

    def named(self, name) -> "UPat":
        made = UPat(self.op, self.dtype, self.src, self.arg, name, self.allow_any_len)
        made._either = self._either
        return made

    # ---- Patterns of operations on it

    def _with(self, other):
        return other if isinstance(other, UPat) else UPat.const(other)

    def alu(self, op, *src, **more) -> "UPat":
        """The operation on it and others, in any order if it commutes."""
        parts = (self, *(self._with(one) for one in src))
        return UPat(op, src=list(parts) if op in GroupOp.Commutative else parts, **more)

    def cast(self, dtype=None, **more) -> "UPat":
        return UPat(Ops.CAST, dtype, (self,), **more)

    def bitcast(self, dtype=None, **more) -> "UPat":
        return UPat(Ops.BITCAST, dtype, (self,), **more)

    def where(self, x, y, **more) -> "UPat":
        return UPat(Ops.WHERE, src=(self, self._with(x), self._with(y)), **more)

    def f(self, op, **more) -> "UPat":
        """An operation on it alone."""
        return UPat(op, src=(self,), **more)

    # ---- Matching

    def match(self, uop, found) -> list:
        """All ways in which it matches: dicts of the names, each with what `found` has."""
        if self._either is not None:
            ways = [way for one in self._either for way in one.match(uop, dict(found))]
            if self.name is None:
                return ways
            return [way for way in ways if way.setdefault(self.name, uop) is uop]
        if self.op is not None and uop.op not in self.op:
            return []
        if self.dtype is not None and uop.dtype not in self.dtype:
            return []
        if self.arg is not None and not (uop.arg == self.arg and isinstance(uop.arg, bool) == isinstance(self.arg, bool)):
            return []
        if self.name is not None:
            found = dict(found)
            if found.setdefault(self.name, uop) is not uop:
                return []
        if self.src is None:
            return [found]
        return self._match_sources(uop.src, found)

    def _match_sources(self, src, found):
        if self._orders is None:  # one pattern for each
            orders = [(self.src,) * len(src)]
        elif len(src) < len(self.src) or (len(src) > len(self.src) and not self.allow_any_len):
            return []
        else:
            orders = self._orders
        ways = []
        for order in orders:
            reached = [found]
            for pattern, node in zip(order, src):
                reached = [way for one in reached for way in pattern.match(node, one)]
            ways += reached
        return ways


class Rule:
    """A pattern, a function of what it binds by the names there, and whether that takes `ctx`."""

    def __init__(self, pattern, function):
        if not isinstance(pattern, UPat) or not callable(function):
            raise TypeError(f"a rule is a UPat and a function, not {pattern!r} and {function!r}")
        self.pattern, self.function = pattern, function
        self.takes_context = "ctx" in inspect.signature(function).parameters

    def __str__(self):
        code = getattr(self.function, "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(self.function)

    def rewrite(self, uop, ctx):
        for found in self.pattern.match(uop, {}):
            result = self.function(ctx=ctx, **found) if self.takes_context else self.function(**found)
            if result is not None and result is not uop:
                return result
        return None


class PatternMatcher:
    """Rules, of which the first that matches a node and returns something else than None is taken.  Two are added by +."""

    def __init__(self, patterns):
        self.patterns = list(patterns)
        self.rules = [Rule(*pair) for pair in self.patterns]
        self._of_op = {}

    def of(self, op) -> list:
        """The rules that may match nodes of an operation, in their order."""
        known = self._of_op.get(op)
        if known is None:
            known = self._of_op[op] = [rule for rule in self.rules if rule.pattern.op is None or op in rule.pattern.op]
        return known

    def __add__(self, more):
        return PatternMatcher(self.patterns + more.patterns)

    def rewrite(self, uop: UOp, ctx=None):
        """What the first rule makes of the node; None if none matches."""
        return self.rewrite_by(uop, ctx)[0]

    def rewrite_by(self, uop, ctx=None) -> tuple:
        """That, and the rule."""
        for rule in self.of(uop.op):
            result = rule.rewrite(uop, ctx)
            if result is not None:
                return result, rule
        return None, None
