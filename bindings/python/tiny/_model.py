"""What Python users expect of a model beside the header's functions: arrays in, tensors out."""

import os

from . import native
from ._model_values import has_values, pairs, run_values
from ._operands import made
from ._tensor import tensor
from .methods import export_onnx
from .native import Model, Program, Tensor, Variable


def _input(model, index, value):
    if isinstance(value, Tensor):
        return value
    # Lists and numbers have no dtype of their own; a buffer has, and the model says if it is wrong.
    wanted = model.input_dtype(index) if isinstance(value, (bool, int, float, list, tuple)) else None
    return tensor(pairs(value), wanted, context=model.context)


def _ordered(self, inputs):
    """The inputs in the model's order."""
    if isinstance(inputs, dict):
        by_index = {self.input_index(name): value for name, value in inputs.items()}
        missing = [self.input_name(i) for i in range(self.input_count) if i not in by_index]
        if missing:
            raise ValueError(f"inputs are missing: {', '.join(missing)}")
        inputs = [by_index[i] for i in range(self.input_count)]
    elif len(inputs) != self.input_count:
        raise ValueError(f"the model has {self.input_count} inputs, not {len(inputs)}")
    return inputs


def _tensors(self, inputs):
    """The inputs as tensors, in the model's order."""
    return [_input(self, i, value) for i, value in enumerate(_ordered(self, inputs))]


def _run(self, inputs):
    """The outputs, in the model's order, for inputs in the model's order or in a dict by name: tensors,
    NumPy arrays (complex ones as pairs) and other buffers (copied), nested lists, numbers.  What the model says is no tensor of numbers is
    texts (nested lists of str, or NumPy's arrays of them), a list, a dict, or None for an optional that is not there."""
    if has_values(self):
        return run_values(self, _ordered(self, inputs), _input)
    outputs = native.tiny_model_run(self, _tensors(self, inputs), self.output_count)
    return [made(self, output) for output in outputs]


def _apply(self, inputs):
    """The model as a part of the graph of its inputs, which run() takes too, and placeholders: its outputs, in the
    model's order, not computed."""
    outputs = native.tiny_model_apply(self, _tensors(self, inputs), self.output_count)
    return [made(self, output) for output in outputs]


def _placeholders(self, sizes=None):
    """Placeholders (tiny_input) of the model's inputs, with their names.  A dimension that it leaves free has the size
    that the dict `sizes` has under its name, or is a variable of its name."""
    sizes, made_of = dict(sizes or {}), []
    for i in range(self.input_count):
        dims = []
        for axis, dim in enumerate(self.input_shape(i)):
            if dim == -1:
                name = self.input_dim_name(i, axis) or f"{self.input_name(i)}.{axis}"
                if name not in sizes:
                    sizes[name] = Variable.create(self.context, name, 2, 4096).dim
                dim = sizes[name]
            dims.append(dim)
        made_of.append(self.context.input(self.input_dtype(i), dims))
        made_of[-1].set_name(self.input_name(i))
    return made_of


def _export(self, path, sizes=None):
    """Writes the model anew (tiny_export_onnx), with the inputs that placeholders(sizes) makes."""
    inputs = self.placeholders(sizes)
    outputs = self.apply(inputs)
    for i, output in enumerate(outputs):
        output.set_name(self.output_name(i))
    export_onnx(inputs, outputs, os.fspath(path))


_load_file = Model.load


def _load(context, source):
    """The model in the file at the path `source`, or in a buffer of such a file's bytes, which are copied;
    Model.load_memory also takes the folder of weights in other files."""
    if isinstance(source, (str, os.PathLike)):
        return _load_file(context, os.fspath(source))
    return Model.load_memory(context, source)


_export_c_in = Program.export_c


def _export_c(self, directory, name):
    """NAME.c, NAME.h and NAME.weights in `directory` (tiny_program_export_c)."""
    _export_c_in(self, os.fspath(directory), name)


Model.run = _run
Model.apply = _apply
Model.placeholders = _placeholders
Model.export = _export
Model.load = staticmethod(_load)
Program.export_c = _export_c
