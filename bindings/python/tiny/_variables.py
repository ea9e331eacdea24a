"""Variables by name: Variable("i", 1, 10)."""

import operator

from . import native
from ._bound import Bound
from ._reading import WrongArgument
from .native import Variable

shifted = {}  # variables that may be negative, by how expressions spell them: the name, and what is added
_LEAST, _MOST = 0, 1 << 40  # of tiny_variable_create; a variable that may be less is one of tiny.h's less a number


def _new_variable(self, name, min_val, max_val, dtype=None, context=None):
    """A whole number from `min_val` to `max_val`; one with the same name and range is the same.  `dtype` is of its
    values as elements, which are int64 in any case."""
    from ._tensor import default_context
    if not all(hasattr(bound, "__index__") for bound in (min_val, max_val)) or min_val > max_val:
        raise ValueError(f"Variable {name!r} from {min_val!r} to {max_val!r}: two whole numbers, the lesser one first")
    context = context or default_context()
    shift = max(0, _LEAST - min_val)
    most = min(max(max_val + shift, min_val + shift + 1), _MOST)  # two values at least; programs have no more
    spelt = f"({name}+{shift})" if shift else name  # in expressions
    if shift:
        shifted[spelt] = name, shift
    self.this = native.tiny_variable_create(context, spelt, min_val + shift, most).this
    self.context, self.dtype = context, dtype
    self._shift, self._limits, self._name = shift, (min_val, max_val), name


def _bind(self, value) -> Bound:
    """The variable with a value of its range."""
    low, high = self.range
    if not hasattr(value, "__index__") or not low <= value <= high:
        raise WrongArgument(f"bind: {value!r} for the variable {self.name!r}, which is from {low} to {high}")
    value = operator.index(value)
    return Bound(value, self.dim, {self.name: (self, value)})


def _no_value(self):
    raise RuntimeError(f"the variable {self.name!r} is unbound: it has no value")


_plain_range, _plain_name = Variable.range, Variable.name
Variable.__init__ = _new_variable
Variable.bind = _bind
Variable.range = property(lambda self: self.__dict__.get("_limits") or tuple(_plain_range.fget(self)))
Variable.name = property(lambda self: self.__dict__.get("_name") or _plain_name.fget(self))
Variable.vmin = property(lambda self: self.range[0])
Variable.vmax = property(lambda self: self.range[1])
Variable.expr = property(lambda self: self.name)
Variable.val = property(_no_value)
Variable.__reduce__ = lambda self: (Variable, (self.name, *self.range))
