"""UOp: a node of the engine's graph.  Nodes are interned, and so are these objects: equal fields are one object."""

import json
import math
import typing
import weakref

from .. import _dtype, _operands, native
from .._tensor import default_context
from ..methods import Node, _tensor_node
from ._arithmetic import Arithmetic
from ._infix import infix
from ._memory import Buffer, buffer_of
from ._table import GroupOp, Ops, of_engine

_UNBOUNDED = (-(1 << 63), (1 << 63) - 1)
_live = weakref.WeakValueDictionary()  # by the node's id


class View(typing.NamedTuple):
    """How a load or store lies in its buffer: sizes and strides in elements, None where a source gives one."""

    shape: tuple
    strides: tuple
    offset: int


class VariableArg(typing.NamedTuple):
    """A variable's name and the least and greatest of its values."""

    name: str
    min: int
    max: int


class ReduceArg(typing.NamedTuple):
    """What a reduction folds with, and in the tensor graph along which axes."""

    op: Ops
    axes: tuple


def _argument(op, text):
    value = json.loads(text)
    if isinstance(value, str):  # nan, inf, -inf
        return float(value)
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, dict):
        return value
    if "strides" in value:
        return View(tuple(value["shape"]), tuple(value["strides"]), value["offset"])
    if "axes" in value:
        return ReduceArg(of_engine[value["op"]], tuple(value["axes"]))
    return VariableArg(**value)


def wrap(node):
    """The UOp of a handle."""
    key = node.id
    known = _live.get(key)
    if known is not None:
        return known
    self = object.__new__(UOp)
    self.node, self.op = node, of_engine[node.op]
    self.dtype = node.dtype if node.dtype else _dtype.void
    self._src = self._arg = None
    _live[key] = self
    return self


def _constant(context, value, dtype=None):
    if dtype is None:
        dtype = "bool" if isinstance(value, bool) else "float32" if isinstance(value, float) else "int64"
    dtype = _dtype.of(dtype)
    if dtype.is_float:
        return wrap(Node.float(context, dtype, float(value)))
    if isinstance(value, float) and not value.is_integer():
        raise TypeError(f"UOp.const({value!r}, {dtype!r}): a whole number is wanted")
    return wrap(Node.integer(context, dtype, int(value)))


