"""Dimensions that depend on variables: n + 1, n // 2, x.shape[0] * 3, in the place of sizes."""

import operator

from . import native
from .native import Variable

_DIM_MAX = 1 << 40  # sizes and positions are not beyond; what is stands for a dimension


class Dim:
    """A size that every run of a program has one of: a variable's, or what follows from some.

    It takes part in arithmetic with whole numbers and others of its context (min and max are methods), and stands
    among dims and positions; tensors take it as a scalar.  A comparison holds for all values of the variables, or
    raises ValueError.  It is no int: what must know a number raises TypeError.
    """

    __slots__ = ("context", "number")

    def __init__(self, context, number):
        self.context = context
        self.number = number  # what tiny.h's functions know it by

    @property
    def range(self):
        """(lowest, highest) of its values."""
        return tuple(native.tiny_dim_range(self.context, self.number))

    @property
    def vmin(self) -> int:
        """A number that it is not below."""
        return self.range[0]

    @property
    def vmax(self) -> int:
        """A number that it is not above."""
        return self.range[1]

    @property
    def expr(self) -> str:
        """How it is made, by the names of variables."""
        return repr(self)

    def __repr__(self):
        return native.tiny_report_text(native.tiny_dim_text(self.context, self.number))

    def __hash__(self):
        return hash(self.number)

    def __bool__(self):
        return _known("!=", self, 0)


def is_dimension(value):
    """Not so a sequence, among which NumPy's arrays have an __index__."""
    return isinstance(value, (Dim, Variable)) or (hasattr(value, "__index__") and not hasattr(value, "__len__"))


def number(value):
    """What tiny.h's functions know a dimension by; a whole number as an int, anything else as it is."""
    if isinstance(value, int):
        return value
    if isinstance(value, Dim):
        return value.number
    if isinstance(value, Variable):
        found, shift = native.tiny_variable_dim(value), value.__dict__.get("_shift")
        return native.tiny_dim_sub(value.context, found, shift) if shift else found
    return operator.index(value) if hasattr(value, "__index__") else value


def dim(context, value):
    """A number of tiny.h's: a size as it is, what stands for a dimension as a Dim."""
    return Dim(context, value) if value < -_DIM_MAX else value


def shape(tensor):
    """The sizes of the axes; one that depends on variables is a Dim, or, if they have values, an int that knows it."""
    return native.shape(tensor)


def _calculated(function):
    """The method, and the one for the operand on the right."""
    def forwards(self, other):
        if not is_dimension(other):
            return NotImplemented
        return dim(self.context, function(self.context, number(self), number(other)))

    def backwards(self, other):
        if not is_dimension(other):
            return NotImplemented
        return dim(self.context, function(self.context, number(other), number(self)))
    return forwards, backwards


def _known(sign, left, right):
    """Whether the comparison holds for every value of the variables, or for none; ValueError otherwise."""
    a, b = number(left), number(right)
    context = (left if isinstance(left, (Dim, Variable)) else right).context

    def at_most(x, y, more):  # whether x + more <= y, always: it is the lesser one then
        x = native.tiny_dim_add(context, x, more)
        return native.tiny_dim_min(context, x, y) == x
    truth = {"==": lambda: a == b, "!=": lambda: at_most(a, b, 1) or at_most(b, a, 1),
             "<": lambda: at_most(a, b, 1), "<=": lambda: at_most(a, b, 0),
             ">": lambda: at_most(b, a, 1), ">=": lambda: at_most(b, a, 0)}
    opposite = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
    if truth[sign]():
        return True
    if truth[opposite[sign]]():
        return False
    raise ValueError(f"whether {left!r} {sign} {right!r} depends on the run")


def _comparison(sign):
    def method(self, other):
        return _known(sign, self, other) if is_dimension(other) else NotImplemented
    return method


for _kind in (Dim, Variable):
    for _name, _function in (("add", native.tiny_dim_add), ("sub", native.tiny_dim_sub), ("mul", native.tiny_dim_mul),
                             ("floordiv", native.tiny_dim_floor_div), ("mod", native.tiny_dim_floor_mod)):
        _forwards, _backwards = _calculated(_function)
        setattr(_kind, f"__{_name}__", _forwards)
        setattr(_kind, f"__r{_name}__", _backwards)
    _kind.__neg__ = lambda self: 0 - self
    _kind.min, _kind.max = (_calculated(f)[0] for f in (native.tiny_dim_min, native.tiny_dim_max))
    for _name, _sign in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
        setattr(_kind, f"__{_name}__", _comparison(_sign))
Variable.__hash__ = lambda self: hash(number(self))
Variable.__repr__ = lambda self: "<tiny.Variable {} from {} to {}>".format(self.name, *self.range)
