"""Expressions as Python writes them, as few brackets as that takes: "(x*4+2)"."""

import re

from ._table import GroupOp, Ops

# How tightly a binary operation binds, in Python's order; the others keep their brackets, since Python chains comparisons.
_BINDING = {Ops.MUL: 1, Ops.FLOORDIV: 1, Ops.FLOORMOD: 1, Ops.ADD: 2, Ops.SUB: 2, Ops.SHL: 3, Ops.SHR: 3, Ops.AND: 4,
            Ops.XOR: 5, Ops.OR: 6}  # fmt: skip
_LOOSEST = max(_BINDING.values())
# Operations that Python has no sign for, by the names of tinygrad's functions.
_CALLED = {Ops.TRUNCDIV: "cdiv", Ops.TRUNCMOD: "cmod"}


def _leaf(node):
    if node.op is Ops.VARIABLE:
        return node.arg.name
    if node.op is Ops.CONST:
        return str(node.arg)
    return node.node.text().text()


def _text(node, of):
    parts = [of[one] for one in node.src]
    if not parts:
        return _leaf(node)
    if node.op is Ops.CAST:
        return f"({node.dtype.name})({parts[0]})"
    if node.op is Ops.WHERE:
        return f"({parts[1]} if {parts[0]} else {parts[2]})"
    if node.op in GroupOp.Binary and re.fullmatch(r"\W+", node.op.symbol):
        binding = _BINDING.get(node.op)
        left, right = node.src
        if binding and _BINDING.get(left.op, _LOOSEST + 1) <= binding:
            parts[0] = parts[0][1:-1]
        if binding and _BINDING.get(right.op, _LOOSEST + 1) < binding:
            parts[1] = parts[1][1:-1]
        return f"({parts[0]}{node.op.symbol}{parts[1]})"
    name = _CALLED.get(node.op, node.op.engine_name.lower())
    return f"{name}({', '.join(parts)})"


def infix(root) -> str:
    """The expression of a node of numbers."""
    of = {}
    for node in root.toposort():
        of[node] = _text(node, of)
    return of[root]