class UOp(Arithmetic):
    """op     a member of Ops
    dtype  the type of its value; dtypes.void for a statement
    src    its sources, a tuple of UOps
    arg    what else tells it apart, of a type by `op`: a number, a tuple, a View, .. or None
    shape  of a node of the tensor graph; None in a kernel, where nothing has one

    Arithmetic builds nodes as they stand: x + 0 is an ADD until simplify() or a rule of yours changes it.  Numbers take
    the type of the node that they meet.  == is identity; != and the other comparisons build nodes, and eq() does."""

    __slots__ = ("node", "op", "dtype", "_src", "_arg", "__weakref__")

    def __new__(cls, op, dtype=None, src=(), arg=None):
        """UOp(Ops.ADD, src=(a, b)), UOp(Ops.CAST, dtypes.float32, (a,)), UOp(Ops.CONST, dtypes.int64, arg=3)."""
        src = tuple(src)
        if op is Ops.CONST and not src:
            return cls.const(arg, dtype)
        if op is Ops.VARIABLE and not src:
            return cls.variable(*arg)
        if op not in GroupOp.Elementwise:
            raise ValueError(f"UOp({op}): that comes from the engine alone; elementwise ones, CONST and VARIABLE can be "
                             "made, and replace() gives any node other sources")
        if op in (Ops.CAST, Ops.BITCAST) and dtype is None:
            dtype, arg = arg, None
        if arg is not None:
            raise ValueError(f"UOp({op}, arg={arg!r}): an elementwise operation has no argument")
        number = 0 if dtype is None else _operands.dtype(dtype)
        context = src[0].node.context if src else default_context()
        return wrap(Node.make(context, op.engine_name, number, [one.node for one in src]))

    @staticmethod
    def const(value, dtype=None) -> "UOp":
        """A number: int64, float32 or bool if nothing else is said."""
        return _constant(default_context(), value, dtype)

    @staticmethod
    def variable(name, min_val, max_val) -> "UOp":
        """An int64 from `min_val` to `max_val`, both among its values."""
        return wrap(Node.variable(default_context(), name, min_val, max_val))

    def bind(self, value):
        """A variable with a value, as Variable.bind() gives it."""
        if self.op is not Ops.VARIABLE:
            raise ValueError(f"bind: {self!r} is no variable")
        return native.Variable(*self.arg).bind(value)

    # ---- What it is

    @property
    def src(self) -> tuple:
        if self._src is None:
            node = self.node
            self._src = tuple(wrap(node.source(i)) for i in range(node.source_count))
        return self._src

    @property
    def arg(self):
        if self._arg is None:
            self._arg = (_argument(self.op, self.node.argument().text()),)
        return self._arg[0]

    @property
    def val(self):
        """Of a constant: its value."""
        if self.op is not Ops.CONST:
            raise ValueError(f"{self.op} has no value; a constant is wanted")
        return self.arg

    @property
    def shape(self):
        return tuple(self.node.shape) if self.node.has_shape else None

    @property
    def is_realized(self) -> bool:
        """Whether its elements are in memory, so that they are read and not computed."""
        return bool(self.node.in_memory)

    @property
    def base(self) -> "UOp":
        """What it is a view of: the node below all movement."""
        node = self
        while node.op in GroupOp.Movement:
            node = node.src[0]
        return node

    @property
    def buffer(self) -> Buffer:
        """The memory with its elements, or those that it is a view of; RuntimeError if they are not computed yet."""
        base = self.base
        while base.op is Ops.AFTER:  # written since
            base = base.src[0].base
        if not base.is_realized or not base.shape:
            raise RuntimeError(f"{base.op} is not in memory: realize() the tensor first")
        return buffer_of(base)

    @property
    def realized(self):
        """The memory with its elements; None if they are not computed yet."""
        return self.buffer if self.is_realized and self.base.shape else None

    def _bounds(self):
        if not (self.dtype.is_int or self.dtype.name == "bool"):
            if self.op is Ops.CONST:
                return self.arg, self.arg
            return -math.inf, math.inf
        low, high = self.node.range
        if self.dtype.name == "bool":
            return bool(low), bool(high)
        return -math.inf if low == _UNBOUNDED[0] else low, math.inf if high == _UNBOUNDED[1] else high

    @property
    def vmin(self):
        """A number that it is not below, whatever its variables are; -inf if none is known."""
        return self._bounds()[0]

    @property
    def vmax(self):
        """A number that it is not above; inf if none is known."""
        return self._bounds()[1]

    def toposort(self, gate=None) -> dict:
        """It and all nodes below, sources before users, as the keys of a dict.  What `gate` says no to is left out, with
        what only it leads to."""
        found, stack = {}, [(self, False)]
        while stack:
            node, is_done = stack.pop()
            if node in found:
                continue
            if is_done:
                found[node] = None
            elif gate is None or gate(node):
                stack.append((node, True))
                stack.extend((one, False) for one in reversed(node.src))
        return found

    def variables(self) -> list:
        """The variables that it depends on, by their names."""
        return sorted((one for one in self.toposort() if one.op is Ops.VARIABLE), key=lambda one: one.arg)

    def render(self, simplify=True) -> str:
        """As an expression: "(x*4+2)"."""
        return infix(self.simplify() if simplify else self)

    def __str__(self):
        return _tree(self)

    __repr__ = __str__

    # ---- What can be made of it

    def replace(self, op=None, dtype=None, src=None, arg=None) -> "UOp":
        """The node with other fields: other sources for any node, each of the type and shape of that which it replaces;
        another operation for an elementwise one."""
        if (op is None or op is self.op) and dtype is None and arg is None:
            return self if src is None or tuple(src) == self.src else wrap(
                self.node.with_sources([one.node for one in src]))
        keeps = self.op in (Ops.CAST, Ops.BITCAST, Ops.CONST)
        return UOp(self.op if op is None else op, self.dtype if dtype is None and keeps else dtype,
                   self.src if src is None else src, self.arg if arg is None and keeps else arg)

    def substitute(self, nodes) -> "UOp":
        """With the nodes that are keys of a dict replaced by its values."""
        made = {}
        for node in self.toposort(lambda one: one not in nodes):
            made[node] = node.replace(src=tuple(nodes.get(one, made.get(one)) for one in node.src))
        return nodes.get(self, made.get(self))

    def simplify(self) -> "UOp":
        """By the engine's rules for indices, where int64 is taken not to overflow; of expressions of numbers alone."""
        return wrap(self.node.simplify())

    def tensor(self) -> native.Tensor:
        """A tensor of its value; ValueError, which says why, for what is none."""
        return self.node.tensor()

    def const_like(self, value) -> "UOp":
        """A constant of its type and, in the tensor graph, of its shape."""
        if self.shape:
            return wrap(_tensor_node(self.node.context.full(self.dtype, self.shape, value)))
        return _constant(self.node.context, value, self.dtype)

    def _with(self, other):
        return other if isinstance(other, UOp) else self.const_like(other)

    def alu(self, op, *src) -> "UOp":
        """The operation on it and others, of which numbers take its type."""
        return UOp(op, src=(self, *(self._with(one) for one in src)))

    def cast(self, dtype) -> "UOp":
        return self if _dtype.of(dtype) == self.dtype else UOp(Ops.CAST, dtype, (self,))

    def bitcast(self, dtype) -> "UOp":
        return UOp(Ops.BITCAST, dtype, (self,))

    def where(self, x, y) -> "UOp":
        """x where it is true, else y; of two numbers both are constants of the type that the first says."""
        if not isinstance(x, UOp):
            x = y.const_like(x) if isinstance(y, UOp) else _constant(self.node.context, x)
        return UOp(Ops.WHERE, src=(self, x, x._with(y)))

    def __abs__(self):
        return UOp(Ops.ABS, src=(self,))

    # Defined by hand, __ne__ would take the hash away.
    def __eq__(self, other):
        return self is other

    def __ne__(self, other):
        return True if other is None else self.ne(other)

    __hash__ = object.__hash__

    def __bool__(self):
        node = self if self.shape else self.simplify()
        if node.op is not Ops.CONST:
            raise TypeError(f"{_tree(self)} is neither true nor false for all values of its variables")
        return bool(node.arg)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        if self.op is Ops.CONST:
            return UOp.const, (self.arg, self.dtype)
        if self.op is Ops.VARIABLE:
            return UOp.variable, tuple(self.arg)
        if self.op not in GroupOp.Elementwise:
            raise TypeError(f"{self.op} depends on this process; expressions of constants and variables can be pickled")
        return UOp, (self.op, self.dtype if self.op in (Ops.CAST, Ops.BITCAST) else None, self.src)


