"""Inputs for any model: what its names, types and the graph behind them ask for."""

import re

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Values pass through these unchanged, or nearly.
PASSES = {"Cast", "Unsqueeze", "Squeeze", "Reshape", "Identity", "Transpose", "Expand", "Flatten", "Slice", "Concat", "Tile",
          "Add", "Where", "Clip", "Max", "Min"}  # fmt: skip
MOST = 10  # an integer of which nothing is known stays below
# The first and the second size of a dimension by what its name has; the first row that matches counts.
SIZES = ((r"batch|^n$|^b$", (2, 3)), (r"past", (6, 9)), (r"channel", (3, 3)), (r"height|width|h$|w$", (64, 96)),
         (r"sample", (4000, 6000)), (r"frame|time|count|length|seq|target|tok", (12, 17)), (r"", (4, 7)))  # fmt: skip


class Dimensions:
    """Sizes of free dimensions by name, the first or the second of each; a name may be a sum of others."""

    def __init__(self, which):
        self.which, self.sizes = which, {}

    def size(self, name, port, axis):
        parts = [part.strip() for part in name.split("+")]
        if len(parts) > 1:
            return sum(int(part) if part.isdigit() else self.size(part, port, axis) for part in parts)
        key = name or f"{port}.{axis}"
        if key not in self.sizes:
            # A nameless first axis is a batch, others are lengths.
            text = name.lower() if name and not re.fullmatch(r"s\d+|\?|unk.*", name) else ("batch" if axis == 0 else "length")
            self.sizes[key] = next(sizes for pattern, sizes in SIZES if re.search(pattern, text))[self.which]
        return self.sizes[key]


def ports_of(model):
    constants = {tensor.name for tensor in model.graph.initializer}
    return [port for port in model.graph.input if port.name not in constants]


def is_free(model):
    return any(not dim.HasField("dim_value") for port in ports_of(model) for dim in port.type.tensor_type.shape.dim)


def shapes_of(model, which):
    dimensions = Dimensions(which)
    shapes = {port.name: [dim.dim_value if dim.HasField("dim_value") else dimensions.size(dim.dim_param, port.name, axis)
                          for axis, dim in enumerate(port.type.tensor_type.shape.dim)] for port in ports_of(model)}  # fmt: skip
    return shapes


def graphs_of(graph):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs:
                yield from graphs_of(inner)


def known_shapes(model):
    """{value: dimensions} of what has a shape in the file or follows from it; None for a size that is free."""
    try:
        model = onnx.shape_inference.infer_shapes(model)
    except Exception:
        pass
    shapes = {}
    for graph in graphs_of(model.graph):
        shapes |= {tensor.name: list(tensor.dims) for tensor in graph.initializer}
        for port in [*graph.input, *graph.value_info, *graph.output]:
            shapes[port.name] = [dim.dim_value or None for dim in port.type.tensor_type.shape.dim]
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute[0].type == onnx.AttributeProto.TENSOR:
                shapes[node.output[0]] = list(node.attribute[0].t.dims)
    return shapes


def bound_of(name, model, shapes):
    """The least length of what the input `name` indexes, or None."""
    consumers = {}
    for graph in graphs_of(model.graph):
        for node in graph.node:
            for index, value in enumerate(node.input):
                consumers.setdefault(value, []).append((node, index))
    waiting, seen, bounds = [name], {name}, []
    while waiting:
        for node, index in consumers.get(waiting.pop(), []):
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            axis = attributes.get("axis", 0)
            if node.op_type in ("Gather", "GatherElements", "ScatterElements", "GatherBlockQuantized") and index == 1:
                data = shapes.get(node.input[0])
                if data and data[axis]:
                    bounds.append(data[axis])
            elif node.op_type in ("GatherND", "ScatterND") and index == 1:
                data = shapes.get(node.input[0])
                bounds += [min(size for size in data if size)] if data and any(data) else []
            elif node.op_type in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss") and index == 1:
                data = shapes.get(node.input[0])
                bounds += [data[1]] if data and data[1] else []
            elif node.op_type == "EmbedLayerNormalization" and index < 2:
                data = shapes.get(node.input[2 if index == 0 else 4])
                bounds += [data[0]] if data and data[0] else []
            elif node.op_type in PASSES:
                for output in node.output:
                    if output not in seen:
                        seen.add(output)
                        waiting.append(output)
    return min(bounds) if bounds else None


def whole_numbers(name, shape, dtype, bound, rng):
    low = name.lower()
    if re.search(r"mask", low):
        values = np.ones(shape, dtype)
        if len(shape) == 2 and shape[0] > 1 and shape[1] > 2:
            values[-1, -2:] = 0  # a row that was filled up
        return values
    if re.search(r"position", low) and len(shape) == 2:
        return np.broadcast_to(np.arange(shape[1]) % (bound or shape[1]), shape).astype(dtype).copy()
    if dtype == np.uint8 and bound is None:
        return rng.integers(0, 256, shape).astype(dtype)
    # Lengths and counts are no zeros.
    least = 1 if re.search(r"length|seqlen|count|positive|size", low) and bound is None else 0
    return rng.integers(least, bound or MOST, shape).astype(dtype)


def synthesised(model, which, bound=None, seed=5):
    """{name: array}.  `bound`: the most that integers of which nothing is known may be."""
    rng = np.random.default_rng(seed)
    shapes, known, made = shapes_of(model, which), known_shapes(model), {}
    known |= shapes
    for port in ports_of(model):
        kind, shape = port.type.tensor_type.elem_type, shapes[port.name]
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind))
        if kind == TensorProto.STRING or not port.type.HasField("tensor_type"):
            raise ValueError(f"the input {port.name} is no tensor of numbers")
        if kind == TensorProto.BOOL:
            made[port.name] = rng.random(shape) < 0.7
        elif dtype.kind in "iu":
            limit = bound_of(port.name, model, known)
            made[port.name] = whole_numbers(port.name, shape, dtype, limit if limit else bound, rng)
        else:
            made[port.name] = rng.standard_normal(shape).astype(np.float32).astype(dtype)
    return made


def stored(folder, model):
    """The inputs of a data set that lies beside the model, in the form of ONNX's own, or None."""
    made = {}
    for index, port in enumerate(ports_of(model)):
        path = folder / f"input_{index}.pb"
        if not path.exists():
            return None
        made[port.name] = numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))
    return made
