"""Ops: the engine's operations, from its own table, and sets of them by what they are."""

import enum
import json

from ..methods import ops

_TABLE = json.loads(ops().text())
# How tinygrad calls what the engine has under another name.
_SPELT = {"CMPLT": "LESS", "CMPNE": "NOTEQUAL", "CMPEQ": "EQUAL", "CDIV": "TRUNCDIV", "CMOD": "TRUNCMOD", "FDIV": "DIV",
          "MULACC": "FMA", "DEFINE_VAR": "VARIABLE"}


class _Ops(enum.IntEnum):
    __str__ = enum.Enum.__str__

    def __repr__(self):
        return str(self)

    @property
    def engine_name(self) -> str:
        """What the engine calls it: "FloorDiv"."""
        return _TABLE[self - 1]["name"]

    @property
    def symbol(self) -> str:
        """What stands for it in expressions: "//"."""
        return _TABLE[self - 1]["symbol"]

    @property
    def arity(self):
        """How many sources it has; None for any number."""
        return _TABLE[self - 1]["arity"]

    @property
    def stages(self) -> frozenset:
        """Which of the engine's representations may hold it: tensor, kernel, linear."""
        return frozenset(_TABLE[self - 1]["stages"])


_NUMBERS = {row["name"].upper(): number for number, row in enumerate(_TABLE, 1)}
Ops = _Ops("Ops", {**_NUMBERS, **{name: _NUMBERS[real] for name, real in _SPELT.items()}}, module=__name__)
of_engine = {op.engine_name: op for op in Ops}


def _with(trait):
    return frozenset(op for op, row in zip(Ops, _TABLE) if trait in row["traits"])


class GroupOp:
    """Sets of Ops by the traits of the table."""

    All = frozenset(Ops)
    Elementwise = ALU = _with("elementwise")
    Unary = frozenset(op for op in Elementwise if op.arity == 1)
    Binary = frozenset(op for op in Elementwise if op.arity == 2)
    Ternary = frozenset(op for op in Elementwise if op.arity == 3)
    Commutative = _with("commutative")
    Associative = _with("associative")
    Movement = _with("movement")
    Comparison = frozenset(op for op, row in zip(Ops, _TABLE) if row["result"] == "bool")
