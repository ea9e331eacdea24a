"""What the generated methods do to arguments before the raw function sees them, and to results."""

from . import _tape, native
from ._bound import carry
from ._dimension import Dim, dim, is_dimension, number
from ._dtype import of
from ._reading import Reading
from .native import made, operand

# Python's operators of tensors (operators.inc), those of two operands with a reflected form, and the comparisons.
OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "matmul")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def whole(call):
    """All of what `call(capacity)` gives a part of, along with how much there is."""
    values, count = call(16)
    return values if count <= 16 else call(count)[0]


def is_array(value):
    """Whether it is another library's array, with axes."""
    return getattr(value, "ndim", 0) > 0


def dtype(value):
    """A dtype as its number, of its name and of NumPy's and PyTorch's types too."""
    return value if isinstance(value, int) else of(value)


def want_tensors(call, **operands):
    """Raises unless each is a tensor."""
    for name, value in operands.items():
        if not isinstance(value, native.Tensor):
            raise TypeError(f"{call}: a tensor is wanted as {name}, not {type(value).__name__}")


def want_numbers(call, **values):
    """Raises unless each is a number, or stands for one."""
    for name, value in values.items():
        if not isinstance(value, (int, float, Dim, native.Variable)) and not hasattr(value, "__float__"):
            raise TypeError(f"{call}: a number is wanted as {name}, not {type(value).__name__}")


def want_text(call, **values):
    for name, value in values.items():
        if not isinstance(value, str):
            raise TypeError(f"{call}: a text is wanted as {name}, not {type(value).__name__}")


def want_list(call, wanted, value, kinds=(list, tuple)):
    """Raises unless the value, which is said in words by `wanted`, is of these kinds."""
    if not isinstance(value, kinds):
        raise TypeError(f"{call}: {wanted} is wanted, not {type(value).__name__}")


def _operand(source, value):
    """operand() of what is neither a tensor nor a float or an int: a dimension, NumPy's numbers, an array, copied."""
    if is_array(value):
        from ._tensor import from_buffer
        return from_buffer(value, context=source.context)
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool):  # which changes no dtype
        return native.tiny_full(source.context, 1, ((),), float(value))
    if isinstance(value, (Dim, native.Variable)):
        return native.tiny_scalar_int(source.context, number(value))
    if hasattr(value, "__index__"):
        return native.tiny_scalar_int(source.context, value.__index__())
    if hasattr(value, "__float__"):
        return native.tiny_scalar_float(source.context, float(value))
    raise TypeError(f"a tensor or a number is wanted, not {type(value).__name__}")


def _numbers(value):
    """The integers of what is no list of them: of dimensions, of one number."""
    return [number(value)] if is_dimension(value) else list(map(number, value))


def first(objects):
    """The source of what is made of several objects."""
    return objects[0] if objects else None


def _operate(name, left, right):
    """An operator of Python's with an operand that is neither a tensor nor a float or an int."""
    other = right if isinstance(left, native.Tensor) else left
    if not is_operand(other):
        return NotImplemented
    method = getattr(native.Tensor, f"__{name}__")
    if other is right:
        return method(left, operand(left, right))
    return method(made(right, operand(right, left)), right)


def is_operand(value):
    """Whether an operator takes it beside a tensor."""
    return (isinstance(value, (native.Tensor, int, float, Dim, native.Variable)) or hasattr(value, "__index__")
            or is_array(value))


def _lend(tensor):
    """(capsule, the letter of its elements, the bytes of one) of a tensor's memory, for the buffer protocol."""
    from ._values import lent
    return lent(tensor)


native.set_hooks({"operand": _operand, "operator": _operate, "numbers": _numbers, "number": number, "dimension": dim,
                  "carry": carry, "note": _tape.note, "lend": _lend, "reading": Reading})
