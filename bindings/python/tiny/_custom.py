"""Operators whose functions are Python's, for graphs and for ONNX models:

    @tiny.custom_op("com.example", "Median", infer=lambda x: tiny.Spec(x.dtype, x.shape[:-1]))
    def median(x):
        return numpy.median(x, axis=-1).astype(x.dtype)
"""

import collections
import functools
import json

from . import native
from ._operator import op
from ._rounding import storage_fmt_for_dtype
from ._tensor import LETTERS, default_context
from .methods import Dtype

try:
    import numpy
except ImportError:
    numpy = None

Spec = collections.namedtuple("Spec", "dtype shape")
Spec.__doc__ = """What a tensor is without its elements: a dtype and a tuple of dimensions."""


def _listed(results):
    return list(results) if isinstance(results, (list, tuple)) and not isinstance(results, Spec) else [results]


def _counted(results, count, what):
    if len(results) < count:
        raise ValueError(f"{what} returns {len(results)} outputs where {count} are wanted")
    return results[:count]


def _array(value):
    """The memory of a value, for the length of the call: a NumPy array, or without NumPy a memoryview."""
    if value is None:
        return None
    dtype, dims, memory = value
    letter = LETTERS.get(dtype) or storage_fmt_for_dtype(dtype)  # the bits of what has no letter
    if numpy is not None:
        return (numpy.empty(dims, letter) if memory is None else
                numpy.frombuffer(memory, letter).reshape(dims))
    return memoryview(b"") if memory is None else memory.cast(letter, dims)


def _fill(output, result):
    if numpy is None:
        elements = memoryview(result).cast("B")
        if output[2] is not None:
            output[2][:] = elements
        return
    target, source = _array(output), numpy.asarray(result)
    if source.shape != target.shape or source.dtype != target.dtype:
        raise ValueError(f"an output of dtype {target.dtype} and shape {target.shape} is wanted, not "
                         f"{source.dtype} {source.shape}")
    target[...] = source


class CustomOp:
    """An operator of a domain; called with tensors it gives tensors, not computed."""

    def __init__(self, domain, name, function, infer=None, outputs=1, gradient=None):
        self.domain, self.name, self.outputs = domain, name, outputs
        self._function, self._infer, self._gradient = function, infer, gradient
        functools.update_wrapper(self, function)

    def register(self, context):
        """The context's graphs and models know the operator from now on."""
        calls = (self._infer_call, self._run_call) + ((self._gradient_call,) if self._gradient else ())
        native.tiny_add_operator(context, self.domain, self.name, calls)
        return self

    def __call__(self, *inputs, outputs=None, **attributes):
        return op(self.name, *inputs, domain=self.domain, outputs=outputs or self.outputs, **attributes)

    def _infer_call(self, attributes, inputs, count):
        specs = [value and Spec(Dtype(value[0]), value[1]) for value in inputs]
        found = self._infer(*specs, **json.loads(attributes)) if self._infer else [specs[0]] * count
        found = _counted(_listed(found), count, f"infer of {self.domain}.{self.name}")
        return [(int(dtype), list(shape)) for dtype, shape in found]

    def _run_call(self, attributes, inputs, outputs):
        self._fill_all(self._function, attributes, inputs, outputs, f"{self.domain}.{self.name}")

    def _gradient_call(self, attributes, inputs, outputs):
        self._fill_all(self._gradient, attributes, inputs, outputs, f"the gradient of {self.domain}.{self.name}")

    @staticmethod
    def _fill_all(function, attributes, inputs, outputs, what):
        results = function(*map(_array, inputs), **json.loads(attributes))
        results = results if isinstance(results, (list, tuple)) else [results]
        for output, result in zip(outputs, _counted(results, len(outputs), what)):
            _fill(output, result)


def custom_op(domain, name, infer=None, outputs=1, context=None, gradient=None):
    """Makes an operator of the function: arrays in (NumPy's, valid for the call; memoryviews without NumPy), with
    attributes as keywords, an array or a tuple of arrays out, which are copied.  `infer` gets a Spec for each input and
    the attributes, and returns a Spec for each output; None: outputs are as the first input.  Dimensions that runs bind
    are numbers to be passed on as they are.  Both are called with the interpreter's lock, and may not use the context;
    an exception ends the call that builds or runs with tiny.Error.  It is registered in `context`, or the default
    one; CustomOp.register adds others.  `gradient` is for tiny.gradient: it gets the inputs, the outputs, and what
    reached each output (None where nothing did), and returns the gradients of those inputs that are floats."""
    def decorate(function):
        return CustomOp(domain, name, function, infer, outputs, gradient).register(context or default_context())
    return decorate
