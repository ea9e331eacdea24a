"""Values of models that are no tensors of numbers: texts as (nested) lists of str, or NumPy's arrays of them; lists;
dicts; None where an optional value is not there."""

import array
import itertools
import math

from . import native
from ._operands import made
from ._tensor import tensor
from .methods import Kind
from .native import Tensor, Value


def _texts(context, given):
    """The value of a text, of nested lists of texts, or of what has them as `tolist()`."""
    given = given.tolist() if hasattr(given, "tolist") else given
    shape, flat = [], [given]
    while flat and isinstance(flat[0], (list, tuple)):
        shape.append(len(flat[0]))
        if any(not isinstance(part, (list, tuple)) or len(part) != shape[-1] for part in flat):
            raise ValueError("nested lists of texts differ in length")
        flat = list(itertools.chain.from_iterable(flat))
    content, lengths = _content(flat)
    if math.prod(shape) != len(lengths):
        raise ValueError("nested lists of texts differ in depth")
    return Value.texts(context, shape, content, lengths)


def _content(flat):
    """The bytes of texts one after the other, and how many each has."""
    try:
        whole = "".join(flat)
        if whole.isascii():  # a byte each
            return whole.encode("ascii"), list(map(len, flat))
    except TypeError:  # bytes among them, or what is no text
        wrong = [one for one in flat if not isinstance(one, (str, bytes))]
        if wrong:
            raise TypeError(f"texts are wanted, not {type(wrong[0]).__name__}") from None
    parts = [one if isinstance(one, bytes) else one.encode("utf-8", "surrogateescape") for one in flat]
    return b"".join(parts), list(map(len, parts))


def _has_texts(given):
    while isinstance(given, (list, tuple)) and given:
        given = given[0]
    return isinstance(given, (str, bytes)) or getattr(getattr(given, "dtype", None), "kind", "") in ("U", "S", "O")


def pairs(given):
    """An array of complex numbers as one of their parts, which are one axis more, the last; anything else as it is."""
    if getattr(getattr(given, "dtype", None), "kind", "") != "c":
        return given
    return given.copy(order="C").reshape(*given.shape, 1).view(given.real.dtype)


def value_of(context, given, kind=None):
    """What a model takes for what Python has; `kind` is the model's, if it is known."""
    if isinstance(given, Value):
        return given
    if given is None:
        return Value.nothing(context)
    if isinstance(given, dict):
        keys, values = list(given), list(given.values())
        if _has_texts(keys):
            names = _texts(context, keys)
        else:
            names = Value.from_tensor(tensor(array.array("q", keys), context=context))
        return names.map(value_of(context, values, Kind.TEXTS if _has_texts(values) else Kind.TENSOR))
    if kind == Kind.SEQUENCE or (kind != Kind.TENSOR and isinstance(given, (list, tuple)) and not _has_texts(given)):
        return Value.sequence(context, [value_of(context, one) for one in given])
    if kind == Kind.TEXTS or (kind != Kind.TENSOR and _has_texts(given)):
        return _texts(context, given)
    return Value.from_tensor(given if isinstance(given, Tensor) else tensor(pairs(given), context=context))


def content_of(model, value):
    """What Python has for what a model made: a Tensor, texts, a list, a dict, or None."""
    kind = native.tiny_value_kind(value)
    if kind == Kind.TENSOR:
        return made(model, native.tiny_value_tensor(value))
    if kind in (Kind.TEXTS, Kind.MAP) and (content := native.tiny_value_content(value)) is not NotImplemented:
        return content
    if kind == Kind.OPTIONAL:
        return None
    parts = [content_of(model, value.element(i)) for i in range(value.count)]
    if kind == Kind.SEQUENCE:
        return parts
    keys, values = (part if isinstance(part, list) else part.tolist() for part in parts)
    return dict(zip(keys, values))


def has_values(model):
    """Whether an input or output of the model is no tensor of numbers."""
    return input_kinds(model) is not None


def input_kinds(model):
    """Of a model with values that are no tensors of numbers what its inputs are; else None.  Asked once."""
    kept = model.__dict__
    if "_input_kinds" not in kept:
        inputs = [model.input_kind(i) for i in range(model.input_count)]
        outputs = [model.output_kind(i) for i in range(model.output_count)]
        kept["_input_kinds"] = inputs if set(inputs + outputs) - {Kind.TENSOR} else None
    return kept["_input_kinds"]


def run_values(model, inputs, as_tensor):
    """The outputs for inputs in the model's order, those that are tensors made by as_tensor(model, index, input)."""
    kinds, context = input_kinds(model), model.context
    given = [Value.from_tensor(as_tensor(model, i, one)) if kind == Kind.TENSOR and not isinstance(one, Value) else
             value_of(context, one, kind) for i, (kind, one) in enumerate(zip(kinds, inputs))]
    outputs = native.tiny_model_run_values(model, given, model.output_count)
    return [content_of(model, made(model, output)) for output in outputs]
