"""NumPy's functions of tensors.  numpy.exp(x), numpy.sum(x, axis=0) and numpy.concatenate([x, y]) are what tensors' own
methods make; functions that tensors have no such method for get the elements as arrays, and give arrays.
"""

import inspect

from ._operands import operand
from ._tensor import tensor
from .methods import concat, stack
from .native import Tensor, made

# Methods of another name than NumPy's function of elements.
_ELEMENTWISE = {"equal": "eq", "fabs": "abs", "degrees": "rad2deg", "invert": "not_", "isnan": "is_nan",
                "left_shift": "shl", "power": "pow", "radians": "deg2rad", "right_shift": "shr", "rint": "round"}


def _as_arrays(value):
    """The same nest with an array in the place of each tensor."""
    if isinstance(value, Tensor):
        import numpy
        return numpy.asarray(value)
    if isinstance(value, (list, tuple)):
        return type(value)([_as_arrays(part) for part in value])
    return {key: _as_arrays(part) for key, part in value.items()} if isinstance(value, dict) else value


def elementwise(self, ufunc, method, *inputs, out=None, **options):
    """__array_ufunc__: a tensor, or, where it is written to an array, what NumPy computes."""
    call = f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    if out is not None:
        if any(isinstance(one, Tensor) for one in out):
            raise TypeError(f"{call}(.., out=x) of a tensor: write x.assign(..)")
        return getattr(ufunc, method)(*map(_as_arrays, inputs), out=out, **options)
    function = getattr(Tensor, _ELEMENTWISE.get(ufunc.__name__, ufunc.__name__), None)
    if method != "__call__" or options or function is None:
        said = ", ".join(f"{name}=" for name in options)
        raise TypeError(f"{call}({said}) takes no tensors: numpy.asarray(x) has a tensor's elements as an array")
    first, *others = inputs
    if not isinstance(first, Tensor):
        first = made(self, operand(self, first))
    return function(first, *others)


# ---- Functions of arrays, with NumPy's arguments

_FUNCTIONS = {}


def _function(function):
    """Adds a function under its name, without the underscore."""
    _FUNCTIONS[function.__name__.removeprefix("_")] = function, inspect.signature(function)
    return function


def _reductions():
    def typed(name):
        def reduce(a, axis=None, dtype=None, *, keepdims=False):
            return getattr(a, name)(axis=axis, keepdims=keepdims, dtype=dtype)
        return reduce

    def untyped(name):
        def reduce(a, axis=None, *, keepdims=False):
            return getattr(a, name)(axis=axis, keepdims=keepdims)
        return reduce

    def spread(name):
        def reduce(a, axis=None, *, ddof=0, keepdims=False, correction=None):
            return getattr(a, name)(axis=axis, correction=ddof if correction is None else correction, keepdim=keepdims)
        return reduce
    for make, names in ((typed, "sum prod mean"), (untyped, "max min amax amin any all"), (spread, "std var")):
        for name in names.split():
            function = make(name)
            _FUNCTIONS[name] = function, inspect.signature(function)


def _tensors(values):
    """Arrays and numbers among tensors as tensors."""
    source = next(value for value in values if isinstance(value, Tensor))
    return [value if isinstance(value, Tensor) else tensor(value, context=source.context) for value in values]


@_function
def _concatenate(arrays, axis=0):
    parts = _tensors(list(arrays))
    return concat([part.flatten() for part in parts], 0) if axis is None else concat(parts, axis)


@_function
def _stack(arrays, axis=0):
    return stack(_tensors(list(arrays)), axis)


@_function
def _where(condition, x, y):
    source = next(value for value in (condition, x, y) if isinstance(value, Tensor))
    condition = condition if isinstance(condition, Tensor) else tensor(condition, context=source.context)
    return condition.where(*(made(source, operand(source, value)) if hasattr(value, "ndim") and not isinstance(value, Tensor)
                             else value for value in (x, y)))


@_function
def _shape(a):
    return tuple(a.shape)


@_function
def _ndim(a):
    return a.ndim


@_function
def _size(a, axis=None):
    return int(a.numel) if axis is None else a.shape[axis]


@_function
def _reshape(a, shape):
    return a.reshape(shape)


@_function
def _transpose(a, axes=None):
    return a.permute(list(range(a.ndim))[::-1] if axes is None else axes)


@_function
def _flip(m, axis=None):
    return m.flip(list(range(m.ndim)) if axis is None else axis)


@_function
def _expand_dims(a, axis):
    return a.unsqueeze(axis)


@_function
def _clip(a, a_min=None, a_max=None, *, min=None, max=None):
    return a.clip(a_min if min is None else min, a_max if max is None else max)


@_function
def _cumsum(a, axis=None):
    return a.flatten().cumsum(0) if axis is None else a.cumsum(axis)


@_function
def _outer(a, b):
    return Tensor.outer(*(one.flatten() for one in _tensors([a, b])))


def _methods():
    """Functions whose arguments are those of the method."""
    for name in ("ravel", "squeeze", "swapaxes", "moveaxis", "broadcast_to", "trace", "zeros_like", "ones_like"):
        function = getattr(Tensor, name)
        _FUNCTIONS[name] = function, inspect.signature(function)


def function(self, func, types, args, kwargs):
    """__array_function__: what the tensors' method makes, or NumPy of their elements."""
    name = func.__name__
    ours, signature = _FUNCTIONS.get(name, (None, None))
    is_ours = ours is not None and func.__module__ == "numpy" and kwargs.get("out") is None
    kwargs = {key: value for key, value in kwargs.items() if key != "out" or value is not None}
    if not is_ours or (name == "where" and len(args) == 1):
        return func(*map(_as_arrays, args), **_as_arrays(kwargs))
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"numpy.{name} of a tensor: {error}; numpy.asarray(x) has its elements as an array") from None
    return ours(*bound.args, **bound.kwargs)


_reductions()
_methods()
