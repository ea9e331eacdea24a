"""What the generated methods do to arguments before the raw function sees them, and to results."""

from . import _tape, native
from ._bound import carry
from ._dimension import Dim, is_dimension, number
from ._dtype import of
from ._reading import Reading


def whole(call):
    """All of what `call(capacity)` gives a part of, along with how much there is."""
    values, count = call(16)
    return values if count <= 16 else call(count)[0]


def made(source, result, *operands):
    """The result of a call, which remembers the context that it lives in, and what it was made of."""
    if source is not None:
        result.context = source.context
        if "_dims" in source.__dict__ and operands:
            carry(source, result)
    if Reading.tinygrad:
        if type(result) is native.Tensor:
            _tape.note(result)
    elif operands:
        _tape.trace(result, operands)
    return result


def is_array(value):
    """Whether it is another library's array, with axes."""
    return getattr(value, "ndim", 0) > 0


def dtype(value):
    """A dtype as its number, of its name and of NumPy's and PyTorch's types too."""
    return value if isinstance(value, int) else of(value)


def operand(source, value):
    """A tensor as it is; a number, or a dimension, as a weak scalar of the same context; an array copied."""
    if isinstance(value, native.Tensor) or value is None:
        return value
    if is_array(value):
        from ._tensor import from_buffer
        return from_buffer(value, context=source.context)
    value = value.item() if hasattr(value, "item") else value  # NumPy's numbers
    if isinstance(value, bool):  # which changes no dtype
        return native.tiny_full(source.context, 1, ((),), float(value))
    if isinstance(value, (Dim, native.Variable)):
        return native.tiny_scalar_int(source.context, number(value))
    if hasattr(value, "__index__"):
        return native.tiny_scalar_int(source.context, value.__index__())
    if hasattr(value, "__float__"):
        return native.tiny_scalar_float(source.context, float(value))
    raise TypeError(f"a tensor or a number is wanted, not {type(value).__name__}")


def lists(*sequences):
    """Sequences of integers or dimensions for the raw function, which wants a tuple; one is a list."""
    return tuple(value if value is None else [number(value)] if is_dimension(value) else list(map(number, value))
                 for value in sequences)


def first(objects):
    """The source of what is made of several objects."""
    return objects[0] if objects else None
