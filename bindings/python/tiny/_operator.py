"""Operators of models as functions of tensors: tiny.op("TopK", x, 3, axis=-1, outputs=2)."""

import math

from . import native
from ._dimension import Dim
from ._dtype import DType
from ._operands import made, operand
from ._tensor import default_context, tensor
from .methods import Dtype
from .native import Tensor, Variable


def _number(value):
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, (Dtype, DType)):
        return value.name.lower()
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def _is_array(value):
    return isinstance(value, Tensor) or hasattr(value, "__array__")


def _encoded(value):
    """What JSON has for an attribute: tensors and arrays are {"dtype", "shape", "data"}."""
    if isinstance(value, (list, tuple)):
        return [_number(element) for element in value]
    if not _is_array(value) or (not isinstance(value, Tensor) and not getattr(value, "shape", ())):
        return _number(value)
    value = value if isinstance(value, Tensor) else tensor(value)
    elements = value.reshape([value.numel]).tolist()
    return {"dtype": value.dtype.name, "shape": list(value.shape),
            "data": [_number(element) for element in elements]}


def _given(context, value):
    """An operand: a number takes the dtype of what it meets; lists and arrays become tensors."""
    if value is None or isinstance(value, Tensor):
        return value
    if isinstance(value, (int, float, Dim, Variable)):
        return operand(context, value)
    return tensor(value, context=context)


def op(name, *inputs, outputs=1, domain="", opset=0, context=None, **attributes):
    """The operator `name` of ONNX, as models have it, of these inputs: tensors, numbers, lists, arrays; None for one
    that is left out.  Attributes are keywords: numbers, strings, lists of them, dtypes, tensors.  One output, or as
    a list the first `outputs` of them.  The inputs' context, or the default one; docs/ONNX.md lists the operators."""
    if context is None:
        tensors = [value for value in inputs if isinstance(value, Tensor)]
        context = tensors[0].context if tensors else default_context()
    import json
    text = json.dumps({key: _encoded(value) for key, value in attributes.items()})
    operands = [_given(context, value) for value in inputs]
    results = native.tiny_op(context, domain, name, opset, operands, text, outputs)
    results = [made(context, result, inputs) for result in results]
    return results[0] if outputs == 1 else results
