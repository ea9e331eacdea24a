"""What the generated methods do to arguments before the raw function sees them, and to results."""

from . import native
from ._dimension import Dim, is_dimension, number


def whole(call):
    """All of what `call(capacity)` gives a part of, along with how much there is."""
    values, count = call(16)
    return values if count <= 16 else call(count)[0]


def made(source, result):
    """The result of a call, which remembers the context that it lives in."""
    if source is not None:
        result.context = source.context
    return result


def operand(source, value):
    """A tensor as it is; a number, or a dimension, as a weak scalar of the same context."""
    if isinstance(value, native.Tensor) or value is None:
        return value
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
