"""What nodes and the patterns of nodes have in common: Python's operators, which build an operation on both."""

from ._table import Ops


class Arithmetic:
    """A subclass says what `_with(other)` makes of a number beside it and what `alu(op, *src)` builds."""

    __slots__ = ()

    def eq(self, other):
        return self.alu(Ops.EQUAL, other)

    def ne(self, other):
        return self.alu(Ops.NOTEQUAL, other)

    def minimum(self, other):
        return self.alu(Ops.MIN, other)

    def maximum(self, other):
        return self.alu(Ops.MAX, other)

    def __neg__(self):
        return self.alu(Ops.NEG)

    def __invert__(self):
        return self.alu(Ops.NOT)

    def __sub__(self, other):
        return self + (-other)

    def __rsub__(self, other):
        return self._with(other) + -self

    def __lt__(self, other):
        return self.alu(Ops.LESS, other)

    def __le__(self, other):
        return self.alu(Ops.LESSEQUAL, other)

    def __gt__(self, other):
        return self._with(other) < self

    def __ge__(self, other):
        return self._with(other) <= self


for _name, _op in (("add", Ops.ADD), ("mul", Ops.MUL), ("floordiv", Ops.FLOORDIV), ("mod", Ops.FLOORMOD),
                   ("truediv", Ops.DIV), ("pow", Ops.POW), ("and", Ops.AND), ("or", Ops.OR), ("xor", Ops.XOR),
                   ("lshift", Ops.SHL), ("rshift", Ops.SHR)):  # fmt: skip
    setattr(Arithmetic, f"__{_name}__", lambda self, other, op=_op: self.alu(op, other))
    setattr(Arithmetic, f"__r{_name}__", lambda self, other, op=_op: self._with(other).alu(op, self))
