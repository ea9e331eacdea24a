"""Sizes of a graph that are symbols: a program for all of them, whose variables each call binds."""

import math

import torch
import torch.utils._pytree
from torch.utils._sympy.printers import PythonPrinter

# Greatest values of variables without one of their own: the first with which every number of elements is below the
# engine's limit for what depends on variables.  A call with larger sizes has programs of its own.
GREATEST = (1 << 20, 1 << 15, 1 << 12, 1 << 10, 1 << 9)
LEAST = 2  # PyTorch's graphs are for sizes other than 0 and 1, which broadcast
# What stands for variables.  Sizes that differ must differ as numbers in one of the two: rounded down, quotients by 2, 3, 4, ..
# of numbers that are 1 less than a multiple of 240 differ from multiples of one another, and rounded up those of numbers that
# are 2 more than a multiple of 16, 3 more than one of 9, 5 more than one of 25.
STAND_INS = ((100559, 105359, 111119, 115679, 121439, 129119), (101730, 108930, 116130, 123330, 130530, 137730))


def _symbol_of(size):
    """The symbol that a size is by itself, or None."""
    expression = size.node.expr if isinstance(size, torch.SymInt) else None
    return expression if expression is not None and expression.is_Symbol else None


def _text(value):
    if isinstance(value, torch.SymInt):
        return PythonPrinter().doprint(value.node.expr)
    if isinstance(value, torch.Tensor):
        return f"({_text(value.shape)}, {_text(value.stride())})"
    if isinstance(value, (tuple, list)):
        return "(" + "".join(_text(one) + ", " for one in value) + ")"
    return repr(value)


def has_symbols(value):
    """Whether sizes of a tensor, or a number, depend on symbols."""
    if isinstance(value, torch.Tensor):
        return any(isinstance(size, torch.SymInt) for size in (*value.shape, *value.stride(), value.storage_offset()))
    return isinstance(value, torch.SymInt)


class _Dimension:
    """A dimension of the engine, for expressions of PyTorch's to calculate with."""

    def __init__(self, number):
        self.number = number


def _calculated(name, turned):
    def method(a, b):
        a, b = (x.number if isinstance(x, _Dimension) else x for x in ((b, a) if turned else (a, b)))
        return _Dimension(torch.ops.tiny.dimension(name, a, b))
    return method


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    for _turned in (False, True):
        setattr(_Dimension, f"__{'r' * _turned}{_name}__", _calculated(_name, _turned))


class Variables:
    """The symbols of a graph, by where a call's inputs have them, and its inputs and numbers as functions of them."""

    def __init__(self, module):
        nodes = list(module.graph.nodes)
        inputs = [node.meta.get("val") for node in nodes if node.op == "placeholder"]
        self.places = {}  # of symbols: an input's number and an axis, or None where the input is the number
        for i, value in enumerate(inputs):
            for axis, size in enumerate(value.shape) if isinstance(value, torch.Tensor) else ((None, value),):
                symbol = _symbol_of(size)
                if symbol is not None and symbol not in self.places:
                    self.places[symbol], environment = (i, axis), size.node.shape_env
        if not self.places:
            raise ValueError("no input has a size that is a symbol")
        ranges = [environment.var_to_range[symbol] for symbol in self.places]
        self.least = [max(LEAST, int(r.lower)) if r.lower.is_Integer else LEAST for r in ranges]
        self._greatest = [int(r.upper) if r.upper.is_Integer else None for r in ranges]
        self.inputs = self._function(inputs)
        self.tensors = [node for node in nodes if node.op == "call_function" and isinstance(node.meta.get("val"), torch.Tensor)]
        self.shapes = self._function([node.meta["val"].shape for node in self.tensors])
        values = torch.utils._pytree.tree_leaves([node.meta.get("val") for node in nodes])
        sizes = [size for value in values for size in ((*value.shape, *value.stride()) if isinstance(value, torch.Tensor) else (value,))]
        texts = {_text(size) for size in sizes if isinstance(size, torch.SymInt)}
        self.known = [self._evaluated(text) for text in sorted(texts)]
        outputs = nodes[-1].args[0]
        self.results = self._function([node.meta.get("val") if isinstance(node, torch.fx.Node) else node for node in outputs])

    def _function(self, values):
        """Numbers, and sizes and strides of tensors, for values of the symbols."""
        return self._evaluated(_text(values))

    def _evaluated(self, text):
        return eval(f"lambda {', '.join(str(symbol) for symbol in self.places)}: {text}", {"math": math})

    def sizes_and_dimensions(self, numbers, variables):
        """What PyTorch knows to depend on symbols: numbers for stand-ins, and the engine's dimensions."""
        sizes, dimensions = [], []
        for expression in self.known:
            try:
                dimension = expression(*(_Dimension(variable) for variable in variables))
            except (TypeError, RuntimeError):
                continue  # a function that dimensions do not have
            sizes.append(expression(*numbers))
            dimensions.append(dimension.number)
        return sizes, dimensions

    def greatest_within(self, least, most):
        """Greatest values, at most that where the least is not as large."""
        return [max(few + 1, min(most, known or most)) for few, known in zip(least, self._greatest)]

    def of(self, inputs):
        """The symbols' values in a call."""
        return [inputs[i] if axis is None else inputs[i].shape[axis] for i, axis in self.places.values()]