for _op in GroupOp.Unary - {Ops.CAST, Ops.BITCAST, Ops.NOT, Ops.NEG, Ops.ABS}:
    setattr(UOp, _op.name.lower(), lambda self, op=_op: UOp(op, src=(self,)))
_LINES = 400  # of a node's text


def _tree(root):
    """The node and all below, one a line; what several use is numbered and written once."""
    order = root.toposort()
    users = dict.fromkeys(order, 0)
    for node in order:
        for one in node.src:
            users[one] += 1
    lines, numbers, stack = [], {}, [(root, 0)]
    while stack and len(lines) < _LINES:
        node, depth = stack.pop()
        if node in numbers:
            lines.append(f"{'  ' * depth}x{numbers[node]}")
            continue
        head = ""
        if users[node] > 1 and node.src:
            numbers[node] = len(numbers)
            head = f"x{numbers[node]} := "
        argument = "" if node.arg is None else f", arg={node.arg!r}"
        shape = f", shape={node.shape}" if node.shape else ""
        lines.append(f"{'  ' * depth}{head}UOp({node.op}, {node.dtype!r}{argument}{shape})")
        stack.extend((one, depth + 1) for one in reversed(node.src))
    return "\n".join(lines + ["  .."] if stack else lines)


def uop(self) -> UOp:
    """The node of the tensor's value: what it will be computed of, or a view of memory once it is."""
    return wrap(_tensor_node(self))
