"""Models of .onnx files as functions of tensors, as tinygrad has them; tiny.Model has more."""

import os
import warnings
from typing import NamedTuple

from .._model_values import has_values
from .._tensor import default_context, tensor
from ..methods import Kind
from ..native import Model, Tensor


class OnnxValue(NamedTuple):
    """What a model takes as an input: sizes, or their names where the model leaves them free."""
    shape: tuple
    dtype: object
    is_optional: bool
    is_sequence: bool


def _value(model, index):
    kind = model.input_kind(index)
    if kind != Kind.TENSOR:
        return OnnxValue((), None, kind == Kind.OPTIONAL, kind == Kind.SEQUENCE)
    shape = tuple(model.input_dim_name(index, axis) or f"{model.input_name(index)}.{axis}" if dim == -1 else dim
                  for axis, dim in enumerate(model.input_shape(index)))
    return OnnxValue(shape, model.input_dtype(index), False, False)


class OnnxRunner:
    """The model in a file, or in the bytes that a tensor has: called with a dict of inputs by their names it gives a dict
    of its outputs, which are computed when they are needed; gradients go through it, and TinyJit captures it."""

    def __init__(self, model_path):
        is_path = isinstance(model_path, (str, os.PathLike))
        self.model = Model.load(default_context(), model_path if is_path else bytes(model_path))
        model = self.model
        self.graph_inputs = {model.input_name(i): _value(model, i) for i in range(model.input_count)}
        self.graph_outputs = tuple(model.output_name(i) for i in range(model.output_count))

    def to(self, device):
        """Itself: weights are where the inputs are."""
        return self

    def __call__(self, inputs, debug=0):
        """`debug` is tinygrad's; here TINY_DEBUG shows what runs."""
        missing = [name for name in self.graph_inputs if name not in inputs]
        if missing:
            raise RuntimeError(f"OnnxRunner: inputs are missing: {', '.join(missing)}; given: {', '.join(inputs) or 'none'}")
        given = [self._input(name, inputs[name]) for name in self.graph_inputs]
        outputs = self.model.run(given) if has_values(self.model) else self.model.apply(given)
        return dict(zip(self.graph_outputs, outputs))

    def _input(self, name, value):
        wanted = self.graph_inputs[name].dtype
        if wanted is None:
            return value
        if not isinstance(value, Tensor):
            value = tensor(value, None if hasattr(value, "dtype") else wanted, context=self.model.context)
        if value.dtype != wanted:
            warnings.warn(f"OnnxRunner: input {name} is {value.dtype} and becomes {wanted}, which the model takes", stacklevel=3)
            value = value.cast(wanted)
        return value
