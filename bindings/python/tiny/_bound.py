"""Whole numbers that are made of variables with a value: Variable("i", 1, 10).bind(3), in the place of sizes.

Outside of programs such a number is its value, and remembers how it follows from variables; so do tensors that were
cut or made by one.  TinyJit makes dimensions of a program of them: one program for all values.
"""

import operator

from . import _dimension, native
from ._dimension import Dim
from .native import Variable


class Bound(int):
    """A whole number that is made of variables with values: an int in every way, of which sums, differences, products,
    quotients and remainders with others are such numbers again.

    dim       the dimension of its context that it is, tiny.Dim
    bindings  {name: (variable, value)}
    """

    def __new__(cls, value, dim, bindings):
        self = super().__new__(cls, value)
        self.dim, self.bindings = dim, bindings
        return self

    @property
    def val(self) -> int:
        """The value, as a plain int."""
        return int(self)

    @property
    def vmin(self) -> int:
        """The least value that it may have."""
        return self.dim.range[0]

    @property
    def vmax(self) -> int:
        """The greatest value that it may have."""
        return self.dim.range[1]

    @property
    def expr(self) -> str:
        """How it is made, by the names of variables."""
        return repr(self.dim)

    def unbind(self) -> tuple:
        """(variable, value) of a variable that was bound."""
        for variable, value in self.bindings.values():
            if _dimension.number(variable) == self.dim.number:
                return variable, value
        raise ValueError(f"unbind: {self!r} is made of variables; a variable itself is wanted")

    def __repr__(self):
        return f"{self.dim!r}={int(self)}"

    def __reduce__(self):
        try:
            variable, value = self.unbind()
        except ValueError:
            return int, (int(self),)
        return _bound_again, (variable, value)


def _bound_again(variable, value):
    return variable.bind(value)


def _of(value, dim, *operands):
    """The number of this dimension; a plain one where variables have no part in it, or two values."""
    if not isinstance(dim, Dim):
        return value
    bindings = {}
    for operand in operands:
        for name, binding in getattr(operand, "bindings", {}).items():
            if bindings.setdefault(name, binding)[1] != binding[1]:
                return value
    return Bound(value, dim, bindings)


def _calculated(function):
    def forwards(self, other):
        if isinstance(other, (Dim, Variable)):
            return function(self.dim, other)
        value = function(int(self), int(other) if isinstance(other, int) else other)
        if type(value) is not int or not isinstance(other, int):
            return value
        return _of(value, function(self.dim, other.dim if isinstance(other, Bound) else int(other)), self, other)

    def backwards(self, other):
        if isinstance(other, (Dim, Variable)):
            return function(other, self.dim)
        value = function(int(other) if isinstance(other, int) else other, int(self))
        return _of(value, function(int(other), self.dim), self) if type(value) is int else value
    return forwards, backwards


def _guarded(function):
    """Where no dimension is (a divisor that may be 0, beyond 2^40) a plain number is."""
    def call(a, b):
        try:
            return function(a, b)
        except RuntimeError:
            return None
    return call


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    _forwards, _backwards = _calculated(_guarded(getattr(operator, _name)))
    setattr(Bound, f"__{_name}__", _forwards)
    setattr(Bound, f"__r{_name}__", _backwards)
Bound.__neg__ = lambda self: 0 - self


def set_variables(run, bindings, known):
    """Gives a run of a program the values.  `known` is what is known of the names: whether the program has it."""
    for name, (variable, value) in bindings.items():
        if known.get(name, True):
            try:
                native.tiny_run_set_variable(run, variable, value + variable.__dict__.get("_shift", 0))
                known[name] = True
            except RuntimeError:
                if name in known:
                    raise
                known[name] = False


# ---- Shapes that remember

def sized(result, dims):
    """The tensor, whose sizes are such numbers where `dims` has them."""
    if any(type(size) is Bound for size in dims):
        own = result.shape
        if len(own) == len(dims):
            result._dims = tuple(given if type(given) is Bound and given == size else size
                                 for size, given in zip(own, dims))
    return result


def carry(source, result):
    """What is of the same shape as a tensor that remembers does, too."""
    dims = source._dims
    if result is not source and native.tiny_tensor_rank(result) == len(dims) and result.shape == dims:
        result._dims = dims


def known(given, missing, size, found):
    """A bound of a slice, which was found to be this number, as it follows from variables."""
    given = missing if given is None else given
    if isinstance(given, int) and given < 0:
        given = size + given
    return given if type(given) is Bound and given == found else found


def is_made_of(values):
    """Whether variables have a part in one of them."""
    return any(type(value) is Bound for value in values)
